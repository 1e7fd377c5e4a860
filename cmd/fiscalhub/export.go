package main

import (
	"errors"
	"io"
	"io/fs"
	"log/slog"

	"github.com/fiscalhub/fiscalhub/internal/export"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

type exportCmd struct {
	Write  exportWriteCmd  `cmd:"" default:"withargs" help:"Write the documents of a span of days into a ZIP file. fiscalhub export alone does the same."`
	Verify exportVerifyCmd `cmd:"" help:"Check that an export is as it was written, and the signature of each document."`
}

type exportWriteCmd struct {
	Taxpayer             string `required:"" help:"Id of the taxpayer." placeholder:"ID"`
	Environment          string `required:"" help:"sandbox, certification or production." placeholder:"E"`
	From                 string `required:"" help:"First date of issue, as 2026-11-01." placeholder:"DATE"`
	To                   string `required:"" help:"Last date of issue, as 2026-11-30." placeholder:"DATE"`
	Out                  string `required:"" help:"File to create. The command never replaces an existing file. After an interruption the same command continues." placeholder:"FILE.zip"`
	PDF                  bool   `name:"pdf" help:"Include the printed pages of accepted documents."`
	AuthorityEnvironment string `help:"Environment of the authority in the stamps of pages that were never printed: testecf, certecf or ecf. The same as that of serve." placeholder:"AMB"`
}

// exportView is a written export in JSON.
type exportView struct {
	File      string `json:"file"`
	Documents int64  `json:"documents"`
	Files     int    `json:"files"`
	From      string `json:"from"`
	To        string `json:"to"`
}

// Run writes an export.
func (c exportWriteCmd) Run(t *terminal) error {
	o, err := c.check()
	if err != nil {
		return err
	}
	stamp, err := liveFlags{AuthorityEnvironment: c.AuthorityEnvironment}.authorityEnvironment(o.Scope.Environment)
	if err != nil {
		return err
	}
	return t.withStore(func(s *store.Store) error {
		if _, err := s.Taxpayer(t.ctx, c.Taxpayer); err != nil {
			return missing(err, "taxpayer", c.Taxpayer)
		}
		o.Store, o.Now = s, s.Now
		// This pipeline only reads documents and prints their pages.
		if o.Pipeline, err = pipeline.New(pipeline.Options{
			Store: s, Plan: pipeline.Sandbox{}, Env: o.Scope.Environment, Now: s.Now, Log: t.log(slog.LevelWarn), Stamp: stamp,
		}); err != nil {
			return err
		}
		bar := t.startProgress(lang.Messagef("export", "exportación"), lang.Messagef("documents", "documentos"))
		var done, total int64
		o.Progress = func(d, n int64) {
			done, total = d, n
			bar.report(d, n)
		}
		manifest, err := export.Write(t.ctx, c.Out, o)
		bar.end(t)
		switch {
		case errors.Is(err, fs.ErrExist):
			return lang.Errorf("%s exists already: name another file", "%s ya existe: indique otro archivo", c.Out)
		case errors.Is(err, export.ErrOtherExport):
			return lang.Errorf("%s belongs to an interrupted export with other options: remove that folder to begin again",
				"%s pertenece a una exportación interrumpida con otras opciones: elimine esa carpeta para empezar de nuevo", c.Out+".partial")
		case err != nil:
			return t.interrupted(err, lang.Messagef("%d of %d documents are written: the same command continues",
				"hay %d de %d comprobantes escritos: el mismo comando continúa", done, total))
		}
		v := exportView{c.Out, manifest.Documents, len(manifest.Files), manifest.From, manifest.To}
		return t.answer(v, func(w io.Writer) {
			say(w, lang.Messagef("%s: %d documents from %s to %s", "%s: %d comprobantes del %s al %s", c.Out, v.Documents, v.From, v.To))
			say(w, lang.Messagef("Check it at any time with fiscalhub export verify %s",
				"Verifíquelo cuando quiera con fiscalhub export verify %s", c.Out))
		})
	})
}

func (c exportWriteCmd) check() (o export.Options, err error) {
	env, err := fiscal.ParseEnvironment(c.Environment)
	if err != nil {
		return o, usageError{lang.Messagef("--environment must be sandbox, certification or production",
			"--environment debe ser sandbox, certification o production")}
	}
	o = export.Options{Scope: store.Scope{Environment: env, TaxpayerID: c.Taxpayer}, PDF: c.PDF}
	if o.From, err = fiscal.ParseDate(c.From); err != nil {
		return o, usageError{lang.Messagef("--from must be a date: YYYY-MM-DD", "--from debe ser una fecha: AAAA-MM-DD")}
	}
	if o.To, err = fiscal.ParseDate(c.To); err != nil {
		return o, usageError{lang.Messagef("--to must be a date: YYYY-MM-DD", "--to debe ser una fecha: AAAA-MM-DD")}
	}
	if o.To.Before(o.From) {
		return o, usageError{lang.Messagef("--to must not be before --from", "--to no puede ser anterior a --from")}
	}
	return o, nil
}

type exportVerifyCmd struct {
	File string `arg:"" help:"ZIP file of an export." placeholder:"FILE.zip"`
}

// exportReportView is a checked export in JSON.
type exportReportView struct {
	Valid      bool     `json:"valid"`
	RNC        string   `json:"rnc"`
	From       string   `json:"from"`
	To         string   `json:"to"`
	Documents  int64    `json:"documents"`
	Signatures int64    `json:"signatures"`
	Problems   []string `json:"problems"`
}

// Run checks an export. It needs no database.
func (c exportVerifyCmd) Run(t *terminal) error {
	bar := t.startProgress(lang.Messagef("export verify", "verificación de la exportación"), lang.Messagef("files", "archivos"))
	report, err := export.Verify(t.ctx, c.File, bar.report)
	bar.end(t)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return lang.Errorf("there is no file %s: check the name", "no existe el archivo %s: revise el nombre", c.File)
	case err != nil:
		return t.interrupted(err, lang.Messagef("the check of %s is not complete", "la verificación de %s no terminó", c.File))
	}
	m := report.Manifest
	v := exportReportView{len(report.Problems) == 0, m.RNC, m.From, m.To, m.Documents, report.Signatures, append([]string{}, report.Problems...)}
	err = t.answer(v, func(w io.Writer) {
		for _, problem := range v.Problems {
			line(w, "problem", problem)
		}
		if v.Valid {
			say(w, lang.Messagef("%s is as it was written: %d documents of %s from %s to %s, %d valid signatures",
				"%s está como se escribió: %d comprobantes de %s del %s al %s, %d firmas válidas", c.File, v.Documents, v.RNC, v.From, v.To, v.Signatures))
		}
	})
	if err == nil && !v.Valid {
		err = lang.Errorf("%s was changed or is damaged: %d problems", "%s fue alterado o está dañado: %d problemas", c.File, len(v.Problems))
	}
	return err
}
