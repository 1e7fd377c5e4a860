// Package pipeline takes an invoice from the moment it is registered to its
// last status. What an environment does with an invoice is its plan; the
// runner carries out the plan's stages, each ending in one commit.
package pipeline

import (
	"context"
	"log/slog"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// Plan is what an environment does with an invoice.
type Plan interface {
	// Check applies the rules that depend on the day and on the taxpayer. Its
	// error is fiscal.Problems when the invoice breaks one.
	Check(ctx context.Context, scope store.Scope, inv *fiscal.Invoice) error
	// Ready names what keeps the taxpayer from issuing this type of invoice.
	Ready(ctx context.Context, scope store.Scope, t fiscal.Type) (fiscal.Problems, error)
	// Birth says how an invoice starts.
	Birth(inv *fiscal.Invoice, scenario Scenario) Birth
	// Step does the work of one stage, outside of any transaction.
	Step(ctx context.Context, w Work) (Step, error)
}

// Birth is how an invoice starts: with a status and, unless that is all there
// is to it, a first stage.
type Birth struct {
	Status   fiscal.Status
	Messages []string
	Cause    string // for the history
	Plan     string
	Stage    string        // empty: nothing remains to be done
	After    time.Duration // when the first stage is due
}

// Work is one stage to be done for one document.
type Work struct {
	Job     store.Job
	Invoice store.Invoice
}

// Step is the result of a stage, committed together with the job's move.
type Step struct {
	Status   fiscal.Status
	Messages []string
	Cause    string
	Next     string        // the next stage; empty: done
	After    time.Duration // when it is due
}

// Options are what a pipeline is made of.
type Options struct {
	Store *store.Store
	Plan  Plan
	Env   fiscal.Environment
	Now   func() time.Time
	Log   *slog.Logger
}

// Pipeline registers invoices and carries out their plan.
type Pipeline struct {
	Options
	journal *Journal
	wake    chan struct{}
}

// New makes a pipeline. Run does its background work.
func New(opt Options) *Pipeline {
	return &Pipeline{
		Options: opt,
		journal: newJournal(opt.Store, opt.Log),
		wake:    make(chan struct{}, 1),
	}
}

// Journal takes small writes that no answer waits for.
func (p *Pipeline) Journal() *Journal { return p.journal }

// Run works until ctx ends, then finishes what is under way.
func (p *Pipeline) Run(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.journal.run(ctx)
	}()
	p.work(ctx)
	<-done
}
