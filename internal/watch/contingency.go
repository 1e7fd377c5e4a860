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

// contingencyAfter is how long the authority must be out of reach before a
// contingency begins. The first answer ends it.
const contingencyAfter = 10 * time.Minute

// CheckOutage records that a contingency has begun or ended. Nothing else changes
// for integrators: their invoices are registered, numbered and signed, and wait.
func (w *Watcher) CheckOutage(ctx context.Context, s pipeline.Signals) error {
	since, down := w.authority.Down()
	now := w.now()
	last, err := w.store.Contingency(ctx, w.env)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	active := err == nil && last.EndedAt.IsZero()
	begins := down && !active && now.Sub(since) >= w.pace.Scale(contingencyAfter)
	if ends := !down && active; !begins && !ends {
		return nil
	}
	scopes, err := w.scopes(ctx)
	if err != nil {
		return err
	}
	changed, deadline := false, now.Add(fiscal.ContingencyTime)
	err = w.store.Update(ctx, func(tx *store.Tx) (err error) {
		if begins {
			changed, err = tx.StartContingency(ctx, w.env, now)
		} else {
			changed, err = tx.EndContingency(ctx, w.env, w.stages[0], now)
		}
		if err != nil || !changed {
			return err
		}
		for _, scope := range scopes {
			kind, data := event.ContingencyStarted, event.NewContingency(scope.TaxpayerID, now, time.Time{}, time.Time{})
			if !begins {
				kind, data = event.ContingencyEnded, event.NewContingency(scope.TaxpayerID, last.StartedAt, now, deadline)
			}
			if err := w.addEvent(ctx, tx, scope, kind, data); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || !changed {
		return err
	}
	if begins {
		w.log.Error("Contingency: cannot reach the tax authority. Signed documents wait and will be sent automatically.", "since", since)
	} else {
		w.log.Warn("The contingency is over. Documents that waited are sent, oldest first.", "deadline", deadline)
		s.Wake()
	}
	for _, scope := range scopes {
		s.Notify(scope)
	}
	return nil
}
