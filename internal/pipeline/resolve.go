package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// ErrUndecidable says that an operator cannot decide what became of a document,
// for the reason that comes with it.
var ErrUndecidable = errors.New("nothing was decided")

// maxNote is how many characters an operator may write about a decision.
const maxNote = 1000

// Decision is what an operator says of a document that the service cannot learn
// by itself: the verdict, and what it rests on.
type Decision struct {
	DocumentID string
	Verdict    fiscal.Verdict // accepted or rejected
	Note       string
}

// evidence is the decision as evidence.
func (d Decision) evidence(at time.Time) (Evidence, error) {
	note := strings.TrimSpace(d.Note)
	switch {
	case d.Verdict != fiscal.VerdictAccepted && d.Verdict != fiscal.VerdictRejected:
		return Evidence{}, fmt.Errorf("%w: a document is accepted or rejected", ErrUndecidable)
	case note == "":
		return Evidence{}, fmt.Errorf("%w: what the decision rests on must be told", ErrUndecidable)
	case !utf8.ValidString(note) || utf8.RuneCountInString(note) > maxNote:
		return Evidence{}, fmt.Errorf("%w: what the decision rests on is told in at most %d characters", ErrUndecidable, maxNote)
	}
	note = strings.Map(func(r rune) rune { // it becomes one line of the history
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, note)
	return Evidence{Kind: KindOperator, Verdict: d.Verdict, Note: note, At: at}, nil
}

// Resolver records what operators decide. It asks nobody, and works beside the
// workers of other processes.
type Resolver struct {
	Store *store.Store
	Now   func() time.Time
	Log   *slog.Logger
}

// Resolve records a decision and moves the document to where all that is known
// of it then puts it. The error is ErrUndecidable where a decision does not
// belong: before the document was sent, and after its verdict, but for a
// rejection that turns out an acceptance.
func (r Resolver) Resolve(ctx context.Context, scope store.Scope, d Decision) (store.Invoice, error) {
	evidence, err := d.evidence(r.Now())
	if err != nil {
		return store.Invoice{}, err
	}
	issued, err := r.Store.IssuedDocument(ctx, scope, d.DocumentID)
	if errors.Is(err, store.ErrNotFound) {
		return store.Invoice{}, fmt.Errorf("%w: the document was never sent to the authority", ErrUndecidable)
	}
	if err != nil {
		return store.Invoice{}, err
	}
	// What a document's worker does with an answer is done here with the
	// decision; the authority itself is not spoken to.
	plan := NewLive(LiveOptions{Store: r.Store, Now: r.Now, Log: r.Log})
	decided := plan.learn(issued, nil, finding{Evidence: evidence})
	var before store.Invoice
	err = r.Store.Update(ctx, func(tx *store.Tx) error {
		now := r.Now()
		job := store.Job{
			Scope: scope, DocumentID: d.DocumentID, Plan: livePlan, Stage: stageReconcile, RunAt: now,
			Lease: store.NewID(), LeaseUntil: now.Add(leaseTime), CreatedAt: now,
		}
		// The job first: a worker that holds it commits before this, and is seen,
		// or not at all, and keeps its answer as late evidence.
		if err := tx.TakeOverJob(ctx, job); err != nil {
			return err
		}
		var err error
		if before, err = tx.InvoiceOfDocument(ctx, scope, d.DocumentID); err != nil {
			return err
		}
		if err := decidable(before.Status, d.Verdict); err != nil {
			return err
		}
		change, err := decided.Within(ctx, tx, before)
		if err != nil {
			return err
		}
		if d.Verdict == fiscal.VerdictRejected && change.Status != fiscal.Rejected {
			return fmt.Errorf("%w: the authority has accepted it; see its evidence", ErrUndecidable)
		}
		if err := settleJob(ctx, tx, job, change, now); err != nil {
			return err
		}
		return changeStatus(ctx, tx, before, change, now)
	})
	if err != nil {
		return store.Invoice{}, err
	}
	if before.Status == fiscal.Rejected {
		r.Log.Error("a document that was rejected is accepted by an operator's decision", "document_id", d.DocumentID, "encf", issued.ENCF)
	}
	return r.Store.InvoiceOfDocument(ctx, scope, d.DocumentID)
}

// settleJob leaves what remains to be done to the workers.
func settleJob(ctx context.Context, tx *store.Tx, job store.Job, c Change, now time.Time) error {
	if c.Next == "" {
		return tx.FinishJob(ctx, job)
	}
	return tx.MoveJob(ctx, job, c.Next, now.Add(c.After))
}

// decidable tells whether an operator may decide on a document.
func decidable(status fiscal.Status, verdict fiscal.Verdict) error {
	switch status {
	case fiscal.Submitted, fiscal.Processing, fiscal.OutcomeUnknown:
		return nil
	case fiscal.Rejected:
		if verdict == fiscal.VerdictAccepted { // hiding a valid fiscal document would be worse
			return nil
		}
		return fmt.Errorf("%w: the document is rejected already", ErrUndecidable)
	case fiscal.Queued:
		return fmt.Errorf("%w: the document is queued, and will be sent", ErrUndecidable)
	case fiscal.ValidationFailed, fiscal.Accepted, fiscal.AcceptedConditional, fiscal.Delivered:
	}
	return fmt.Errorf("%w: the document is %s, which stands", ErrUndecidable, status)
}

// ReadEvidence reads all that is known of a document, the oldest first.
func ReadEvidence(ctx context.Context, s *store.Store, scope store.Scope, documentID string) ([]Evidence, error) {
	stored, err := s.EvidenceOf(ctx, scope, documentID)
	if err != nil {
		return nil, err
	}
	return decodeEvidence(stored)
}
