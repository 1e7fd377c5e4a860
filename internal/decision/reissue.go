package decision

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/audit"
	"github.com/fiscalhub/fiscalhub/internal/cause"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// The plan and the stage of a document that waits for a number.
const (
	plan  = "live"
	stage = "issue"
)

// Reissue takes the number away from a document whose range has ended before the
// authority had anything of it. A worker then gives the same document a new number and
// signs it again. The old number is abandoned, and what was signed with it is kept.
// Reissue is refused with ErrUndecidable for every other document. The reason becomes
// part of the history.
func Reissue(ctx context.Context, s *store.Store, now time.Time, scope store.Scope, documentID, reason string) (after store.Invoice, err error) {
	note, err := Note(reason)
	if err != nil {
		return after, err
	}
	ctx = audit.WithReason(ctx, note)
	err = s.Update(ctx, func(tx *store.Tx) (err error) {
		after, err = reissue(ctx, tx, now, scope, documentID, note)
		return err
	})
	return after, err
}

func reissue(ctx context.Context, tx *store.Tx, now time.Time, scope store.Scope, documentID, note string) (after store.Invoice, err error) {
	// The job comes first: whoever holds it has recorded its attempt, which is seen here,
	// or cannot record one any more and sends nothing.
	job := store.Job{
		Scope: scope, DocumentID: documentID, Plan: plan, Stage: stage, RunAt: now,
		Lease: store.NewID(), LeaseUntil: now, CreatedAt: now,
	}
	if err := tx.TakeOverJob(ctx, job); err != nil {
		return after, err
	}
	before, err := tx.InvoiceOfDocument(ctx, scope, documentID)
	if err != nil {
		return after, err
	}
	issued, err := tx.IssuedDocument(ctx, scope, documentID)
	if errors.Is(err, store.ErrNotFound) {
		return after, lang.Errorf("%s: the document has no number yet, so there is none to replace", "%s: el documento todavía no tiene secuencia, así que no hay ninguna que sustituir", ErrUndecidable)
	}
	if err != nil {
		return after, err
	}
	numbers, err := Ended(ctx, tx, before, issued, now)
	if err != nil {
		return after, err
	}
	if !numbers.FencedAt.IsZero() { // the database may have lost the record that the document was sent
		return after, lang.Errorf("%s: the number range is fenced; run fiscalhub reconcile first", "%s: la secuencia está bloqueada; ejecute primero fiscalhub reconcile", ErrUndecidable)
	}
	if err := tx.ReplaceNumber(ctx, store.ReplacedNumber{Issued: issued, Reason: note, By: audit.CallerOf(ctx).Actor, At: now}); err != nil {
		return after, err
	}
	message, err := replacedNote(ctx, tx, before, issued.ENCF, numbers)
	if err != nil {
		return after, err
	}
	after = before
	after.ENCF, after.UpdatedAt = "", before.NextUpdate(now)
	after.Messages = append(after.Messages[:len(after.Messages):len(after.Messages)], message)
	rows := new(store.Batch).MoveJob(job, stage, now).UpdateInvoice(before, after).AddHistoryEntry(store.HistoryEntry{
		Scope: scope, InvoiceID: before.ID, ID: store.NewID(), At: after.UpdatedAt, Kind: "reissued", Status: before.Status,
		Cause: cause.New(cause.NumberReplaced, issued.ENCF, note),
	})
	if err := tx.Do(ctx, rows); err != nil {
		return after, err
	}
	return after, tx.Audit(ctx, store.AuditEntry{
		Scope: scope, Action: "document.reissue", Object: "document:" + documentID,
		Before: map[string]any{"status": before.Status, "encf": issued.ENCF}, After: map[string]any{"status": after.Status, "encf": nil},
	})
}

// Ended returns the number range of a document that ended before the authority had
// anything of the document. It returns ErrUndecidable for another document. The caller has
// the job of the document.
func Ended(ctx context.Context, tx *store.Tx, inv store.Invoice, issued store.Issued, at time.Time) (store.NumberRange, error) {
	attempts, err := tx.Attempts(ctx, inv.Scope, inv.DocumentID)
	if err != nil {
		return store.NumberRange{}, err
	}
	numbers, err := tx.NumberRange(ctx, inv.Scope, issued.NumberRangeID)
	switch {
	case err != nil:
	case inv.Status != fiscal.Queued:
		err = lang.Errorf("%s: the document is %s; only one that was never sent can take another number", "%s: el documento está %s; solo puede tomar otra secuencia uno que nunca se envió", ErrUndecidable, inv.Status)
	case !neverReceived(attempts):
		err = lang.Errorf("%s: the authority may have received the document; wait until its status shows it", "%s: es posible que la DGII haya recibido el documento; espere a que su estado lo muestre", ErrUndecidable)
	case !numbers.Expired(fiscal.DateOf(at)):
		err = lang.Errorf("%s: the number range of the document has not ended; the document will be sent", "%s: la secuencia del documento no ha vencido; el documento se enviará", ErrUndecidable)
	}
	return numbers, err
}

// replacedNote returns what the integrator reads about the number, in the language of the
// request.
func replacedNote(ctx context.Context, tx *store.Tx, inv store.Invoice, encf string, numbers store.NumberRange) (string, error) {
	stored, err := tx.Request(ctx, inv.Scope, inv.ID)
	if err != nil {
		return "", err
	}
	request := struct {
		Language lang.Language `json:"language"`
	}{lang.Spanish}
	if err := json.Unmarshal(stored, &request); err != nil {
		return "", fmt.Errorf("decision: stored request of %s: %w", inv.ID, err)
	}
	return lang.Messagef("The number %s was replaced by a new one: its range ended on %s before the document could be sent.",
		"El e-NCF %s fue sustituido por uno nuevo: su secuencia venció el %s antes de que el documento se pudiera enviar.",
		encf, numbers.Expires).In(request.Language), nil
}
