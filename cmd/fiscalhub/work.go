package main

import (
	"errors"
	"io"
	"log/slog"
	"strconv"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/decision"
	"github.com/fiscalhub/fiscalhub/internal/dossier"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/live"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

type workCmd struct {
	List    workListCmd    `cmd:"" help:"List the documents that are not final, that still have a job, or that the tax authority shows differently."`
	Show    workShowCmd    `cmd:"" help:"Show one document with its attempts, its evidence and its job."`
	Resolve workResolveCmd `cmd:"" help:"Record an operator's decision about a document that was sent."`
	Resend  workResendCmd  `cmd:"" help:"Send the same bytes again, after look-ups have shown that the authority does not have them, or although the number range has ended."`
	Reissue workReissueCmd `cmd:"" help:"Give a document a new number that is held because its number range has ended."`
	Requeue workRequeueCmd `cmd:"" help:"Give a document without a job a new one, so that a worker continues with it."`
}

type workListCmd struct {
	Environment string `help:"sandbox, certification or production. By default all of them." placeholder:"E"`
	Taxpayer    string `help:"Id of a taxpayer. By default all of them." placeholder:"ID"`
}

// workView is a document that waits, in JSON.
type workView struct {
	ID         string        `json:"id"`
	ExternalID string        `json:"external_id"`
	Status     fiscal.Status `json:"status"`
	Stage      *string       `json:"stage"`
	Attempt    int64         `json:"attempt"`
	NextTry    *string       `json:"next_try"` // null without a job, and while the job waits until the authority answers
	LastError  *string       `json:"last_error"`
	Deadline   *string       `json:"deadline"` // after a contingency: when the document must have been sent
}

func newWorkView(w store.WaitingDocument) workView {
	v := workView{ID: w.DocumentID, ExternalID: w.ExternalID, Status: w.Status}
	if w.Job != nil {
		v.Stage, v.Attempt, v.NextTry, v.LastError = &w.Job.Stage, w.Job.Attempt, optionalTime(w.Job.RunAt), optional(w.Job.Cause.String())
	}
	return v
}

// Run lists the waiting documents, oldest first.
func (c workListCmd) Run(t *terminal) error {
	env := fiscal.Environment(c.Environment)
	switch env {
	case "", fiscal.Sandbox, fiscal.Certification, fiscal.Production:
	default:
		return wrongUsage("--environment must be sandbox, certification or production", "--environment debe ser sandbox, certification o production")
	}
	return t.withStore(func(s *store.Store) error {
		all, err := s.WaitingDocuments(t.ctx, store.Scope{Environment: env, TaxpayerID: c.Taxpayer})
		if err != nil {
			return err
		}
		views := mapEach(all, newWorkView)
		for i, w := range all {
			if views[i].Deadline, err = contingencyDeadline(t, s, w); err != nil {
				return err
			}
		}
		different, err := s.OpenDifferences(t.ctx, store.Scope{Environment: env, TaxpayerID: c.Taxpayer})
		if err != nil {
			return err
		}
		views = append(views, mapEach(different, newDifferentView)...)
		return t.list(views, t.workTable(views, all, different, s.Now()))
	})
}

// workTable returns the documents that wait, and those that the authority shows
// differently.
func (t *terminal) workTable(views []workView, waiting []store.WaitingDocument, different []store.DifferentInvoice, now time.Time) *table {
	b := newTable("DOCUMENT", "EXTERNAL ID", "STATUS", "STAGE", "ATTEMPT", "NEXT TRY", "DEADLINE", "CAUSE", "SINCE", "ENVIRONMENT", "TAXPAYER")
	none := lang.Messagef("none", "ninguna").In(t.language)
	for i, one := range waiting {
		stage, attempt, next, failure := none, "", "", ""
		if one.Job != nil {
			stage, attempt = one.Job.Stage, strconv.FormatInt(one.Job.Attempt, 10)
			next, failure = nextTry(*one.Job, now).In(t.language), one.Job.Cause.In(t.language)
		}
		b.add(one.DocumentID, one.ExternalID, string(one.Status), stage, attempt, next, textOf(views[i].Deadline), failure,
			formatTime(one.CreatedAt), string(one.Environment), one.TaxpayerID)
	}
	for _, d := range different {
		b.add(d.DocumentID, d.ExternalID, string(d.Status), none, "", "", "", d.Cause().In(t.language), formatTime(d.FoundAt), string(d.Environment), d.TaxpayerID)
	}
	return b
}

// newDifferentView returns an accepted document that the authority shows differently.
// It has no stage: only people can resolve the difference.
func newDifferentView(d store.DifferentInvoice) workView {
	return workView{ID: d.DocumentID, ExternalID: d.ExternalID, Status: d.Status, LastError: optional(d.Cause().String())}
}

// contingencyDeadline returns when a document that waited during a contingency
// must have been sent. It returns nil for other documents, and while the
// contingency lasts.
func contingencyDeadline(t *terminal, s *store.Store, w store.WaitingDocument) (*string, error) {
	if w.Status != fiscal.Queued {
		return nil, nil
	}
	last, err := s.Contingency(t.ctx, w.Environment)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return optionalTime(last.Deadline(w.Status, w.CreatedAt)), err
}

// nextTry returns when a worker takes a job, for a table.
func nextTry(j store.Job, now time.Time) lang.Message {
	if j.LeaseUntil.After(now) {
		return lang.Messagef("under way", "en curso")
	}
	if j.Suspended {
		return lang.Messagef("when the authority answers", "cuando la DGII responda")
	}
	return lang.Literal(formatTime(j.RunAt))
}

// findDocument reads a document by its id or by the id of its invoice.
func findDocument(t *terminal, s *store.Store, id string) (store.Invoice, error) {
	inv, err := s.AnyDocument(t.ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return inv, lang.Errorf("there is no document or invoice %s: see fiscalhub work list", "no existe el documento o la factura %s: vea fiscalhub work list", id)
	}
	return inv, err
}

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
