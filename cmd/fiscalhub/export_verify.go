package main

import (
	"errors"
	"io"
	"io/fs"

	"github.com/fiscalhub/fiscalhub/internal/export"
	"github.com/fiscalhub/fiscalhub/internal/lang"
)

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
		err = lang.Errorf("%s was changed or is damaged: %d problems",
			"%s fue alterado o está dañado: %d problemas", c.File, len(v.Problems))
	}
	return err
}
