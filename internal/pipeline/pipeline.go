// Package pipeline takes an invoice from the moment it is registered to its
// last status. What an environment does with an invoice is its plan; the
// runner carries out the plan's stages, each ending in one commit.
package pipeline

import (
	"context"
	"crypto/x509"
	"log/slog"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
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
	// Tells says whether integrators are told of what happens.
	Tells() bool
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

// Work is one stage to be done for one document, and all that is known of the
// document. For as long as its job is held nobody else adds to that.
type Work struct {
	Job      store.Job
	Invoice  store.Invoice
	Request  []byte        // canonical; only while no number was taken
	Issued   *store.Issued // nil: no number was taken; its bytes may not have been read
	Evidence []Evidence
	// Fresh tells that the document was signed a moment ago by this worker:
	// nothing can have been sent of it.
	Fresh bool
	// Hold commits rows in the middle of a stage, before an effect that cannot
	// be undone. It fails when the job is no longer ours.
	Hold func(ctx context.Context, rows *store.Batch) error

	file *store.File // as it was read, not yet understood
}

// Step is the result of a stage, committed together with the job's move.
type Step struct {
	Change
	// Within decides the change from the invoice as it is when it is committed,
	// and adds the rows that belong to it. It may be asked more than once.
	Within func(rows *store.Batch, before store.Invoice) (Change, error)
	// Late keeps what must not be lost when the job has gone to another worker
	// meanwhile: an answer of the authority that is already in hand.
	// It returns the invoice as it is then, and whether there is something to
	// tell.
	Late func(ctx context.Context, tx *store.Tx) (after store.Invoice, told bool, err error)
	// Committed tells that the stage has committed its result itself, and moved
	// its job to Next, which it still holds.
	Committed bool
	// Issued and Evidence are what is known after it, for the stage that follows
	// at once; nil: as before.
	Issued   *store.Issued
	Evidence []Evidence
}

// Change is what a stage does to a document and its job.
type Change struct {
	Status   fiscal.Status // the same as before, or empty: no change
	Messages []string
	TrackID  string // empty: as before
	Cause    string
	Next     string        // the next stage; empty: done
	After    time.Duration // when it is due
	Again    bool          // the same stage goes on counting its attempts
	Tell     []Tidings     // what integrators are told beside a change of status
}

// Later says that a stage cannot be done now, through nobody's fault: what is
// missing, and when to look again.
type Later struct {
	After  time.Duration
	Reason string
}

func (l *Later) Error() string { return l.Reason }

// Options are what a pipeline is made of.
type Options struct {
	Store *store.Store
	Plan  Plan
	Env   fiscal.Environment
	Now   func() time.Time
	Log   *slog.Logger
	// Pace divides the time that a job is held without a sign of life; 0 and 1
	// leave it as it is.
	Pace float64
	// Stamp is the authority's environment that printed pages point at; that of
	// Env unless told.
	Stamp ecf.Authority
	// Roots are whom the signatures of others must lead to; nil: none is trusted.
	Roots *x509.CertPool
	// Told, if there is one, hears after a commit whose integrators there is
	// something to tell.
	Told func(store.Scope)
	// Point, for tests, is told before and after every commit of the runner, by
	// the worker whose commit it is.
	Point func(name string)
}

// maxPrinting is how many pages are rendered at a time.
const maxPrinting = 2

// Pipeline registers invoices and carries out their plan.
type Pipeline struct {
	Options
	journal  *Journal
	bell     bell
	wake     chan struct{}
	printers chan struct{}
}

// New makes a pipeline. Run does its background work.
func New(opt Options) *Pipeline {
	return &Pipeline{
		Options:  opt,
		journal:  newJournal(opt.Store, opt.Log),
		wake:     make(chan struct{}, 1),
		printers: make(chan struct{}, maxPrinting),
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
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if w, ok := p.Plan.(lookout); ok {
			w.Watch(ctx, p)
		}
	}()
	p.work(ctx)
	<-done
	<-watched
}
