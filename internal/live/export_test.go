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
	batch, errs := make([]*numberCall, len(orders)), make([]error, len(orders))
	for i, o := range orders {
		batch[i] = &numberCall{Value: &numberRequest{job: o.Job, invoice: o.Invoice, issuer: o.Issuer, identity: o.Identity, signedAt: o.SignedAt}}
	}
	n.q.work(ctx, slices.Clone(batch)) // work takes out those whose result it sets
	for i, r := range batch {
		errs[i] = r.Err
	}
	return errs
}

// Hold lets documents wait for their numbers until release is called.
func (n Numberer) Hold(ctx context.Context) (release func()) {
	held, free, run := make(chan struct{}), make(chan struct{}), n.q.group.Run
	n.q.group.Run = func(context.Context, []*numberCall) {
		n.q.group.Run = run
		close(held)
		<-free
	}
	go func() { _ = n.q.group.Do(ctx, nil) }()
	<-held
	return func() { close(free) }
}

// Waiting returns how many documents wait for their number.
func (n Numberer) Waiting() int { return n.q.group.Waiting() }
