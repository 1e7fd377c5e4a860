package live

import (
	"context"
	"errors"
	"slices"

	"github.com/fiscalhub/fiscalhub/internal/audit"
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
		_, known, err := readDocument(ctx, tx, issued)
		if err != nil {
			return after, err
		}
		now := r.now()
		learnt := report{issued: issued, findings: r.settled(evidence.NewTally(known))}
		learnt.findings = append(learnt.findings, finding{Item: evidence.Item{Kind: evidence.Note, ENCF: issued.ENCF, Note: "sent again: " + note, By: audit.CallerOf(ctx).Actor, At: now}})
		after, _, err = r.commitLate(ctx, tx, learnt, func(before store.Invoice, c *pipeline.Change) error {
			err := MayResend(before.Status, known)
			if before.Status == fiscal.Queued {
				_, err = decision.Ended(ctx, tx, before, issued, now)
			}
			if err != nil {
				return err
			}
			c.Next, c.After, c.Cause = stageSubmit, 0, "an operator sends it again: "+note
			return nil
		})
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
	since := lastDoubt(known)
	if !slices.ContainsFunc(known, func(i evidence.Item) bool {
		return i.Kind == evidence.Absent && i.TrackID == "" && i.At.After(since)
	}) {
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
	issued, err := r.store.IssuedDocument(ctx, scope, documentID)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return store.Invoice{}, err
	}
	unnumbered := err != nil
	return r.change(ctx, "document.requeue", scope, documentID, note, func(tx *store.Tx) (after store.Invoice, err error) {
		if unnumbered {
			return r.requeueUnnumbered(ctx, tx, scope, documentID, note)
		}
		requeued := evidence.Item{Kind: evidence.Note, Note: "requeued: " + note, By: audit.CallerOf(ctx).Actor, At: r.now()}
		learnt := report{issued: issued, findings: []finding{{Item: requeued}}}
		after, _, err = r.commitLate(ctx, tx, learnt, func(before store.Invoice, c *pipeline.Change) error {
			if before.Status.Final() && c.Next == "" {
				return lang.Errorf("%s: the document is %s, which is final", "%s: el documento está %s, que es un estado final", ErrUndecidable, before.Status)
			}
			c.After = 0
			return nil
		})
		return after, err
	})
}

// requeueUnnumbered gives a document that has no number yet a job at the first stage.
func (r *Resolver) requeueUnnumbered(ctx context.Context, tx *store.Tx, scope store.Scope, documentID, note string) (store.Invoice, error) {
	inv, err := tx.InvoiceOfDocument(ctx, scope, documentID)
	if err != nil {
		return inv, err
	}
	if inv.Status != fiscal.Queued {
		return inv, lang.Errorf("%s: the document is %s, which is final", "%s: el documento está %s, que es un estado final", ErrUndecidable, inv.Status)
	}
	now := r.now()
	job := store.Job{
		Scope: scope, DocumentID: documentID, Plan: planName, Stage: stageIssue, RunAt: now,
		Lease: store.NewID(), LeaseUntil: now, CreatedAt: now,
	}
	if err := tx.TakeOverJob(ctx, job); err != nil {
		return inv, err
	}
	rows := new(store.Batch).MoveJob(job, stageIssue, now).AddHistoryEntry(store.HistoryEntry{
		Scope: scope, InvoiceID: inv.ID, ID: store.NewID(), At: now, Kind: "requeued", Status: inv.Status, Detail: note,
	})
	return inv, tx.Do(ctx, rows)
}
