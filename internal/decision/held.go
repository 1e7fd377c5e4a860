package decision

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/cause"
	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// Guard holds documents whose number range ended before the authority had anything of
// them: the authority would reject them, and the sales would have no valid document.
type Guard struct {
	store *store.Store
	log   *slog.Logger

	mu       sync.Mutex
	reported map[string]bool // number ranges
}

// NewGuard returns a guard.
func NewGuard(s *store.Store, log *slog.Logger) *Guard {
	return &Guard{store: s, log: log, reported: make(map[string]bool)}
}

// Document is what the guard must know of a document that is about to be sent.
type Document struct {
	Job      store.Job
	Issued   store.Issued
	Attempts []store.Attempt
	Evidence []evidence.Item
}

// Hold returns why a document is held at an instant; it is empty when it may be sent. A
// document that may have arrived is not held: the service asks about it. Neither is one
// that an operator sends all the same.
func (g *Guard) Hold(ctx context.Context, d Document, at time.Time) (cause.Cause, error) {
	today := fiscal.DateOf(at)
	if !fiscal.DateOf(d.Issued.SignedAt).Before(today) {
		return "", nil // on the day of its signature the range had not ended
	}
	sent := func(i evidence.Item) bool { return i.Kind == evidence.Note && i.ENCF == d.Issued.ENCF }
	if !neverReceived(d.Attempts) || slices.ContainsFunc(d.Evidence, sent) {
		return "", nil
	}
	numbers, err := g.store.NumberRange(ctx, d.Issued.Scope, d.Issued.NumberRangeID)
	if err != nil || !numbers.Expired(today) {
		return "", err
	}
	if err := g.report(ctx, d, numbers, at); err != nil {
		return "", err
	}
	return cause.New(cause.RangeEnded, numbers.Expires), nil
}

// report logs that documents of a range are held, once for the range.
func (g *Guard) report(ctx context.Context, d Document, numbers store.NumberRange, at time.Time) error {
	g.mu.Lock()
	known := g.reported[numbers.ID] || d.Job.Cause.Held()
	g.mu.Unlock()
	if known {
		return nil
	}
	fresh := false
	err := g.store.Update(ctx, func(tx *store.Tx) (err error) {
		fresh, err = tx.MarkNotified(ctx, d.Issued.Scope, "sequence "+numbers.ID, "documents are held", at)
		return err
	})
	if err != nil {
		return err
	}
	g.mu.Lock()
	g.reported[numbers.ID] = true
	g.mu.Unlock()
	if fresh {
		g.log.Error("A number range has ended before its documents were sent. They are held: the authority would reject them. See `fiscalhub work list`, then give each a new number with `fiscalhub work reissue`, or send it with `fiscalhub work resend`.",
			"taxpayer_id", d.Issued.TaxpayerID, "range_id", numbers.ID, "ended", numbers.Expires.String(), "document_id", d.Issued.DocumentID, "encf", d.Issued.ENCF)
	}
	return nil
}

// neverReceived reports whether the authority certainly got none of these submissions.
func neverReceived(attempts []store.Attempt) bool {
	return !slices.ContainsFunc(attempts, func(a store.Attempt) bool { return a.Class != store.NotReceived })
}
