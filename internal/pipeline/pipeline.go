// Package pipeline is the engine that takes an invoice from its registration to
// its last status. What an environment does with an invoice is its plan. The
// runner carries out the stages of the plan; each stage ends in one commit.
package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/trace"
	"github.com/fiscalhub/fiscalhub/internal/wake"
)

// Options configure a pipeline.
type Options struct {
	Store *store.Store
	Plan  Plan
	Env   fiscal.Environment
	Now   func() time.Time
	Log   *slog.Logger
	// Pace divides the time for which a job is leased.
	Pace wake.Pace
	// Stamp is the authority's environment in the QR codes of printed pages. The
	// default is that of Env.
	Stamp ecf.Authority
	// OnCommit, if set, is called after a commit that has added events of a
	// taxpayer.
	OnCommit func(store.Scope)
	// OnStage, if set, is called after every stage of a document, for metrics. It must
	// not block.
	OnStage func(StageResult)
	// Tracer exports a span of every stage; nil exports none.
	Tracer *trace.Tracer
	// Point, for tests, is called before and after every commit of the runner, by
	// the worker that commits. An error before a commit replaces it; one after it
	// hides its success.
	Point func(name string) error
}

func (o Options) check() error {
	switch {
	case o.Store == nil:
		return errors.New("pipeline: Options.Store is missing")
	case o.Plan == nil:
		return errors.New("pipeline: Options.Plan is missing")
	case o.Env == "":
		return errors.New("pipeline: Options.Env is missing")
	case o.Now == nil || o.Log == nil:
		return errors.New("pipeline: Options.Now or Options.Log is missing")
	}
	return nil
}

// maxPrinting is how many pages are rendered at a time.
const maxPrinting = 2

// Pipeline registers invoices and carries out their plan.
type Pipeline struct {
	o             Options
	journal       *Journal
	subscriptions subscriptions
	signals       map[store.Queue]wake.Signal // wake the workers of a queue
	printers      chan struct{}
	limit         wake.LogLimit // of lines that many documents and tries would repeat
}

// New returns a pipeline. Run does its background work. New fails when an option
// that it needs is missing.
func New(o Options) (*Pipeline, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Stamp == "" {
		o.Stamp = ecf.AuthorityOf(o.Env)
	}
	if o.OnCommit == nil {
		o.OnCommit = func(store.Scope) {}
	}
	if o.OnStage == nil {
		o.OnStage = func(StageResult) {}
	}
	if o.Point == nil {
		o.Point = func(string) error { return nil }
	}
	signals := make(map[store.Queue]wake.Signal)
	for _, q := range store.Queues() {
		signals[q] = wake.NewSignal()
	}
	return &Pipeline{
		o: o, journal: newJournal(o.Store, o.Log), signals: signals,
		printers: make(chan struct{}, maxPrinting),
	}, nil
}

// Journal returns the journal for small writes that no answer depends on.
func (p *Pipeline) Journal() *Journal { return p.journal }

// Signals returns what work outside of the pipeline may trigger in it.
func (p *Pipeline) Signals() Signals { return Signals{Wake: p.notifyAll, Notify: p.o.OnCommit} }

// Run works until ctx ends, then finishes the stages that are under way.
func (p *Pipeline) Run(ctx context.Context) {
	var background sync.WaitGroup
	background.Go(func() { p.journal.run(ctx) })
	p.work(ctx)
	background.Wait()
}

// Publish wakes the requests that wait for a change of an invoice and, if events
// were added with the change, calls OnCommit. Call it after the commit.
func (p *Pipeline) Publish(inv store.Invoice, notified bool) {
	p.subscriptions.notify(inv.ID)
	if notified {
		p.o.OnCommit(inv.Scope)
	}
}
