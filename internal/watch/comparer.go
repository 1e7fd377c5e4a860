package watch

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/wake"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// Lookups ask the tax authority about a document by its number. The errors are those
// of package fiscal: ErrUnavailable, together with ErrOutage when the service does not
// work or must not be called now, and ErrAbsent.
type Lookups interface {
	State(ctx context.Context, id *xmlsig.Identity, q fiscal.Query) (fiscal.AuthorityAnswer, error)
	SummaryState(ctx context.Context, id *xmlsig.Identity, q fiscal.Query) (fiscal.AuthorityAnswer, error)
}

// Identities provide the certificate and key that speak for a taxpayer.
type Identities interface {
	Identity(ctx context.Context, scope store.Scope, at time.Time) (*xmlsig.Identity, error)
}

// ComparerOptions configure a Comparer.
type ComparerOptions struct {
	Store      *store.Store
	Env        fiscal.Environment
	Authority  Authority
	Lookups    Lookups
	Identities Identities
	// PerMinute is how many questions all nodes together ask the authority in a
	// minute.
	PerMinute int
	Now       func() time.Time
	Log       *slog.Logger
	// Pace divides every wait.
	Pace wake.Pace
	// Metrics, if set, is where the figures of the comparer are registered.
	Metrics prometheus.Registerer
	// AskAgain, if set, lets a worker ask the authority again about a rejected document
	// that it shows as accepted.
	AskAgain func(ctx context.Context, tx *store.Tx, scope store.Scope, documentID string) error
}

// A Comparer compares accepted and rejected documents with what the authority shows under
// their numbers, slowly and for as long as the service runs. A difference raises an alarm:
// an error in the log, a metric and a row that operators see. Nothing else changes: no
// status, no evidence, no event. Only a rejected document that the authority shows as
// accepted goes back to a worker, which finds out what is true.
//
// All nodes of an environment share one budget of questions and one position, which are
// a row of the database. A node that compares holds the row.
type Comparer struct {
	o        ComparerOptions
	limit    wake.LogLimit
	interval time.Duration // between two questions of all nodes
	metrics  *comparerMetrics
	warned   map[string]time.Time // by taxpayer: when the log last said that its documents cannot be compared
}

// NewComparer returns a comparer. It fails when an option that it needs is missing.
func NewComparer(o ComparerOptions) (*Comparer, error) {
	if o.Store == nil || o.Env == "" || o.Authority == nil || o.Lookups == nil || o.Identities == nil || o.Now == nil || o.Log == nil || o.PerMinute < 1 {
		return nil, errors.New("watch: ComparerOptions are incomplete")
	}
	if o.AskAgain == nil {
		o.AskAgain = func(context.Context, *store.Tx, store.Scope, string) error { return nil }
	}
	return &Comparer{
		o: o, interval: o.Pace.Of(time.Minute/time.Duration(o.PerMinute), 100*time.Millisecond), metrics: newComparerMetrics(o.Metrics),
		warned: make(map[string]time.Time),
	}, nil
}

const (
	// compareTime bounds the questions about one document. claimTime is longer: a
	// node that has not finished by then has died, and another node continues.
	compareTime = 4 * time.Minute
	claimTime   = 5 * time.Minute
	// longestWait is longer than any wait that a node records. A later moment was
	// recorded by a wrong clock and does not count.
	longestWait = time.Hour
	// workGrace is how long a document may wait for a worker before the comparer
	// leaves the authority to the workers.
	workGrace = 5 * time.Second
)

// failurePauses are the waits after questions about a document that the authority did
// not answer. After the last one the document is skipped: a question that the authority
// never answers must not stop the comparison of all others.
var failurePauses = []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute}

// Run compares until ctx ends.
func (c *Comparer) Run(ctx context.Context) {
	for ctx.Err() == nil {
		pause := c.interval
		err := c.Compare(ctx)
		if err != nil && ctx.Err() == nil {
			if c.limit.Allow("compare", c.o.Now()) {
				c.o.Log.Warn("Cannot compare documents with the tax authority. The comparison is tried again within a minute.", "error", err.Error())
			}
			pause = c.o.Pace.Of(time.Minute, time.Second)
		} else if err == nil {
			c.limit.End("compare")
		}
		wake.Sleep(ctx, pause)
	}
}

