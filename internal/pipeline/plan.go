package pipeline

import (
	"context"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/cause"
	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/trace"
)

// Plan is what an environment does with an invoice.
type Plan interface {
	// Check applies the rules that depend on the day and on the taxpayer. It
	// returns fiscal.Problems when the invoice breaks one.
	Check(ctx context.Context, scope store.Scope, inv *fiscal.Invoice) error
	// Ready returns what keeps the taxpayer from issuing this type of invoice.
	Ready(ctx context.Context, scope store.Scope, t fiscal.Type) (fiscal.Problems, error)
	// Start returns the first status of an invoice and its first stage.
	Start(inv *fiscal.Invoice, scenario Scenario) Start
	// Do does the work of one stage, outside of any transaction. It returns a *WaitError
	// when the stage cannot be done now although nothing failed.
	Do(ctx context.Context, w Work) (Result, error)
	Settler
	// Notifies reports whether changes become events for integrators.
	Notifies() bool
	// Resumes returns how many suspended jobs of a queue the next claim may take; the
	// empty queue means all queues.
	Resumes(q store.Queue) int
}

// A Settler decides where a document goes when something was learnt about it.
type Settler interface {
	// Settle returns where everything that is known puts a document. It may be called more
	// than once for one commit.
	Settle(d Document) Move
}

// Signals are what background work that belongs to no document may trigger in the engine.
type Signals struct {
	Wake   func()            // claim jobs now
	Notify func(store.Scope) // events of a taxpayer were committed
}

// Start is how an invoice begins: a status and, unless that is final, a first
// stage.
type Start struct {
	Status   fiscal.Status
	Messages []lang.Message
	Cause    cause.Cause // for the history
	Plan     string
	Stage    string        // empty: there is nothing left to do
	After    time.Duration // when the first stage is due
}

// Work is one stage to be done for one document, with everything that is known of
// the document. While the job is leased no other worker adds to that.
type Work struct {
	Job      store.Job
	Invoice  store.Invoice
	Request  []byte        // canonical JSON; nil once a number was taken
	Issued   *store.Issued // nil until a number was taken; its XML may not have been read. Invoice.ENCF is empty until it is shown
	Evidence []evidence.Item
	// Fresh says that this worker signed the document a moment ago: no attempt to
	// send it can exist.
	Fresh bool
	// Hold commits rows in the middle of a stage, before an effect that cannot be
	// undone. It fails with store.ErrLeaseLost when another worker has the job.
	Hold func(ctx context.Context, rows *store.Batch) error

	state  *store.DocumentState // as read with the claim, not decoded yet
	before fiscal.Status        // before the stage
	trace  string               // id of the document's trace; empty: it has none
	span   *trace.Span          // of the stage; nil: it is not exported
}
