// Package live is the plan of certification and production: number and sign a
// document, submit it, find out the verdict, and deliver it to the buyer. Where a
// document stands is decided by package evidence from all that is known of it.
package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/cause"
	"github.com/fiscalhub/fiscalhub/internal/decision"
	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/wake"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// Authority is the tax authority, and the buyers that its directory names. The
// errors are those of package fiscal: a submission returns ErrNotReceived,
// ErrInconclusive or ErrNotDelegated, a look-up ErrUnavailable or ErrAbsent.
type Authority interface {
	// Reserve waits until a document of a taxpayer, or its summary, may be sent. send
	// sends it once; its time starts with the call. release gives the reservation back.
	// Reserve fails with ErrNotReceived or ErrNotDelegated: then nothing was sent.
	Reserve(ctx context.Context, id *xmlsig.Identity, rnc string, summary bool) (
		send func(context.Context, fiscal.Shipment) (fiscal.AuthorityAnswer, error), release func(), err error)
	Result(ctx context.Context, id *xmlsig.Identity, trackID string) (fiscal.AuthorityAnswer, error)
	TrackIDs(ctx context.Context, id *xmlsig.Identity, q fiscal.Query) ([]fiscal.AuthorityAnswer, error)
	State(ctx context.Context, id *xmlsig.Identity, q fiscal.Query) (fiscal.AuthorityAnswer, error)
	SummaryState(ctx context.Context, id *xmlsig.Identity, q fiscal.Query) (fiscal.AuthorityAnswer, error)
	BuyerEndpoint(ctx context.Context, id *xmlsig.Identity, rnc string) (fiscal.BuyerEndpoint, bool, error)
	Deliver(ctx context.Context, id *xmlsig.Identity, to fiscal.BuyerEndpoint, s fiscal.Shipment) (fiscal.Acknowledgement, error)
	// Clock returns how far the authority's clock is ahead of ours.
	Clock() (ahead time.Duration, known bool)
	// CheckClock makes sure that Clock is known and confirmed. It fails with
	// ErrUnavailable when the authority does not answer.
	CheckClock(ctx context.Context) error
	// Down returns since when the authority has been out of reach of this node.
	Down() (since time.Time, down bool)
	// ClockConfirmed reports whether Clock was confirmed earlier in this process and
	// the clock of this machine was not set since.
	ClockConfirmed() bool
	// Undelegated reports whether the authority has just said that a taxpayer has
	// not delegated a signer.
	Undelegated(id *xmlsig.Identity, rnc string) (reason string, is bool)
}

// Identities provide the certificate and key that sign for a taxpayer.
type Identities interface {
	Identity(ctx context.Context, scope store.Scope, at time.Time) (*xmlsig.Identity, error)
}

// Options configure a plan.
type Options struct {
	Store      *store.Store
	Env        fiscal.Environment
	Authority  Authority
	Identities Identities
	Now        func() time.Time
	Log        *slog.Logger
	// Pace divides every wait.
	Pace wake.Pace
	// Fence knows which numbers were sent, whatever the database says. A nil Fence
	// checks nothing.
	Fence *fence.Fence
	// Point, for tests, is called before and after every commit and every write of
	// the witness by the plan itself. An error before the effect replaces it; one
	// after it hides its success.
	Point func(name string) error
	// Random, for tests, returns a number from 0 to n-1 for the jitter of pauses.
	Random func(n int64) int64
}

func (o Options) check() error {
	switch {
	case o.Store == nil:
		return errors.New("live: Options.Store is missing")
	case o.Env == "":
		return errors.New("live: Options.Env is missing")
	case o.Authority == nil || o.Identities == nil:
		return errors.New("live: Options.Authority or Options.Identities is missing")
	case o.Now == nil || o.Log == nil:
		return errors.New("live: Options.Now or Options.Log is missing")
	}
	return nil
}

// Plan is the plan of certification and production.
type Plan struct {
	settler
	env        fiscal.Environment
	authority  Authority
	identities Identities
	fence      *fence.Fence
	guard      *decision.Guard
	onPoint    func(name string) error
	random     func(n int64) int64

	mu     sync.Mutex
	queues map[queueKey]*numberer
	lines  map[queueKey]*line
	facts  map[store.Scope]cacheEntry[pipeline.Facts]
	ids    map[store.Scope]cacheEntry[*xmlsig.Identity]
	trials map[store.Queue]time.Time // when a suspended job of a queue was last tried
	limit  wake.LogLimit             // of lines that every document that waits would repeat
}

// cacheEntry is a value that was read a moment ago. Many documents of one taxpayer come
// at the same time, and the data of the taxpayer that they need seldom changes.
type cacheEntry[T any] struct {
	value T
	at    time.Time
}

const (
	cacheTime = time.Second // how old a cached value may be
	maxCached = 1024        // how many taxpayers are cached
)

// queueKey names the documents that take numbers one after the other.
type queueKey struct {
	scope store.Scope
	kind  fiscal.Type
}

// New returns the plan. It fails when an option that it needs is missing.
func New(o Options) (*Plan, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Point == nil {
		o.Point = func(string) error { return nil }
	}
	if o.Random == nil {
		o.Random = rand.Int64N
	}
	return &Plan{
		settler: settler{store: o.Store, now: o.Now, log: o.Log, pace: o.Pace, directory: newDirectory()},
		env:     o.Env, authority: o.Authority, identities: o.Identities, fence: o.Fence, guard: decision.NewGuard(o.Store, o.Log), onPoint: o.Point, random: o.Random,
		queues: make(map[queueKey]*numberer),
		lines:  make(map[queueKey]*line),
		facts:  make(map[store.Scope]cacheEntry[pipeline.Facts]),
		ids:    make(map[store.Scope]cacheEntry[*xmlsig.Identity]),
		trials: make(map[store.Queue]time.Time),
	}, nil
}

