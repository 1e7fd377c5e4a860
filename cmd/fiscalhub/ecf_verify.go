package main

import (
	"io"
	"os"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/lang"
)

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
