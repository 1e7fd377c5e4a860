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

// Watch looks whether the authority can be reached, and ahead, until ctx ends.
func (l *Live) Watch(ctx context.Context, p *Pipeline) {
	if l.Authority == nil {
		return // a service that only registers
	}
	tick := time.NewTicker(l.paced(watchEvery, 100*time.Millisecond))
	defer tick.Stop()
	for ahead := l.Now(); ; {
		if now := l.Now(); !now.Before(ahead) {
			ahead = now.Add(l.paced(outlookEvery, time.Second))
			if err := l.lookAhead(ctx, p); err != nil && ctx.Err() == nil {
				l.Log.Warn("nobody could be warned", "error", err.Error())
			}
		}
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

// lookAhead warns of what is to come, and forgets what was kept long enough.
func (l *Live) lookAhead(ctx context.Context, p *Pipeline) error {
	_, err := l.Store.PurgeParked(ctx, l.Now())
	return errors.Join(err, l.outlook(ctx, p))
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
	begins := down && !active && now.Sub(since) >= l.paced(contingencyAfter, 0)
	if ends := !down && active; !begins && !ends {
		return nil
	}
	scopes, err := l.scopes(ctx, p.Env)
	if err != nil {
		return err
	}
	changed := false
	err = l.Store.Update(ctx, func(tx *store.Tx) (err error) {
		kind, data := NoticeContingencyStarted, contingencyData{StartedAt: instant(now)}
		if begins {
			changed, err = tx.StartContingency(ctx, p.Env, now)
		} else {
			changed, err = tx.EndContingency(ctx, p.Env, stageSubmit, now)
			kind, data = NoticeContingencyEnded, contingencyData{StartedAt: instant(last.StartedAt), EndedAt: instant(now), Deadline: instant(now.Add(ContingencyTime))}
		}
		if err != nil || !changed {
			return err
		}
		return l.tellContingency(ctx, tx, scopes, kind, data)
	})
	if err != nil || !changed {
		return err
	}
	if begins {
		l.Log.Error("contingency: the tax authority is out of reach; signed documents are kept and will be sent", "since", since)
	} else {
		l.Log.Warn("contingency is over; what was kept is sent, the oldest first", "deadline", now.Add(ContingencyTime))
		p.rouse()
	}
	for _, scope := range scopes {
		p.tell(scope)
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
