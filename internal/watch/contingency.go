package watch

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

const (
	// contingencyAfter is for how long no node may have had an answer of the authority
	// before a contingency begins.
	contingencyAfter = 10 * time.Minute
	// answerEvery is how often a node records that the authority answers, while
	// nothing fails.
	answerEvery = 30 * time.Second
	// failingTime is how long the calls of a node must have failed before the node
	// asks the authority itself, and the others learn from it when there is no answer.
	failingTime = 30 * time.Second
)

// CheckOutage records whether this node reaches the authority, and begins or ends the
// contingency of the cluster. A contingency begins when no node has had an answer for
// ten minutes, and ends with an answer that a node really got. Nothing else changes
// for integrators: their invoices are registered, numbered and signed, and wait. The
// end of a contingency changes no job: each node takes the suspended jobs as soon as it
// reaches the authority itself.
func (w *Watcher) CheckOutage(ctx context.Context, s pipeline.Signals) error {
	last, err := w.o.Store.Contingency(ctx, w.o.Env)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	active := err == nil && last.EndedAt.IsZero()
	contact, back, err := w.reportContact(ctx, active, last.StartedAt)
	if err != nil {
		return err
	}
	if back {
		w.o.Log.Info("The tax authority answers again. Documents that waited continue, oldest first.")
		s.Wake()
	}
	now := w.o.Now()
	// A contingency that a clock recorded which was ahead began before every answer.
	answered := contact.AnsweredAt.After(last.StartedAt) || store.WrongClock(last.StartedAt, now)
	begins := !active && !contact.FailingSince.IsZero() && now.Sub(contact.FailingSince) >= w.o.Pace.Scale(contingencyAfter)
	ends := active && contact.FailingSince.IsZero() && answered
	if begins || ends {
		if err := w.changeContingency(ctx, s, begins, contact, last, now); err != nil {
			return err
		}
		active = begins
	}
	w.metrics.setContingency(active)
	return nil
}

// reportContact stores, for the other nodes, whether this one reaches the authority, and
// returns what all of them know. back says that the report ended the recorded failures.
// While a node fails, or a contingency lasts, a node without a fresh answer asks the
// authority itself. So an outage is noticed however few calls there are.
func (w *Watcher) reportContact(ctx context.Context, active bool, started time.Time) (contact store.AuthorityContact, back bool, err error) {
	if contact, err = w.readContact(ctx); err != nil {
		return contact, false, err
	}
	answered := w.lastAnswer()
	failing := !contact.FailingSince.IsZero()
	if failing && !answered.After(contact.FailingSince) || active && !answered.After(started) || w.failing() != nil {
		_ = w.o.Authority.Probe(ctx) // an answer shows in LastAnswer, a failure in Failing
		answered = w.lastAnswer()
	}
	since := w.failing()
	var report func(tx *store.Tx) error
	switch fresh := answered.Sub(contact.AnsweredAt); {
	case fresh > 0 && (failing || active || fresh >= w.o.Pace.Scale(answerEvery)):
		report = func(tx *store.Tx) error { return tx.ReportAnswer(ctx, w.o.Env, answered) }
	case since != nil && !failing:
		report = func(tx *store.Tx) error { return tx.ReportFailure(ctx, w.o.Env, *since) }
	default:
		return contact, false, nil
	}
	if err := w.o.Store.Update(ctx, report); err != nil {
		return contact, false, err
	}
	contact, err = w.o.Store.AuthorityContact(ctx, w.o.Env)
	return contact, failing && contact.FailingSince.IsZero(), err
}

// readContact reads what the nodes know together. It corrects what a clock recorded which
// was ahead.
func (w *Watcher) readContact(ctx context.Context) (store.AuthorityContact, error) {
	contact, err := w.o.Store.AuthorityContact(ctx, w.o.Env)
	now := w.o.Now()
	if err != nil || !store.WrongClock(contact.AnsweredAt, now) && !store.WrongClock(contact.FailingSince, now) {
		return contact, err
	}
	if err := w.o.Store.Update(ctx, func(tx *store.Tx) error { return tx.CorrectContact(ctx, w.o.Env, now) }); err != nil {
		return contact, err
	}
	return w.o.Store.AuthorityContact(ctx, w.o.Env)
}

// lastAnswer returns when the authority last answered this process. It is zero when it never
// did, or when the clock was ahead then.
func (w *Watcher) lastAnswer() time.Time {
	at, _ := w.o.Authority.LastAnswer()
	if store.WrongClock(at, w.o.Now()) {
		return time.Time{}
	}
	return at
}

// failing returns since when the calls of this node have failed; nil when they do not,
// or only for a moment. The time runs from now on when the clock was ahead then.
func (w *Watcher) failing() *time.Time {
	since, failing := w.o.Authority.Failing()
	if now := w.o.Now(); failing && store.WrongClock(since, now) {
		return &now
	}
	if !failing || w.o.Now().Sub(since) < w.o.Pace.Scale(failingTime) {
		return nil
	}
	return &since
}

// changeContingency begins or ends the contingency, with an event for each taxpayer.
// Only one node does: the others find that it is done.
func (w *Watcher) changeContingency(ctx context.Context, s pipeline.Signals, begins bool, contact store.AuthorityContact, last store.Contingency, now time.Time) error {
	scopes, err := w.scopes(ctx)
	if err != nil {
		return err
	}
	changed, deadline := false, now.Add(fiscal.ContingencyTime)
	err = w.o.Store.Update(ctx, func(tx *store.Tx) (err error) {
		if begins {
			changed, err = tx.StartContingency(ctx, w.o.Env, now)
		} else {
			changed, err = tx.EndContingency(ctx, w.o.Env, now)
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
		w.o.Log.Error("Contingency: no node can reach the tax authority. Signed documents wait and will be sent automatically.", "since", contact.FailingSince)
	} else {
		w.o.Log.Warn("The contingency is over. Documents that waited are sent, oldest first.", "deadline", deadline)
	}
	for _, scope := range scopes {
		s.Notify(scope)
	}
	return nil
}

// scopes returns the taxpayers that have a certificate in the environment.
func (w *Watcher) scopes(ctx context.Context) ([]store.Scope, error) {
	certificates, err := w.o.Store.Certificates(ctx)
	if err != nil {
		return nil, err
	}
	var all []store.Scope
	for _, c := range certificates {
		if c.Environment == w.o.Env && !slices.Contains(all, c.Scope) {
			all = append(all, c.Scope)
		}
	}
	return all, nil
}
