package live

import (
	"context"
	"slices"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// What the tests of live compare with.
const (
	AbsentSpan     = absentSpan
	AbsentTimes    = absentTimes
	BlindRound     = blindRound
	EndpointTime   = endpointTime
	StageDeliver   = stageDeliver
	StageIssue     = stageIssue
	StageReconcile = stageReconcile
	StageSubmit    = stageSubmit
)

// Change is change, for a test that decides itself.
func (r *Resolver) Change(ctx context.Context, action string, scope store.Scope, documentID, note string,
	fn func(*store.Tx) (store.Invoice, error),
) (store.Invoice, error) {
	return r.change(ctx, action, scope, documentID, note, fn)
}

// Closed is closed.
func Closed(a store.Attempt, class store.Class, at time.Time) *store.Attempt {
	return closed(a, class, at)
}

// Order is a document that wants a number.
type Order struct {
	Job      store.Job
	Invoice  *fiscal.Invoice
	Issuer   ecf.Issuer
	Identity *xmlsig.Identity
	SignedAt time.Time
}

// Numberer numbers the documents of one taxpayer and type.
type Numberer struct{ q *numberer }

// Numberer returns the numberer of a taxpayer and type.
func (p *Plan) Numberer(scope store.Scope, kind fiscal.Type) Numberer {
	return Numberer{p.queue(queueKey{scope, kind})}
}

// Issue issues a batch and returns what became of each document.
func (n Numberer) Issue(ctx context.Context, orders ...Order) []error {
	batch, errs := make([]*numberRequest, len(orders)), make([]error, len(orders))
	for i, o := range orders {
		batch[i] = &numberRequest{job: o.Job, invoice: o.Invoice, issuer: o.Issuer, identity: o.Identity, signedAt: o.SignedAt, done: make(chan error, 1)}
	}
	n.q.work(ctx, slices.Clone(batch)) // work takes out those that it answers
	for i, r := range batch {
		errs[i] = <-r.done
	}
	return errs
}

// Hold keeps documents waiting until HandOver lets the first of them lead.
func (n Numberer) Hold(is bool) {
	n.q.mu.Lock()
	defer n.q.mu.Unlock()
	n.q.busy = is
}

// HandOver lets the first document that waits lead.
func (n Numberer) HandOver() { n.q.handOver() }

// Waiting returns how many documents wait for their number.
func (n Numberer) Waiting() int {
	n.q.mu.Lock()
	defer n.q.mu.Unlock()
	return len(n.q.waiting)
}
