package live

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/audit"
	"github.com/fiscalhub/fiscalhub/internal/decision"
	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// ErrUndecidable says that an operator cannot decide what became of a document. The
// reason follows.
var ErrUndecidable = decision.ErrUndecidable

// Decision is what an operator knows of a document and the service cannot find out:
// the verdict, and what it is based on.
type Decision struct {
	DocumentID string
	Verdict    fiscal.Verdict // accepted, accepted conditionally or rejected
	Note       string
}

// item returns the decision as evidence.
func (d Decision) item(at time.Time) (evidence.Item, error) {
	if d.Verdict != fiscal.VerdictAccepted && d.Verdict != fiscal.VerdictConditional && d.Verdict != fiscal.VerdictRejected {
		return evidence.Item{}, lang.Errorf("%s: a document is accepted, accepted conditionally or rejected", "%s: un documento está aceptado, aceptado condicional o rechazado", ErrUndecidable)
	}
	note, err := decision.Note(d.Note)
	return evidence.Item{Kind: evidence.Operator, Verdict: d.Verdict, Note: note, At: at}, err
}

// Resolver records the decisions of operators. It does not call the authority, and
// it works while other processes run.
type Resolver struct{ settler }

// NewResolver returns a resolver.
func NewResolver(s *store.Store, now func() time.Time, log *slog.Logger) *Resolver {
	return &Resolver{settler{store: s, now: now, log: log, directory: newDirectory()}}
}

// Resolve records a decision and moves the document to where all the evidence then
// puts it. It returns ErrUndecidable when the document was never sent, or has a
// verdict already. One verdict may be corrected: a rejection into an acceptance.
func (r *Resolver) Resolve(ctx context.Context, scope store.Scope, d Decision) (store.Invoice, error) {
	item, err := d.item(r.now())
	if err != nil {
		return store.Invoice{}, err
	}
	issued, err := r.store.IssuedDocument(ctx, scope, d.DocumentID)
	if errors.Is(err, store.ErrNotFound) {
		return store.Invoice{}, lang.Errorf("%s: the document was never sent to the authority", "%s: el documento nunca se envió a la DGII", ErrUndecidable)
	}
	if err != nil {
		return store.Invoice{}, err
	}
	item.By = audit.CallerOf(ctx).Actor
	return r.change(ctx, "document.resolve", scope, d.DocumentID, item.Note, func(tx *store.Tx) (after store.Invoice, err error) {
		t, err := pipeline.TakeOver(ctx, tx, issued, r.now(), pipeline.Finding{Item: item})
		if err == nil {
			err = MayDecide(t.Invoice.Status, d.Verdict)
		}
		if err != nil {
			return after, err
		}
		move := r.Settle(t.Document)
		if d.Verdict == fiscal.VerdictRejected && move.Status != fiscal.Rejected {
			return after, lang.Errorf("%s: the authority has accepted the document; see its evidence", "%s: la DGII aceptó el documento; vea su evidencia", ErrUndecidable)
		}
		after, _, err = t.Commit(ctx, tx, move)
		return after, err
	})
}

// change changes a document in a transaction, and records the change in the audit log
// with the operator's note. It returns the document after the change. Others may change the
// document meanwhile, for example the response of a buyer: then it decides again.
func (r *Resolver) change(ctx context.Context, action string, scope store.Scope, documentID, note string,
	fn func(*store.Tx) (store.Invoice, error),
) (after store.Invoice, err error) {
	ctx = audit.WithReason(ctx, note)
	err = store.RetryInvoiceChanged(ctx, func() error {
		return r.store.Update(ctx, func(tx *store.Tx) error {
			before, err := tx.InvoiceOfDocument(ctx, scope, documentID)
			if err != nil {
				return err
			}
			if after, err = fn(tx); err != nil {
				return err
			}
			return tx.Audit(ctx, store.AuditEntry{
				Scope: scope, Action: action, Object: "document:" + documentID,
				Before: map[string]any{"status": before.Status}, After: map[string]any{"status": after.Status},
			})
		})
	})
	return after, err
}

// MayDecide returns ErrUndecidable unless an operator may decide on a document.
func MayDecide(status fiscal.Status, verdict fiscal.Verdict) error {
	switch status {
	case fiscal.Submitted, fiscal.Processing, fiscal.OutcomeUnknown:
		return nil
	case fiscal.Rejected:
		if verdict != fiscal.VerdictRejected { // a valid fiscal document must not stay hidden
			return nil
		}
		return lang.Errorf("%s: the document is rejected already", "%s: el documento ya está rechazado", ErrUndecidable)
	case fiscal.Queued:
		return lang.Errorf("%s: the document is queued, and will be sent", "%s: el documento está en cola y se enviará", ErrUndecidable)
	case fiscal.ValidationFailed, fiscal.Accepted, fiscal.AcceptedConditional, fiscal.Delivered:
	}
	return errFinal(status)
}

// errFinal returns ErrUndecidable for a document that has its final status.
func errFinal(status fiscal.Status) error {
	return lang.Errorf("%s: the document is %s, which is final", "%s: el documento está %s, que es un estado final", ErrUndecidable, status)
}
