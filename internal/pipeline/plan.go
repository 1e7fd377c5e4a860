package pipeline

import (
	"context"
	"time"

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
	// Step does the work of one stage, outside of any transaction.
	Step(ctx context.Context, w Work) (Step, error)
	// Notifies reports whether changes become events for integrators.
	Notifies() bool
	// Resumes returns how many suspended jobs of a queue the next claim may take; the
	// empty queue means all queues.
	Resumes(q store.Queue) int
}

// A Watcher is a plan's background work that belongs to no document.
type Watcher interface {
	// Watch works until ctx ends.
	Watch(ctx context.Context, s Signals)
}

// Signals are what a Watcher may trigger in the engine.
type Signals struct {
	Wake   func()            // claim jobs now
	Notify func(store.Scope) // events of a taxpayer were committed
}

// Start is how an invoice begins: a status and, unless that is final, a first
// stage.
type Start struct {
	Status   fiscal.Status
	Messages []lang.Message
	Cause    string // for the history
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

// Step is the result of a stage. It is committed together with the job's move.
type Step struct {
	Change
	// Decide, if set, returns the change for the invoice as it is at the commit,
	// and adds the rows that belong to it. It may be called more than once.
	Decide func(rows *store.Batch, before store.Invoice) (Change, error)
	// CommitLate, if set, keeps what must not be lost when another worker has
	// taken the job over meanwhile: an answer of the authority. It returns the
	// invoice after its commit, and whether events were added.
	CommitLate func(ctx context.Context, tx *store.Tx) (after store.Invoice, notified bool, err error)
	// Committed says that the stage has committed its result itself and has moved
	// its job to Next, which this worker still holds.
	Committed bool
	// Issued and Evidence are what is known after the stage, for the stage that
	// follows at once; nil: as before.
	Issued   *store.Issued
	Evidence []evidence.Item
}

// Change is what a stage does to a document and its job.
type Change struct {
	Status   fiscal.Status // the same as before, or empty: no change
	Messages []string
	TrackID  string // empty: as before
	Cause    string
	Next     string        // the next stage; empty: the job is done
	After    time.Duration // when the next stage is due
	Again    bool          // the same stage continues to count its attempts
	OutSince time.Time     // with Again, as that of LaterError
	Notices  []Notice      // events in addition to the change of status
}

// Apply adds the rows of a change of status and its events. It returns the invoice
// as it is after the commit, and whether there are events.
func (c Change) Apply(rows *store.Batch, before store.Invoice, notifies bool, now time.Time) (after store.Invoice, notified bool) {
	after = before
	if c.Status != "" && c.Status != before.Status {
		after.Status, after.Messages, after.Revision = c.Status, c.Messages, before.Revision+1
		if c.TrackID != "" {
			after.TrackID = c.TrackID
		}
		after.UpdatedAt = NextUpdate(before.UpdatedAt, now)
		rows.ChangeStatus(before, after).AddHistoryEntry(store.HistoryEntry{
			Scope: before.Scope, InvoiceID: before.ID, ID: store.NewID(), At: after.UpdatedAt,
			Kind: "status_changed", Status: after.Status, Detail: c.Cause,
		})
	}
	if !notifies {
		return after, false
	}
	return AddEvents(rows, before, after, c.Notices, now)
}

// NextUpdate returns the instant of a change that follows one at before.
// Integrators see milliseconds, and no two changes of an invoice show the same.
func NextUpdate(before, now time.Time) time.Time {
	return store.Invoice{UpdatedAt: before}.NextUpdate(now)
}

// LaterError says that a stage cannot be done now although nothing failed: what
// is missing, and when to try again.
type LaterError struct {
	After  time.Duration
	Reason string
	// OutSince, if set, is since when the tax authority has been out of reach. The job
	// is then suspended until the authority answers, whatever After is, and for Rest at
	// least.
	OutSince time.Time
	Rest     time.Duration
	// Uncounted says that the attempt does not count, because nothing was tried.
	Uncounted bool
	// Behind says that the document waits for others with lower numbers, which wait for
	// the authority's answer: it waits where they do, whatever After is.
	Behind bool
	// Aside says that the document has a reason of its own to wait: others with higher
	// numbers do not wait for it.
	Aside bool
	// Held is Aside for a document that does not go on by itself: a person must decide. It
	// is tried again all the same, seldom.
	Held bool
}

func (e *LaterError) Error() string { return e.Reason }