// Compare compares at most one document. It does nothing before the budget of all nodes
// allows another question, while the authority is out of reach or a contingency lasts,
// and while documents wait for a worker. An error is one of the store: the next call
// continues.
func (c *Comparer) Compare(ctx context.Context) error {
	state, err := c.read(ctx)
	if err != nil {
		return err
	}
	c.metrics.setCompared(state.ComparedAt)
	now := c.o.Now()
	if wait := state.NextAt.Sub(now); wait > 0 && wait <= longestWait {
		return nil
	}
	if busy, err := c.busy(ctx, now); err != nil || busy {
		return err
	}
	next, err := c.choose(ctx, state, now)
	if err != nil || next == nil {
		return err
	}
	if err := c.load(ctx, next, now); err != nil {
		return err
	}
	holder, claimed := store.NewID(), false
	err = c.o.Store.Update(ctx, func(tx *store.Tx) (err error) {
		claimed, err = tx.ClaimComparison(ctx, state, holder, now.Add(claimTime))
		return err
	})
	if err != nil || !claimed {
		return err
	}
	r := c.ask(ctx, next)
	r.after.NextAt = now.Add(max(r.pause, time.Duration(r.questions)*c.interval))
	return c.finish(context.WithoutCancel(ctx), holder, r)
}

// read reads the state of the comparison, and starts it on the first call. Documents
// that were judged before are older documents, which are compared again and again.
func (c *Comparer) read(ctx context.Context) (store.Comparison, error) {
	state, err := c.o.Store.Comparison(ctx, c.o.Env)
	if !errors.Is(err, store.ErrNotFound) {
		return state, err
	}
	now := c.o.Now()
	before := now.Add(-c.o.Pace.Scale(firstAfter))
	err = c.o.Store.Update(ctx, func(tx *store.Tx) error {
		return tx.StartComparison(ctx, store.Comparison{
			Environment: c.o.Env, NextAt: now, First: store.Position{At: before}, AgainSince: now, AgainUntil: before,
		})
	})
	if err != nil {
		return state, err
	}
	return c.o.Store.Comparison(ctx, c.o.Env)
}

// busy reports whether the authority is out of reach of any node, or the workers need
// it.
func (c *Comparer) busy(ctx context.Context, now time.Time) (bool, error) {
	if _, down := c.o.Authority.Down(); down {
		return true, nil
	}
	contact, err := c.o.Store.AuthorityContact(ctx, c.o.Env)
	if err != nil || !contact.FailingSince.IsZero() {
		return true, err
	}
	if suspended, err := c.o.Store.HasSuspendedJobs(ctx, c.o.Env); err != nil || suspended {
		return true, err
	}
	last, err := c.o.Store.Contingency(ctx, c.o.Env)
	if err == nil && last.EndedAt.IsZero() {
		return true, nil
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return true, err
	}
	due, err := c.o.Store.NextJob(ctx, c.o.Env, now, store.QueueMain)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil && now.Sub(due) >= workGrace, err
}

// finish stores the result and raises the alarms. The result is dropped when another
// node has taken over: that node compares the document itself.
func (c *Comparer) finish(ctx context.Context, holder string, r result) error {
	var found, ended []store.Difference
	held := false
	now := c.o.Now()
	err := c.o.Store.Update(ctx, func(tx *store.Tx) (err error) {
		found, ended = nil, nil
		if held, err = tx.FinishComparison(ctx, r.after, holder); err != nil || !held {
			return err
		}
		if found, ended, err = c.record(ctx, tx, r, now); err != nil || len(r.differences) == 0 || accepted(r.document.Invoice.Status) {
			return err
		}
		return c.o.AskAgain(ctx, tx, r.document.Invoice.Scope, r.document.Invoice.DocumentID)
	})
	if err != nil || !held {
		return err
	}
	c.metrics.count(r.outcome)
	c.metrics.setCompared(r.after.ComparedAt)
	for _, d := range found {
		c.metrics.difference(d.Kind)
		c.raise(d, r.encf)
	}
	for _, d := range ended {
		c.o.Log.Info("The tax authority shows a document as the service does again. The difference has ended.",
			"document_id", d.DocumentID, "encf", r.encf, "taxpayer_id", d.TaxpayerID, "difference", d.Kind)
	}
	return nil
}
