package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

const (
	// signingMargin is how much earlier than now a document says that it was
	// signed: the authority refuses one from its future.
	signingMargin = 2 * time.Second
	// maxSkew is how far the clocks may be apart for anything to be signed.
	maxSkew = 120 * time.Second
)

// issue takes a number, builds and signs the document, and commits number,
// ledger and bytes at once, so that a crash leaves no gap.
func (l *Live) issue(ctx context.Context, w Work) (Step, error) {
	facts, err := lately(l, l.facts, w.Job.Scope, func() (Facts, error) { return ReadFacts(ctx, l.Store, w.Job.Scope) })
	if err != nil {
		return Step{}, err
	}
	inv, err := readInvoice(w.Invoice, w.Request)
	if err != nil {
		return Step{}, err
	}
	if missing := facts.Missing(inv.Type, l.Now()); len(missing) > 0 {
		return Step{}, &Later{l.paced(readinessPause, time.Second), missing[0].Code + ": " + missing[0].Message}
	}
	issuer := IssuerOf(facts.Taxpayer)
	if err := issuer.Check(); err != nil {
		// The taxpayer's data are no fault of the invoice: it waits.
		return Step{}, &Later{l.paced(readinessPause, time.Second), "taxpayer: " + err.Error()}
	}
	if err := ecf.Check(issuer, inv); err != nil {
		var problems fiscal.Problems
		if !errors.As(err, &problems) {
			return Step{}, err
		}
		return refused(w.Invoice, problems), nil
	}
	id, err := l.identity(ctx, w.Job.Scope)
	if err != nil {
		return Step{}, err
	}
	signedAt, err := l.signingTime()
	if err != nil {
		return Step{}, err
	}
	if err := id.Check(signedAt); err != nil {
		return Step{}, &Later{l.paced(readinessPause, time.Second), err.Error()}
	}

	order := &order{job: w.Job, invoiceID: w.Invoice.ID, invoice: inv, issuer: issuer, identity: id, signedAt: signedAt}
	if err := l.queue(queueKey{w.Job.Scope, inv.Type}).issue(ctx, order); err != nil {
		return Step{}, err
	}
	return Step{Committed: true, Change: Change{Next: stageSubmit}, Issued: &order.issued}, nil
}

// usableSequence chooses the lowest range that may be used on a day, and tells
// what keeps every one from it.
func usableSequence(sequences []store.Sequence, day fiscal.Date) (store.Sequence, string) {
	problem := "sequence.missing"
	for _, s := range sequences {
		switch {
		case !s.FencedAt.IsZero():
			problem = "sequence.fenced"
		case s.Left() <= 0:
			problem = "sequence.exhausted"
		case s.Expired(day):
			problem = "sequence.expired"
		default:
			return s, ""
		}
	}
	return store.Sequence{}, problem
}

// refused is an invoice that turned out not to fit the document, before any
// number was spent on it.
func refused(inv store.Invoice, problems fiscal.Problems) Step {
	messages := make([]string, 0, len(problems)+len(inv.Messages))
	for _, p := range problems {
		messages = append(messages, p.Field+": "+p.Message)
	}
	return Step{Change: Change{
		Status: fiscal.ValidationFailed, Messages: append(messages, inv.Messages...),
		Cause: "the document does not fit the authority's format; no number was taken",
	}}
}

// readInvoice reads an invoice back from its request.
func readInvoice(stored store.Invoice, request []byte) (*fiscal.Invoice, error) {
	parsed, err := strictjson.Parse(request)
	if err != nil {
		return nil, fmt.Errorf("pipeline: stored request of %s: %w", stored.ID, err)
	}
	inv, err := fiscal.New(fiscal.DecodeRequest(parsed))
	if err != nil {
		return nil, fmt.Errorf("pipeline: stored request of %s: %w", stored.ID, err)
	}
	return inv, nil
}

// signingTime is when a document says that it was signed: the earlier of our
// clock and the authority's, less a margin.
func (l *Live) signingTime() (time.Time, error) {
	now := l.Now()
	ahead, known := l.Authority.Clock()
	if known && ahead.Abs() > maxSkew {
		l.Log.Error("the clocks are too far apart to sign", "ahead", ahead.String())
		return time.Time{}, &Later{l.paced(readinessPause, time.Second), "the authority's clock is " + ahead.String() + " ahead of ours: set the clock of this machine"}
	}
	return now.Add(min(ahead, 0) - signingMargin), nil
}

// queue is where the documents that take numbers of one kind line up.
func (l *Live) queue(key queueKey) *numberer {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.queues[key] == nil {
		l.queues[key] = &numberer{live: l, key: key}
	}
	return l.queues[key]
}
