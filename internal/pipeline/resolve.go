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
	// What a document's worker does with an answer that came late is done here
	// with the decision; the authority itself is not spoken to.
	plan := NewLive(LiveOptions{Store: r.Store, Now: r.Now, Log: r.Log})
	var after store.Invoice
	err = r.Store.Update(ctx, func(tx *store.Tx) (err error) {
		after, _, err = plan.insist(ctx, tx, issued, nil, []finding{{Evidence: evidence}}, func(before store.Invoice, c *Change) error {
			if err := decidable(before.Status, d.Verdict); err != nil {
				return err
			}
			if d.Verdict == fiscal.VerdictRejected && c.Status != fiscal.Rejected {
				return fmt.Errorf("%w: the authority has accepted it; see its evidence", ErrUndecidable)
			}
			return nil
		})
		return err
	})
	return after, err
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
