package watch

import (
	"context"
	"errors"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

const (
	overdueEvery = time.Minute
	// verdictTime is how long a submitted document may wait for its verdict, and
	// unknownTime how long an outcome may stay unknown, before people are warned.
	verdictTime = 15 * time.Minute
	unknownTime = 24 * time.Hour
	// overduePage is how many documents are read at a time, and overduePages how
	// many pages in one round, so that a long backlog is walked in several rounds.
	overduePage  = 200
	overduePages = 20
)

// CheckOverdue walks over documents that have no verdict yet. It warns of each that
// has waited too long, once: in the log, as an event and in the metrics. A round
// continues where the last one stopped.
func (w *Watcher) CheckOverdue(ctx context.Context, s pipeline.Signals) error {
	for range overduePages {
		ids, err := w.store.DocumentsWithJob(ctx, w.env, w.overdueAfter, overduePage)
		if err != nil {
			return err
		}
		if len(ids) == 0 {
			w.overdueAfter = ""
			return nil
		}
		states, err := w.store.DocumentStates(ctx, w.env, ids)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if state := states[id]; state != nil {
				if err := w.warnOverdue(ctx, s, state); err != nil {
					return err
				}
			}
		}
		w.overdueAfter = ids[len(ids)-1]
	}
	return nil
}

// overdue returns why a document is overdue, or "", and since when it has waited.
func (w *Watcher) overdue(state *store.DocumentState) (reason string, since time.Time) {
	switch since = state.Invoice.UpdatedAt; state.Invoice.Status {
	case fiscal.OutcomeUnknown:
		if w.now().Sub(since) >= w.pace.Scale(unknownTime) {
			return event.OutcomeUnknownFor24Hours, since
		}
	case fiscal.Submitted, fiscal.Processing:
		// The time runs from the first track id. A change from one of these statuses to
		// the other is no verdict.
		for _, e := range state.Evidence {
			if e.TrackID != "" && e.At.Before(since) {
				since = e.At
			}
		}
		if w.now().Sub(since) >= w.pace.Scale(verdictTime) {
			return event.NoVerdictFor15Minutes, since
		}
	default:
	}
	return "", since
}

func (w *Watcher) warnOverdue(ctx context.Context, s pipeline.Signals, state *store.DocumentState) error {
	reason, since := w.overdue(state)
	if reason == "" {
		return nil
	}
	inv := state.Invoice
	fresh := false
	err := w.store.Update(ctx, func(tx *store.Tx) (err error) {
		if fresh, err = tx.MarkNotified(ctx, inv.Scope, "document "+inv.DocumentID, reason, w.now()); err != nil || !fresh {
			return err
		}
		rows := new(store.Batch)
		pipeline.AddEvents(rows, inv, inv, []pipeline.Notice{{Kind: event.VerdictOverdue, Reason: reason}}, w.now())
		return tx.Do(ctx, rows)
	})
	if errors.Is(err, store.ErrInvoiceChanged) {
		return nil // the next pass looks at the document again
	}
	if err != nil || !fresh {
		return err
	}
	w.metrics.overdue(reason)
	w.log.Error("A document has no verdict for a long time. Look at it with `fiscalhub work show`.",
		"document_id", inv.DocumentID, "encf", inv.ENCF, "status", inv.Status, "since", since, "reason", reason)
	s.Notify(inv.Scope)
	return nil
}
