package live

import (
	"context"
	"errors"

	"github.com/fiscalhub/fiscalhub/internal/audit"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// Reissue takes the number away from a document whose range has ended before the
// authority had anything of it. A worker then gives the same document a new number and
// signs it again. The old number is abandoned, and what was signed with it is kept.
// Reissue is refused with ErrUndecidable for every other document. The reason becomes
// part of the history.
func (r *Resolver) Reissue(ctx context.Context, scope store.Scope, documentID, reason string) (after store.Invoice, err error) {
	note, err := oneLine(reason)
	if err != nil {
		return after, err
	}
	ctx = audit.WithReason(ctx, note)
	err = r.store.Update(ctx, func(tx *store.Tx) error {
		// The job comes first: whoever holds it has recorded its attempt, which is seen
		// here, or cannot record one any more and sends nothing.
		now := r.now()
		job := store.Job{
			Scope: scope, DocumentID: documentID, Plan: planName, Stage: stageIssue, RunAt: now,
			Lease: store.NewID(), LeaseUntil: now, CreatedAt: now,
		}
		if err := tx.TakeOverJob(ctx, job); err != nil {
			return err
		}
		before, numbers, issued, err := mayReissue(ctx, tx, scope, documentID, fiscal.DateOf(now))
		if err != nil {
			return err
		}
		by := audit.CallerOf(ctx).Actor
		if err := tx.ReplaceNumber(ctx, store.ReplacedNumber{Issued: issued, Reason: note, By: by, At: now}); err != nil {
			return err
		}
		message, err := replacedNote(ctx, tx, before, issued.ENCF, numbers)
		if err != nil {
			return err
		}
		after = before
		after.ENCF, after.Messages, after.UpdatedAt = "", append(after.Messages[:len(after.Messages):len(after.Messages)], message), pipeline.NextUpdate(before.UpdatedAt, now)
		rows := new(store.Batch).MoveJob(job, stageIssue, now).UpdateInvoice(before, after).AddHistoryEntry(store.HistoryEntry{
			Scope: scope, InvoiceID: before.ID, ID: store.NewID(), At: after.UpdatedAt, Kind: "reissued", Status: before.Status,
			Detail: "the number " + issued.ENCF + " is replaced: " + note,
		})
		if err := tx.Do(ctx, rows); err != nil {
			return err
		}
		return tx.Audit(ctx, store.Change{
			Scope: scope, Action: "document.reissue", Object: "document:" + documentID,
			Before: map[string]any{"status": before.Status, "encf": issued.ENCF}, After: map[string]any{"status": after.Status, "encf": nil},
		})
	})
	return after, err
}

// mayReissue reads a document whose number may be replaced today. It returns
// ErrUndecidable for another one. The caller has the job of the document.
func mayReissue(ctx context.Context, tx *store.Tx, scope store.Scope, documentID string, today fiscal.Date) (inv store.Invoice, numbers store.NumberRange, issued store.Issued, err error) {
	if inv, err = tx.InvoiceOfDocument(ctx, scope, documentID); err != nil {
		return inv, numbers, issued, err
	}
	issued, err = tx.IssuedDocument(ctx, scope, documentID)
	if errors.Is(err, store.ErrNotFound) {
		return inv, numbers, issued, lang.Errorf("%s: the document has no number yet, so there is none to replace", "%s: el documento todavía no tiene secuencia, así que no hay ninguna que sustituir", ErrUndecidable)
	}
	if err != nil {
		return inv, numbers, issued, err
	}
	numbers, err = mayBeHeld(ctx, tx, inv, issued, today)
	if err == nil && !numbers.FencedAt.IsZero() {
		// The database may have lost the record that the document was sent.
		err = lang.Errorf("%s: the number range is fenced; run fiscalhub reconcile first", "%s: la secuencia está bloqueada; ejecute primero fiscalhub reconcile", ErrUndecidable)
	}
	return inv, numbers, issued, err
}

// mayBeHeld returns the number range of a document that ended before the authority had
// anything of the document. It returns ErrUndecidable for another document.
func mayBeHeld(ctx context.Context, tx *store.Tx, inv store.Invoice, issued store.Issued, today fiscal.Date) (store.NumberRange, error) {
	attempts, err := tx.Attempts(ctx, inv.Scope, inv.DocumentID)
	if err != nil {
		return store.NumberRange{}, err
	}
	numbers, err := tx.NumberRange(ctx, inv.Scope, issued.NumberRangeID)
	if err != nil {
		return numbers, err
	}
	return numbers, MayReissue(inv.Status, attempts, numbers, today)
}

// MayReissue returns ErrUndecidable unless the number of a document may be replaced: its
// range has ended, and the authority certainly has nothing of the document.
func MayReissue(status fiscal.Status, attempts []store.Attempt, numbers store.NumberRange, today fiscal.Date) error {
	switch {
	case status != fiscal.Queued:
		return lang.Errorf("%s: the document is %s; only one that was never sent can take another number", "%s: el documento está %s; solo puede tomar otra secuencia uno que nunca se envió", ErrUndecidable, status)
	case !neverReceived(attempts):
		return lang.Errorf("%s: the authority may have received the document; wait until its status shows it", "%s: es posible que la DGII haya recibido el documento; espere a que su estado lo muestre", ErrUndecidable)
	case !numbers.Expired(today):
		return lang.Errorf("%s: the number range of the document has not ended; the document will be sent", "%s: la secuencia del documento no ha vencido; el documento se enviará", ErrUndecidable)
	}
	return nil
}

// replacedNote returns what the integrator reads about the number, in the language of the
// request.
func replacedNote(ctx context.Context, tx *store.Tx, inv store.Invoice, encf string, numbers store.NumberRange) (string, error) {
	request, err := tx.Request(ctx, inv.Scope, inv.ID)
	if err != nil {
		return "", err
	}
	parsed, err := pipeline.ParseRequest(inv, request)
	if err != nil {
		return "", err
	}
	return lang.Messagef("The number %s was replaced by a new one: its range ended on %s before the document could be sent.",
		"El e-NCF %s fue sustituido por uno nuevo: su secuencia venció el %s antes de que el documento se pudiera enviar.",
		encf, numbers.Expires).In(lang.Language(parsed.Language)), nil
}