// The stages, as they are stored with a job.
const (
	stageIssue     = "issue"
	stageSubmit    = "submit"
	stagePoll      = "poll"
	stageReconcile = "reconcile"
	stageDeliver   = "deliver"
)

// Check refuses a date after today in the country or from before the taxpayer
// became an electronic issuer, and what the authority's format cannot carry. Ready
// checks the issuer's own data.
func (p *Plan) Check(ctx context.Context, scope store.Scope, inv *fiscal.Invoice) error {
	taxpayer, err := p.store.Taxpayer(ctx, scope.TaxpayerID)
	if err != nil {
		return err
	}
	var since fiscal.Date
	if taxpayer.ElectronicSince != "" {
		if since, err = fiscal.ParseDate(taxpayer.ElectronicSince); err != nil {
			return fmt.Errorf("live: taxpayer %s: electronic since: %w", taxpayer.ID, err)
		}
	}
	if err := inv.CheckDate(p.now(), since); err != nil {
		return err
	}
	return ecf.Check(ecf.Synthetic(), inv)
}

// Ready returns every fact that is missing.
func (p *Plan) Ready(ctx context.Context, scope store.Scope, t fiscal.Type) (fiscal.Problems, error) {
	facts, err := pipeline.ReadFacts(ctx, p.store, scope, t)
	if err == nil {
		facts.NumberRanges[t], err = p.fence.Inspect(ctx, facts.Taxpayer.RNC, facts.NumberRanges[t])
	}
	if err != nil {
		return nil, err
	}
	missing := facts.Missing(t, p.now())
	if len(missing) > 0 {
		return missing, nil
	}
	id, err := p.identity(ctx, scope)
	if err != nil {
		return nil, err
	}
	if reason, is := p.authority.Undelegated(id, facts.Taxpayer.RNC); is {
		missing = append(missing, fiscal.Problem{
			Field: "dgii", Code: "dgii.delegation_rejected",
			Message: lang.Messagef(
				"the tax authority says that the taxpayer has not delegated the signer of its certificate: %s",
				"la DGII indica que el contribuyente no ha delegado al firmante de su certificado: %s", reason),
		})
	}
	return missing, nil
}

// Start queues an invoice.
func (*Plan) Start(inv *fiscal.Invoice, _ pipeline.Scenario) pipeline.Start {
	return pipeline.Start{Status: fiscal.Queued, Messages: inv.Warnings, Cause: cause.New(cause.Registered), Plan: pipeline.LivePlan, Stage: stageIssue}
}

// Notifies reports that every change becomes an event.
func (*Plan) Notifies() bool { return true }

// Do does the work of one stage.
func (p *Plan) Do(ctx context.Context, w pipeline.Work) (pipeline.Result, error) {
	if w.Issued != nil && w.Invoice.ENCF == "" && w.Job.Stage != stageSubmit {
		// An earlier program has sent a document whose number was not shown yet.
		if err := p.show(ctx, w, *w.Issued); err != nil {
			return pipeline.Result{}, err
		}
	}
	switch w.Job.Stage {
	case stageIssue:
		return p.issue(ctx, w)
	case stageSubmit:
		return p.submit(ctx, w)
	case stagePoll:
		return p.poll(ctx, w)
	case stageReconcile:
		return p.reconcile(ctx, w)
	case stageDeliver:
		return p.deliver(ctx, w)
	}
	return pipeline.Result{}, errors.New("live: no stage " + w.Job.Stage)
}

// identity returns the certificate and key that sign for the taxpayer now. Without
// one it returns a *pipeline.WaitError: the document waits.
func (p *Plan) identity(ctx context.Context, scope store.Scope) (*xmlsig.Identity, error) {
	id, err := cached(p, p.ids, scope, func() (*xmlsig.Identity, error) { return p.identities.Identity(ctx, scope, p.now()) })
	if err != nil && !errors.Is(err, store.ErrUnavailable) {
		return nil, p.waitForTaxpayer(cause.Of(err))
	}
	return id, err
}

// cached returns a value that was read within cacheTime, or reads it.
func cached[T any](p *Plan, known map[store.Scope]cacheEntry[T], scope store.Scope, read func() (T, error)) (T, error) {
	now := p.now()
	p.mu.Lock()
	last, ok := known[scope]
	p.mu.Unlock()
	if age := now.Sub(last.at); ok && age >= 0 && age < cacheTime {
		return last.value, nil
	}
	value, err := read()
	if err != nil {
		return value, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(known) >= maxCached {
		clear(known)
	}
	known[scope] = cacheEntry[T]{value, now}
	return value, nil
}

// effect runs do between two points at which a test may stop the process or make the
// effect fail.
func (p *Plan) effect(what string, do func() error) error {
	if err := p.onPoint("before " + what); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return p.onPoint("after " + what)
}

// The conditions of the plan that keep documents waiting and are logged once.
const (
	nodeClock        = "clock of the node"
	authorityClock   = "clock of the authority"
	unconfirmedClock = "unconfirmed clock"
)

// checkNodeClock returns a *pipeline.WaitError while the clock of this node differs
// from the database's, which all nodes share: then this node signs and sends nothing.
func (p *Plan) checkNodeClock() error {
	skew, known := p.store.ClockSkew()
	if !known || skew.Abs() <= store.MaxClockSkew {
		p.limit.End(nodeClock)
		return nil
	}
	if p.limit.Allow(nodeClock, p.now()) {
		p.log.Error("The clock of this node differs from the database's. This node signs and sends nothing until they agree: set the clock of this machine.", "ahead", skew.String())
	}
	return p.waitForNodeClock(skew)
}
