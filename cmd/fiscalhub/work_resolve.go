package main

import (
	"io"
	"log/slog"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

type workResolveCmd struct {
	ID       string `arg:"" help:"Id of the fiscal document, or of its invoice."`
	As       string `required:"" help:"accepted or rejected." enum:"accepted,rejected" placeholder:"VERDICT"`
	Evidence string `required:"" help:"Reason for the decision, at most 1000 characters. It stays in the history." placeholder:"TEXT"`
}

// Run records a decision. A server may be processing the document at the same
// time.
func (c workResolveCmd) Run(t *terminal) error {
	return t.withStore(func(s *store.Store) error {
		inv, err := findDocument(t, s, c.ID)
		if err != nil {
			return err
		}
		d := live.Decision{DocumentID: inv.DocumentID, Verdict: fiscal.VerdictAccepted, Note: c.Evidence}
		if c.As == "rejected" {
			d.Verdict = fiscal.VerdictRejected
		}
		r := live.NewResolver(s, s.Now, t.log(slog.LevelWarn))
		if inv, err = r.Resolve(t.ctx, inv.Scope, d); err != nil {
			return err
		}
		v, err := newWorkShow(t, s, inv)
		if err != nil {
			return err
		}
		return t.answer(v, func(w io.Writer) {
			line(w, "document", v.Document.ID)
			line(w, "status", string(v.Document.Status))
			if v.Job != nil {
				line(w, "next", v.Job.Stage)
			}
		})
	})
}
