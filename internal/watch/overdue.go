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

// overdueWalk is a walk over the documents that can be overdue. Documents that wait to be
// sent are not among them, however many they are.
type overdueWalk struct {
	statuses []fiscal.Status // that remain
	after    store.StatusPosition
}

// next returns the next documents, or none when the walk has come to its end. After the
// end it begins again.
func (o *overdueWalk) next(ctx context.Context, s *store.Store, env fiscal.Environment) (ids []string, err error) {
	if len(o.statuses) == 0 {
		o.statuses = []fiscal.Status{fiscal.Submitted, fiscal.Processing, fiscal.OutcomeUnknown}
	}
	for len(ids) == 0 && len(o.statuses) > 0 {
		if ids, o.after, err = s.DocumentsWithStatus(ctx, env, o.statuses[0], o.after, overduePage); err != nil {
			return nil, err
		}
		if len(ids) < overduePage {
			o.statuses, o.after = o.statuses[1:], store.StatusPosition{}
		}
	}
	return ids, nil
}

// CheckOverdue walks over documents that have no verdict yet. It warns of each that
// has waited too long, once: in the log, as an event and in the metrics. A round
// continues where the last one stopped.
func (w *Watcher) CheckOverdue(ctx context.Context, s pipeline.Signals) error {
	for range overduePages {
		walk := w.overdueWalk
		ids, err := walk.next(ctx, w.o.Store, w.o.Env)
		if err != nil {
			return err
		}
		states, err := w.o.Store.DocumentStates(ctx, w.o.Env, ids)
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
		w.overdueWalk = walk // not before: after an error the next round repeats the page
		if len(walk.statuses) == 0 {
			return nil // the next round begins again
		}
	}
	return nil
}

// overdue returns why a document is overdue, or "", and since when it has waited.
func (w *Watcher) overdue(state *store.DocumentState) (reason string, since time.Time) {
	switch since = state.Invoice.UpdatedAt; state.Invoice.Status {
	case fiscal.OutcomeUnknown:
		if w.o.Now().Sub(since) >= w.o.Pace.Scale(unknownTime) {
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
		if w.o.Now().Sub(since) >= w.o.Pace.Scale(verdictTime) {
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
	err := w.o.Store.Update(ctx, func(tx *store.Tx) (err error) {
		if fresh, err = tx.MarkNotified(ctx, inv.Scope, "document "+inv.DocumentID, reason, w.o.Now()); err != nil || !fresh {
			return err
		}
		rows := new(store.Batch)
		pipeline.AddEvents(rows, inv, inv, []pipeline.ExtraEvent{{Kind: event.VerdictOverdue, Reason: reason}}, w.o.Now())
		return tx.Do(ctx, rows)
	})
	if errors.Is(err, store.ErrInvoiceChanged) {
		return nil // the next pass looks at the document again
	}
	if err != nil || !fresh {
		return err
	}
	w.metrics.overdue(reason)
	w.o.Log.Error("A document has no verdict for a long time. Look at it with `fiscalhub work show`.",
		"document_id", inv.DocumentID, "encf", inv.ENCF, "status", inv.Status, "since", since, "reason", reason)
	s.Notify(inv.Scope)
	return nil
}
