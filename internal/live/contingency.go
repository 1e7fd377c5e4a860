package live

import (
	"context"
	"errors"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

const (
	// contingencyAfter is how long the authority must be out of reach before a
	// contingency begins. The first answer ends it.
	contingencyAfter = 10 * time.Minute
	// ContingencyTime is how long after the end of a contingency its documents must
	// have been sent.
	ContingencyTime = 72 * time.Hour

	watchEvery = 5 * time.Second
)

// Watch begins and ends contingencies, and sends warnings, until ctx ends.
func (p *Plan) Watch(ctx context.Context, s pipeline.Signals) {
	tick := time.NewTicker(p.pace.Of(watchEvery, 100*time.Millisecond))
	defer tick.Stop()
	for nextWarnings := p.now(); ; {
		if now := p.now(); !now.Before(nextWarnings) {
			nextWarnings = now.Add(p.pace.Of(warnEvery, time.Second))
			if err := p.warnAhead(ctx, s); err != nil && ctx.Err() == nil {
				p.log.Warn("Cannot check what is about to expire. The check is repeated within an hour.", "error", err.Error())
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := p.checkOutage(ctx, s); err != nil && ctx.Err() == nil {
				p.log.Warn("Cannot record the state of the contingency. It is checked again within seconds.", "error", err.Error())
			}
		}
	}
}

// maxPurge is how many old rows of each table one purge deletes.
const maxPurge = 50_000

// warnAhead sends warnings and deletes rows that were kept long enough.
func (p *Plan) warnAhead(ctx context.Context, s pipeline.Signals) error {
	_, err := p.store.Purge(ctx, p.now(), maxPurge)
	return errors.Join(err, p.sendWarnings(ctx, s))
}

// checkOutage records that a contingency has begun or ended. Nothing else changes
// for integrators: their invoices are registered, numbered and signed, and wait.
func (p *Plan) checkOutage(ctx context.Context, s pipeline.Signals) error {
	since, down := p.authority.Down()
	now := p.now()
	last, err := p.store.Contingency(ctx, p.env)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	active := err == nil && last.EndedAt.IsZero()
	if err == nil && !active && last.WokenAt.IsZero() {
		return p.wakeJobs(ctx, s)
	}
	begins := down && !active && now.Sub(since) >= p.pace.Scale(contingencyAfter)
	if ends := !down && active; !begins && !ends {
		return nil
	}
	scopes, err := p.scopes(ctx)
	if err != nil {
		return err
	}
	changed, deadline := false, now.Add(ContingencyTime)
	err = p.store.Update(ctx, func(tx *store.Tx) (err error) {
		if begins {
			changed, err = tx.StartContingency(ctx, p.env, now)
		} else {
			changed, err = tx.EndContingency(ctx, p.env, now)
		}
		if err != nil || !changed {
			return err
		}
		for _, scope := range scopes {
			kind, data := event.ContingencyStarted, event.NewContingency(scope.TaxpayerID, now, time.Time{}, time.Time{})
			if !begins {
				kind, data = event.ContingencyEnded, event.NewContingency(scope.TaxpayerID, last.StartedAt, now, deadline)
			}
			if err := p.addEvent(ctx, tx, scope, kind, data); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || !changed {
		return err
	}
	if begins {
		p.log.Error("Contingency: cannot reach the tax authority. Signed documents wait and will be sent automatically.", "since", since)
	} else {
		p.log.Warn("The contingency is over. Documents that waited are sent, oldest first.", "deadline", deadline)
	}
	for _, scope := range scopes {
		s.Notify(scope)
	}
	if !begins {
		return p.wakeJobs(ctx, s)
	}
	return nil
}

// wakeJobs makes the documents due that waited for the authority. When it fails or
// the process ends, the next check of any node continues.
func (p *Plan) wakeJobs(ctx context.Context, s pipeline.Signals) error {
	now := p.now()
	woken, err := p.store.WakeJobs(ctx, p.env, []string{stageSubmit, stagePoll, stageReconcile}, now)
	if woken > 0 {
		s.Wake()
	}
	if err != nil {
		return err
	}
	return p.store.Update(ctx, func(tx *store.Tx) error {
		_, err := tx.MarkWoken(ctx, p.env, now)
		return err
	})
}
