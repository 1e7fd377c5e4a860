package main

import (
	"io"
	"os"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/printed"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

type ecfCmd struct {
	Sign   ecfSignCmd   `cmd:"" help:"Build and sign one document from a creation request. The signed XML goes to standard output."`
	Verify ecfVerifyCmd `cmd:"" help:"Verify the signature of a document, and show who signed it."`
	Print  ecfPrintCmd  `cmd:"" help:"Make the printed representation of a signed document, a PDF."`
}

// signedFile is a signed document. Its content is read only from the part that
// the signature covers.
type signedFile struct {
	verified *xmlsig.Verified
	document *ecf.Document
	code     ecf.SecurityCode
}

// verifyFile reads a signed document. It fails when the signature is not valid.
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

// stamp returns the stamp address of the document in an environment.
func (s *signedFile) stamp(environment string) (ecf.Stamp, error) {
	return s.document.Stamp(s.code, ecf.AuthorityOf(fiscal.Environment(environment)))
}

type ecfVerifyCmd struct {
	Environment string `help:"Environment of the stamp address: sandbox, certification or production." enum:"sandbox,certification,production" default:"production"`
	Trust       string `help:"PEM file of the roots that the certificate must chain to. Without it the command checks neither the chain nor the dates of the certificate." placeholder:"FILE"`
	File        string `arg:"" help:"Signed XML file." placeholder:"FILE.xml"`
}

// verifyView is the result of a verification in JSON.
type verifyView struct {
	Valid        bool    `json:"valid"`
	Reason       string  `json:"reason,omitempty"`
	ENCF         *string `json:"encf"`
	SecurityCode *string `json:"security_code"`
	StampURL     *string `json:"stamp_url"`
	Signer       *string `json:"signer"`
	// Faults are violations of the authority's format in a document whose
	// signature is valid.
	Faults []string `json:"faults,omitempty"`
}

// Run verifies a document. It fails when the signature is not valid; violations of
// the format are only listed.
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
		if at.IsZero() { // a summary has no time of signature
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
		return lang.Errorf("%s cannot be verified: %s", "%s no se puede verificar: %s", c.File, err)
	}
	stamp, err := s.stamp(c.Environment)
	if err != nil {
		return err
	}
	encf, code, address, signer := s.document.ENCF.String(), s.code.String(), stamp.String(), s.verified.Certificate.Subject.String()
	v := verifyView{Valid: true, ENCF: &encf, SecurityCode: &code, StampURL: &address, Signer: &signer}
	faults := ecf.Inspect(s.verified.Root())
	for _, f := range faults {
		v.Faults = append(v.Faults, f.Path+": "+f.Message.String())
	}
	return t.answer(v, func(w io.Writer) {
		line(w, "signature", lang.Messagef("valid", "válida").In(t.language))
		line(w, "signer", signer)
		line(w, "e-NCF", encf)
		line(w, "security code", code)
		line(w, "stamp", address)
		for _, f := range faults {
			line(w, "fault", f.Path+": "+f.Message.In(t.language))
		}
	})
}

type ecfPrintCmd struct {
	Environment string `help:"Environment of the stamp address: sandbox, certification or production." enum:"sandbox,certification,production" default:"production"`
	Language    string `help:"es, or en to add English captions." enum:"es,en" default:"es"`
	Format      string `help:"letter, receipt for a paper roll of 80 mm, or receipt58 for one of 58 mm." enum:"letter,receipt,receipt58" default:"letter"`
	Logo        string `help:"PNG or JPEG file, at most 1 MiB." placeholder:"FILE"`
	Out         string `help:"File to write the PDF to. By default standard output." placeholder:"FILE.pdf"`
	File        string `arg:"" help:"Signed XML file." placeholder:"FILE.xml"`
}

// Run writes the PDF of a document. It fails when the signature is not valid.
func (c ecfPrintCmd) Run(t *terminal) error {
	raw, err := os.ReadFile(c.File)
	if err != nil {
		return err
	}
	s, err := verifyFile(raw)
	if err != nil {
		return lang.Errorf("%s cannot be verified: %s", "%s no se puede verificar: %s", c.File, err)
	}
	if len(s.document.Lines) == 0 {
		return lang.Errorf("%s is a summary (RFCE): print the invoice that it summarises",
			"%s es un resumen (RFCE): imprima la factura que resume", c.File)
	}
	format, err := printed.ParseFormat(c.Format)
	if err != nil {
		return usageError{lang.OfError(err)}
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
	return os.WriteFile(c.Out, pdf, 0o644) //nolint:gosec // a printed page is no secret
}
