package main

import (
	"crypto/x509"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/printed"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

type ecfCmd struct {
	Sign   ecfSignCmd   `cmd:"" help:"Build and sign one document from a request, offline. The signed XML goes to standard output."`
	Verify ecfVerifyCmd `cmd:"" help:"Verify the signature of a document strictly, and tell who signed it."`
	Print  ecfPrintCmd  `cmd:"" help:"Print a signed document as PDF."`
}

// A signedFile is a document of a file, read from what its signature covers.
type signedFile struct {
	verified *xmlsig.Verified
	document *ecf.Document
	code     ecf.SecurityCode
}

func verifyFile(raw []byte) (*signedFile, error) {
	verified, err := xmlsig.Verify(raw, xmlsig.InvoiceLimits())
	if err != nil {
		return nil, err
	}
	document, code, err := ecf.Read(verified)
	if err != nil {
		return nil, err
	}
	return &signedFile{verified, document, code}, nil
}

// stamp is the stamp address of the document in one of our environments.
func (s *signedFile) stamp(environment string) (ecf.Stamp, error) {
	return s.document.Stamp(s.code, ecf.AuthorityOf(fiscal.Environment(environment)))
}

type ecfVerifyCmd struct {
	Environment string `help:"Environment of the stamp address: sandbox, certification or production." enum:"sandbox,certification,production" default:"production"`
	Trust       string `help:"Roots in PEM that the certificate must chain to. Without it neither its chain nor its dates are looked at." placeholder:"FILE"`
	File        string `arg:"" help:"Signed XML." placeholder:"FILE.xml"`
}

// verifyView is the outcome of a verification in JSON.
type verifyView struct {
	Valid        bool    `json:"valid"`
	Reason       string  `json:"reason,omitempty"`
	ENCF         *string `json:"encf"`
	SecurityCode *string `json:"security_code"`
	StampURL     *string `json:"stamp_url"`
	Signer       *string `json:"signer"`
	// Faults are what the authority's format does not allow in a document
	// whose signature is good.
	Faults []string `json:"faults,omitempty"`
}

// Run verifies a document.
func (c ecfVerifyCmd) Run(t *terminal) error {
	roots, err := readRoots(c.Trust)
	if err != nil {
		return err
	}
	raw, err := os.ReadFile(c.File)
	if err != nil {
		return err
	}
	s, err := verifyFile(raw)
	if err == nil && roots != nil {
		at := s.document.SignedAt
		if at.IsZero() { // a summary does not say
			at = time.Now()
		}
		err = s.verified.Trusted(roots, at)
	}
	if err != nil {
		if t.cli.JSON {
			if err := t.answer(verifyView{Reason: oneLine(err)}, nil); err != nil {
				return err
			}
		}
		return fmt.Errorf("%s: %w", c.File, err)
	}
	stamp, err := s.stamp(c.Environment)
	if err != nil {
		return err
	}
	encf, code, address, signer := s.document.ENCF.String(), s.code.String(), stamp.String(), s.verified.Certificate.Subject.String()
	v := verifyView{Valid: true, ENCF: &encf, SecurityCode: &code, StampURL: &address, Signer: &signer}
	for _, f := range ecf.Inspect(s.verified.Root()) {
		v.Faults = append(v.Faults, f.Path+": "+f.Message)
	}
	return t.answer(v, func(w io.Writer) {
		line(w, "signature", "valid")
		line(w, "signer", signer)
		line(w, "e-NCF", encf)
		line(w, "security code", code)
		line(w, "stamp", address)
		for _, fault := range v.Faults {
			line(w, "fault", fault)
		}
	})
}

// readRoots reads a file of certificates; nil when there is none to read.
func readRoots(path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--trust %s: want certificates in PEM", path)
	}
	return roots, nil
}

type ecfPrintCmd struct {
	Environment string `help:"Environment of the stamp address: sandbox, certification or production." enum:"sandbox,certification,production" default:"production"`
	Language    string `help:"es, or en to add English captions." enum:"es,en" default:"es"`
	Format      string `help:"letter, or receipt for a roll of 80 mm." enum:"letter,receipt" default:"letter"`
	Logo        string `help:"PNG or JPEG file, at most 1 MiB." placeholder:"FILE"`
	Out         string `help:"Where to write the PDF; standard output unless told." placeholder:"FILE.pdf"`
	File        string `arg:"" help:"Signed XML." placeholder:"FILE.xml"`
}

// Run prints a document.
func (c ecfPrintCmd) Run(t *terminal) error {
	raw, err := os.ReadFile(c.File)
	if err != nil {
		return err
	}
	s, err := verifyFile(raw)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	if len(s.document.Lines) == 0 {
		return fmt.Errorf("%s is a summary: print the invoice that it summarises", c.File)
	}
	format, err := printed.ParseFormat(c.Format)
	if err != nil {
		return usageError(err.Error())
	}
	page := printed.Page{Document: s.document, Code: s.code, Language: c.Language}
	if page.Stamp, err = s.stamp(c.Environment); err != nil {
		return err
	}
	if c.Logo != "" {
		if page.Logo, err = readLogo(c.Logo); err != nil {
			return err
		}
	}
	pdf, err := page.Render(format)
	if err != nil {
		return err
	}
	if c.Out == "" {
		_, err = t.out.Write(pdf)
		return err
	}
	return os.WriteFile(c.Out, pdf, 0o644) //nolint:gosec // a page is made to be shown
}
