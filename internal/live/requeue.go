package live

import (
	"context"
	"errors"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/audit"
	"github.com/fiscalhub/fiscalhub/internal/cause"
	"github.com/fiscalhub/fiscalhub/internal/decision"
	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// Resend sends the same stored bytes once more, although no worker would. It is
// refused with ErrUndecidable unless a look-up by number has shown, after the last
// attempt that may have arrived, that the authority does not have the document, or the
// environment offers no look-up by number, or the document is held because its number
// range has ended. The reason becomes part of the evidence.
func (r *Resolver) Resend(ctx context.Context, scope store.Scope, documentID, reason string) (store.Invoice, error) {
	note, err := decision.Note(reason)
	if err != nil {
		return store.Invoice{}, err
	}
	issued, err := r.store.IssuedDocument(ctx, scope, documentID)
	if errors.Is(err, store.ErrNotFound) {
		return store.Invoice{}, lang.Errorf("%s: the document has no number yet, so there is nothing to send again", "%s: el documento todavía no tiene secuencia, así que no hay nada que reenviar", ErrUndecidable)
	}
	if err != nil {
		return store.Invoice{}, err
	}
	return r.change(ctx, "document.resend", scope, documentID, note, func(tx *store.Tx) (after store.Invoice, err error) {
		now := r.now()
		sent := evidence.Item{Kind: evidence.Note, ENCF: issued.ENCF, Note: string(cause.New(cause.NoteResent, note)), By: audit.CallerOf(ctx).Actor, At: now}
		t, err := pipeline.TakeOver(ctx, tx, issued, now, pipeline.Finding{Item: sent})
		if err != nil {
			return after, err
		}
		if t.Invoice.Status == fiscal.Queued {
			_, err = decision.Ended(ctx, tx, t.Invoice, issued, now)
		} else {
			err = MayResend(t.Invoice.Status, t.Known)
		}
		if err != nil {
			return after, err
		}
		move := r.Settle(t.Document)
		move.Next, move.After, move.Cause = stageSubmit, 0, cause.New(cause.OperatorResends, note)
		after, _, err = t.Commit(ctx, tx, move)
		return after, err
	})
}

// MayResend returns ErrUndecidable unless the evidence shows that the authority does
// not have the document, or no look-up could show it.
func MayResend(status fiscal.Status, known []evidence.Item) error {
	if status != fiscal.OutcomeUnknown && status != fiscal.Submitted && status != fiscal.Processing {
		return lang.Errorf("%s: the document is %s; only one whose outcome is open can be sent again", "%s: el documento está %s; solo se reenvía uno cuyo resultado está pendiente", ErrUndecidable, status)
	}
	tally := evidence.NewTally(known)
	if len(tally.OpenTracks()) > len(tally.LostTracks()) {
		return lang.Errorf("%s: the authority has given a track id and still knows it; wait for its verdict", "%s: la DGII dio un track id y todavía lo conoce; espere su veredicto", ErrUndecidable)
	}
	if tally.NoLookUp() {
		return nil // the operator's reason is all the evidence that there can be
	}
	if evidence.AbsentSinceDoubt(known, 0) == 0 {
		return lang.Errorf("%s: no look-up has shown since the last attempt that the authority does not have the document", "%s: desde el último intento ninguna consulta mostró que la DGII no tiene el documento", ErrUndecidable)
	}
	return nil
}

// Requeue puts a document back at the stage that its evidence asks for, due now. It is
// for a document that no worker continues with. It is refused with ErrUndecidable when
// the status is final. The reason becomes part of the evidence, or of the history when
// the document has no number yet.
func (r *Resolver) Requeue(ctx context.Context, scope store.Scope, documentID, reason string) (store.Invoice, error) {
	note, err := decision.Note(reason)
	if err != nil {
		return store.Invoice{}, err
	}
	now := r.now()
	return r.change(ctx, "document.requeue", scope, documentID, note, func(tx *store.Tx) (after store.Invoice, err error) {
		job := store.Job{
			Scope: scope, DocumentID: documentID, Plan: pipeline.LivePlan, Stage: stageIssue, RunAt: now,
			Lease: store.NewID(), LeaseUntil: now, CreatedAt: now,
		}
		// First the job: no worker numbers the document from here on, and what one has
		// committed is read below.
		if err := tx.TakeOverJob(ctx, job); err != nil {
			return after, err
		}
		issued, err := tx.IssuedDocument(ctx, scope, documentID)
		if errors.Is(err, store.ErrNotFound) {
			return r.requeueUnnumbered(ctx, tx, job, note)
		}
		if err != nil {
			return after, err
		}
		requeued := evidence.Item{Kind: evidence.Note, Note: string(cause.New(cause.NoteRequeued, note)), By: audit.CallerOf(ctx).Actor, At: now}
		t, err := pipeline.TakeOver(ctx, tx, issued, now, pipeline.Finding{Item: requeued})
		if err != nil {
			return after, err
		}
		move := r.Settle(t.Document)
		if t.Invoice.Status.Final() && move.Next == "" {
			return after, errFinal(t.Invoice.Status)
		}
		move.After = 0
		after, _, err = t.Commit(ctx, tx, move)
		return after, err
	})
}

// requeueUnnumbered lets the job of a document that has no number yet begin at the first
// stage.
func (r *Resolver) requeueUnnumbered(ctx context.Context, tx *store.Tx, job store.Job, note string) (store.Invoice, error) {
	inv, err := tx.InvoiceOfDocument(ctx, job.Scope, job.DocumentID)
	if err != nil {
		return inv, err
	}
	if inv.Status != fiscal.Queued {
		return inv, errFinal(inv.Status)
	}
	rows := new(store.Batch).MoveJob(job, stageIssue, job.RunAt).AddHistoryEntry(store.HistoryEntry{
		Scope: job.Scope, InvoiceID: inv.ID, ID: store.NewID(), At: job.RunAt, Kind: "requeued", Status: inv.Status, Cause: cause.New(cause.Text, note),
	})
	return inv, tx.Do(ctx, rows)
}

// AskAgain lets a worker ask the authority about a rejected document again: the authority
// has shown it as accepted. It does nothing about a document that is not rejected any more.
func AskAgain(ctx context.Context, tx *store.Tx, scope store.Scope, documentID string, now time.Time) error {
	job := store.Job{
		Scope: scope, DocumentID: documentID, Plan: pipeline.LivePlan, Stage: stageReconcile, RunAt: now,
		Lease: store.NewID(), LeaseUntil: now, CreatedAt: now,
	}
	inv, err := tx.InvoiceOfDocument(ctx, scope, documentID)
	if err != nil || inv.Status != fiscal.Rejected {
		return err
	}
	if err := tx.TakeOverJob(ctx, job); err != nil {
		return err
	}
	return tx.Do(ctx, new(store.Batch).MoveJob(job, stageReconcile, now))
}
