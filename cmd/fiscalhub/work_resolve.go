package main

import (
	"io"
	"log/slog"

	"github.com/fiscalhub/fiscalhub/internal/decision"
	"github.com/fiscalhub/fiscalhub/internal/dossier"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

type workResolveCmd struct {
	ID       string `arg:"" help:"Id of the fiscal document, or of its invoice."`
	As       string `required:"" help:"accepted, accepted_conditional or rejected." enum:"accepted,accepted_conditional,rejected" placeholder:"VERDICT"`
	Evidence string `required:"" help:"Reason for the decision, at most 1000 characters. It stays in the history." placeholder:"TEXT"`
}

// Run records a decision. A server may be processing the document at the same
// time.
func (c workResolveCmd) Run(t *terminal) error {
	return t.changeDocument(c.ID, func(r *live.Resolver, inv store.Invoice) (store.Invoice, error) {
		d := live.Decision{DocumentID: inv.DocumentID, Verdict: fiscal.VerdictAccepted, Note: c.Evidence}
		switch c.As {
		case "accepted_conditional":
			d.Verdict = fiscal.VerdictConditional
		case "rejected":
			d.Verdict = fiscal.VerdictRejected
		}
		return r.Resolve(t.ctx, inv.Scope, d)
	})
}

type workResendCmd struct {
	ID     string `arg:"" help:"Id of the fiscal document, or of its invoice."`
	Reason string `required:"" help:"Why it is sent again, at most 1000 characters. It stays in the evidence." placeholder:"TEXT"`
}

// Run lets a server send the same bytes once more.
func (c workResendCmd) Run(t *terminal) error {
	return t.changeDocument(c.ID, func(r *live.Resolver, inv store.Invoice) (store.Invoice, error) {
		return r.Resend(t.ctx, inv.Scope, inv.DocumentID, c.Reason)
	})
}

type workReissueCmd struct {
	ID     string `arg:"" help:"Id of the fiscal document, or of its invoice."`
	Reason string `required:"" help:"Why the document takes a new number, at most 1000 characters. It stays in the history." placeholder:"TEXT"`
}

// Run takes the number away from a document. A server then gives it a new one.
func (c workReissueCmd) Run(t *terminal) error {
	return t.withStore(func(s *store.Store) error {
		return t.changeDocumentIn(s, c.ID, func(inv store.Invoice) (store.Invoice, error) {
			return decision.Reissue(t.ctx, s, s.Now(), inv.Scope, inv.DocumentID, c.Reason)
		})
	})
}

type workRequeueCmd struct {
	ID     string `arg:"" help:"Id of the fiscal document, or of its invoice."`
	Reason string `required:"" help:"Why a worker continues with the document, at most 1000 characters. It stays in the history." placeholder:"TEXT"`
}

// Run puts a document back at the stage that its evidence asks for.
func (c workRequeueCmd) Run(t *terminal) error {
	return t.changeDocument(c.ID, func(r *live.Resolver, inv store.Invoice) (store.Invoice, error) {
		return r.Requeue(t.ctx, inv.Scope, inv.DocumentID, c.Reason)
	})
}

// changeDocument finds a document, changes it, and answers what it is then.
func (t *terminal) changeDocument(id string, change func(*live.Resolver, store.Invoice) (store.Invoice, error)) error {
	return t.withStore(func(s *store.Store) error {
		return t.changeDocumentIn(s, id, func(inv store.Invoice) (store.Invoice, error) {
			return change(live.NewResolver(s, s.Now, t.log(slog.LevelWarn)), inv)
		})
	})
}

// changeDocumentIn is changeDocument in an open store.
func (t *terminal) changeDocumentIn(s *store.Store, id string, change func(store.Invoice) (store.Invoice, error)) error {
	inv, err := findDocument(t, s, id)
	if err != nil {
		return err
	}
	if inv, err = change(inv); err != nil {
		return err
	}
	d, err := dossier.Read(t.ctx, s, inv.Scope, inv.DocumentID)
	if err != nil {
		return err
	}
	v := newWorkShow(d, s.Now(), t.outputLanguage())
	return t.answer(v, func(w io.Writer) {
		line(w, "document", v.Document.ID)
		line(w, "status", string(v.Document.Status))
		if v.Job != nil {
			line(w, "next", v.Job.Stage)
		}
	})
}
