// Package watch does the background work of a live environment that belongs to no
// single document: it begins and ends contingencies, warns of what is about to expire,
// reports documents without a verdict, compares judged documents with the authority,
// and deletes rows that were kept long enough.
package watch

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/wake"
)

// Authority says whether this node reaches the tax authority.
type Authority interface {
	// Down returns since when the authority has been out of reach of this node.
	Down() (since time.Time, down bool)
	// Failing returns since when calls of this node have failed, however few, and
	// none was answered.
	Failing() (since time.Time, failing bool)
	// LastAnswer returns when the authority last answered this process.
	LastAnswer() (at time.Time, ok bool)
	// Probe asks the authority for an answer.
	Probe(ctx context.Context) error
}

// Options configure a Watcher.
type Options struct {
	Store     *store.Store
	Env       fiscal.Environment
	Authority Authority
	Now       func() time.Time
	Log       *slog.Logger
	// Pace divides every wait.
	Pace wake.Pace
	// ApplyParked, if set, applies messages of buyers that came before their document or
	// their signer was known.
	ApplyParked func(context.Context) error
	// Metrics, if set, is where the figures of the watcher are registered.
	Metrics prometheus.Registerer
}

// Watcher is the background work of one node.
type Watcher struct {
	o       Options
	metrics *metrics
	limit   wake.LogLimit

	overdueWalk overdueWalk
	due         [4]time.Time // of the checks of Step
}

// New returns a watcher. It fails when an option that it needs is missing.
func New(o Options) (*Watcher, error) {
	if o.Store == nil || o.Env == "" || o.Authority == nil || o.Now == nil || o.Log == nil {
		return nil, errors.New("watch: Options are incomplete")
	}
	if o.ApplyParked == nil {
		o.ApplyParked = func(context.Context) error { return nil }
	}
	return &Watcher{
		o: o, metrics: newMetrics(o.Metrics),
	}, nil
}

const (
	maxPurge    = 50_000 // rows of each table that one purge deletes at most
	outageEvery = 5 * time.Second
	parkedEvery = time.Minute
	warnEvery   = time.Hour
)

// Watch checks until ctx ends.
func (w *Watcher) Watch(ctx context.Context, s pipeline.Signals) {
	tick := time.NewTicker(w.o.Pace.Of(outageEvery, 100*time.Millisecond))
	defer tick.Stop()
	for {
		w.Step(ctx, s)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Step does the checks that are due.
func (w *Watcher) Step(ctx context.Context, s pipeline.Signals) {
	for i, c := range []struct {
		every time.Duration
		floor time.Duration
		check func(context.Context, pipeline.Signals) error
		warn  string
	}{
		{outageEvery, 100 * time.Millisecond, w.CheckOutage, "Cannot record the state of the contingency. It is checked again within seconds."},
		{overdueEvery, time.Second, w.CheckOverdue, "Cannot check which documents have no verdict. The check is repeated within a minute."},
		{parkedEvery, time.Second, w.CheckParked, "Cannot apply messages of buyers that wait. They are tried again within a minute."},
		{warnEvery, time.Second, w.Warn, "Cannot check what is about to expire. The check is repeated within an hour."},
	} {
		if w.o.Now().Before(w.due[i]) {
			continue
		}
		w.due[i] = w.o.Now().Add(w.o.Pace.Of(c.every, c.floor))
		err := c.check(ctx, s)
		switch {
		case err == nil:
			w.limit.End(c.warn)
		case ctx.Err() == nil && w.limit.Allow(c.warn, w.o.Now()):
			w.o.Log.Warn(c.warn, "error", err.Error())
		}
	}
}

// Warn sends warnings and deletes rows that were kept long enough.
func (w *Watcher) Warn(ctx context.Context, s pipeline.Signals) error {
	_, err := w.o.Store.Purge(ctx, w.o.Now(), maxPurge)
	return errors.Join(err, w.sendWarnings(ctx, s))
}

// CheckParked applies messages of buyers that waited for their document or their signer.
func (w *Watcher) CheckParked(ctx context.Context, _ pipeline.Signals) error {
	return w.o.ApplyParked(ctx)
}

// addEvent adds an event about a taxpayer.
func (w *Watcher) addEvent(ctx context.Context, tx *store.Tx, scope store.Scope, kind string, data any) error {
	e, err := pipeline.NewEvent(scope, kind, w.o.Now(), data)
	if err != nil {
		return err
	}
	return tx.AddEvent(ctx, e)
}
