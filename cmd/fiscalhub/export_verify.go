package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/fiscalhub/fiscalhub/internal/export"
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
	bar := t.startProgress("Verify", "files")
	report, err := export.Verify(t.ctx, c.File, bar.report)
	bar.end(t)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no file %s", c.File)
	case err != nil:
		return t.interrupted(err, "the check of %s is not complete", c.File)
	}
	m := report.Manifest
	v := exportReportView{len(report.Problems) == 0, m.RNC, m.From, m.To, m.Documents, report.Signatures, append([]string{}, report.Problems...)}
	err = t.answer(v, func(w io.Writer) {
		for _, problem := range v.Problems {
			line(w, "problem", problem)
		}
		if v.Valid {
			line(w, fmt.Sprintf("%s is as it was written: %d documents of %s from %s to %s, %d valid signatures", c.File, v.Documents, v.RNC, v.From, v.To, v.Signatures))
		}
	})
	if err == nil && !v.Valid {
		err = fmt.Errorf("%s was changed or is damaged: %d problems", c.File, len(v.Problems))
	}
	return err
}
