package main

import (
	"os"

	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/printed"
)

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
