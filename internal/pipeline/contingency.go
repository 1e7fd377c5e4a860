package pipeline

import (
	"context"
	"errors"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

const (
	// contingencyAfter is how long the authority must be out of reach for a
	// contingency to begin. It ends with the first answer.
	contingencyAfter = 10 * time.Minute
	// ContingencyTime is how long after its end everything must have been sent.
	ContingencyTime = 72 * time.Hour

	watchEvery = 5 * time.Second
)

// lookout is a plan that looks after something beside its documents.
type lookout interface {
	Watch(ctx context.Context, p *Pipeline)
}

// Watch looks whether the authority can be reached, until ctx ends.
func (l *Live) Watch(ctx context.Context, p *Pipeline) {
	if l.Authority == nil {
		return // a service that only registers
	}
	tick := time.NewTicker(l.paced(watchEvery, 100*time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := l.look(ctx, p); err != nil && ctx.Err() == nil {
				l.Log.Warn("the contingency could not be recorded", "error", err.Error())
			}
		}
	}
}

// look records that a contingency began or ended. Nothing else changes for
// integrators: what they send is registered, numbered and signed, and waits.
func (l *Live) look(ctx context.Context, p *Pipeline) error {
	since, down := l.Authority.Down()
	now := l.Now()
	last, err := l.Store.Contingency(ctx, p.Env)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	active := err == nil && last.EndedAt.IsZero()
	switch {
	case down && !active && now.Sub(since) >= l.paced(contingencyAfter, 0):
		return l.Store.Update(ctx, func(tx *store.Tx) error {
			began, err := tx.StartContingency(ctx, p.Env, now)
			if began {
				l.Log.Error("contingency: the tax authority is out of reach; signed documents are kept and will be sent", "since", since)
			}
			return err
		})
	case !down && active:
		err := l.Store.Update(ctx, func(tx *store.Tx) error {
			ended, err := tx.EndContingency(ctx, p.Env, stageSubmit, now)
			if ended {
				l.Log.Warn("contingency is over; what was kept is sent, the oldest first", "deadline", now.Add(ContingencyTime))
			}
			return err
		})
		p.rouse()
		return err
	}
	return nil
}

// contingent tells whether a signed document that the authority has not judged
// may be printed with the legend of the contingency.
func (p *Pipeline) contingent(ctx context.Context, inv store.Invoice) (bool, error) {
	switch inv.Status {
	case fiscal.Queued, fiscal.Submitted, fiscal.Processing, fiscal.OutcomeUnknown:
	default:
		return false, nil
	}
	last, err := p.Store.Contingency(ctx, p.Env)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil && last.EndedAt.IsZero(), err
}
