package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// Authority is the tax authority, and the buyers that its directory names. Its
// errors are those of package fiscal: ErrNotReceived, ErrInconclusive,
// ErrNotDelegated of what is sent, ErrUnavailable and ErrAbsent of what is asked.
type Authority interface {
	Submit(ctx context.Context, id *xmlsig.Identity, s fiscal.Shipment) (fiscal.Answer, error)
	SubmitSummary(ctx context.Context, id *xmlsig.Identity, s fiscal.Shipment) (fiscal.Answer, error)
	Result(ctx context.Context, id *xmlsig.Identity, trackID string) (fiscal.Answer, error)
	TrackIDs(ctx context.Context, id *xmlsig.Identity, q fiscal.Query) ([]fiscal.Answer, error)
	State(ctx context.Context, id *xmlsig.Identity, q fiscal.Query) (fiscal.Answer, error)
	SummaryState(ctx context.Context, id *xmlsig.Identity, q fiscal.Query) (fiscal.Answer, error)
	Receiver(ctx context.Context, id *xmlsig.Identity, rnc string) (fiscal.Receiver, bool, error)
	Deliver(ctx context.Context, id *xmlsig.Identity, to fiscal.Receiver, s fiscal.Shipment) (fiscal.Receipt, error)
	// Clock is how far the authority's clock is ahead of ours.
	Clock() (ahead time.Duration, known bool)
	// Undelegated tells whether the authority has just said that a taxpayer has
	// not delegated a signer.
	Undelegated(id *xmlsig.Identity, rnc string) (reason string, is bool)
	// Down tells since when the authority has been out of reach.
	Down() (since time.Time, down bool)
}

// Identities are who signs for a taxpayer.
type Identities interface {
	Identity(ctx context.Context, scope store.Scope, at time.Time) (*xmlsig.Identity, error)
}

// LiveOptions are what the plan of certification and production works with.
type LiveOptions struct {
	Store      *store.Store
	Authority  Authority
	Identities Identities
	Now        func() time.Time
	Log        *slog.Logger
	// Pace divides every wait; 0 and 1 leave them as they are.
	Pace float64
	// Fence knows which numbers were sent, whatever the database says; nil where
	// nobody does.
	Fence *Fence
	// Point, for tests, is told before and after every commit of the plan's own.
	Point func(name string)
}

// Live is the plan of certification and production: number and sign, submit,
// learn the verdict, deliver. Where a document stands is the fold of what is
// known of it.
type Live struct {
	LiveOptions
	mu     sync.Mutex
	queues map[queueKey]*numberer
	facts  map[store.Scope]recent[Facts]
	ids    map[store.Scope]recent[*xmlsig.Identity]

	directory directory
}

// recent is what was read not long ago. Documents of one taxpayer come in
// crowds, and what they need to know of it changes seldom.
type recent[T any] struct {
	value T
	at    time.Time
}

// recentTime is how old what is known of a taxpayer may be.
const recentTime = time.Second

// queueKey is whose numbers are taken one after the other.
type queueKey struct {
	scope store.Scope
	kind  fiscal.Type
}

// NewLive makes the plan.
func NewLive(o LiveOptions) *Live {
	if o.Pace <= 0 {
		o.Pace = 1
	}
	return &Live{LiveOptions: o, queues: make(map[queueKey]*numberer), facts: make(map[store.Scope]recent[Facts]), ids: make(map[store.Scope]recent[*xmlsig.Identity])}
}

// The stages of the plan.
const (
	livePlan       = "live"
	stageIssue     = "issue"
	stageSubmit    = "submit"
	stagePoll      = "poll"
	stageReconcile = "reconcile"
	stageDeliver   = "deliver"
)

// Check refuses a date after today in the country, or from before the taxpayer
// became an electronic issuer, and what the authority's format cannot carry. The
// issuer's own data are a matter of Ready.
func (l *Live) Check(ctx context.Context, scope store.Scope, inv *fiscal.Invoice) error {
	taxpayer, err := l.Store.Taxpayer(ctx, scope.TaxpayerID)
	if err != nil {
		return err
	}
	var since fiscal.Date
	if taxpayer.ElectronicSince != "" {
		if since, err = fiscal.ParseDate(taxpayer.ElectronicSince); err != nil {
			return fmt.Errorf("pipeline: taxpayer %s: electronic since: %w", taxpayer.ID, err)
		}
	}
	if err := inv.CheckDate(l.Now(), since); err != nil {
		return err
	}
	return ecf.Check(ecf.Synthetic(), inv)
}

// Ready names every fact that is missing.
func (l *Live) Ready(ctx context.Context, scope store.Scope, t fiscal.Type) (fiscal.Problems, error) {
	facts, err := ReadFacts(ctx, l.Store, scope, t)
	if err == nil {
		facts.Sequences[t], err = l.Fence.Inspect(ctx, facts.Taxpayer.RNC, facts.Sequences[t])
	}
	if err != nil {
		return nil, err
	}
	missing := facts.Missing(t, l.Now())
	if len(missing) > 0 {
		return missing, nil
	}
	id, err := l.identity(ctx, scope)
	if err != nil {
		return nil, err
	}
	if reason, is := l.Authority.Undelegated(id, facts.Taxpayer.RNC); is {
		missing = append(missing, fiscal.Problem{
			Field: "dgii", Code: "dgii.delegation_rejected",
			Message: "the tax authority says that the taxpayer has not delegated the signer of its certificate: " + reason,
		})
	}
	return missing, nil
}

// Birth queues an invoice.
func (*Live) Birth(inv *fiscal.Invoice, _ Scenario) Birth {
	return Birth{Status: fiscal.Queued, Messages: inv.Warnings, Cause: "registered", Plan: livePlan, Stage: stageIssue}
}

// Tells integrators of everything.
func (*Live) Tells() bool { return true }

// Step does the work of one stage.
func (l *Live) Step(ctx context.Context, w Work) (Step, error) {
	switch w.Job.Stage {
	case stageIssue:
		return l.issue(ctx, w)
	case stageSubmit:
		return l.submit(ctx, w)
	case stagePoll:
		return l.poll(ctx, w)
	case stageReconcile:
		return l.reconcile(ctx, w)
	case stageDeliver:
		return l.deliver(ctx, w)
	}
	return Step{}, errors.New("pipeline: no stage " + w.Job.Stage)
}

func (l *Live) point(name string) {
	if l.Point != nil {
		l.Point(name)
	}
}

// paced is a wait at the pace of the plan, and no less than a floor.
func (l *Live) paced(d, floor time.Duration) time.Duration {
	return max(time.Duration(float64(d)/l.Pace), min(floor, d))
}

// identity is who signs, or speaks to the authority, for a document's taxpayer
// now. Without one the document waits.
func (l *Live) identity(ctx context.Context, scope store.Scope) (*xmlsig.Identity, error) {
	id, err := lately(l, l.ids, scope, func() (*xmlsig.Identity, error) { return l.Identities.Identity(ctx, scope, l.Now()) })
	if err != nil && !errors.Is(err, store.ErrUnavailable) {
		return nil, &Later{l.paced(readinessPause, time.Second), err.Error()}
	}
	return id, err
}

// lately returns what was read not long ago, or reads it.
func lately[T any](l *Live, known map[store.Scope]recent[T], scope store.Scope, read func() (T, error)) (T, error) {
	now := l.Now()
	l.mu.Lock()
	last, ok := known[scope]
	l.mu.Unlock()
	if age := now.Sub(last.at); ok && age >= 0 && age < recentTime {
		return last.value, nil
	}
	value, err := read()
	if err != nil {
		return value, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(known) >= maxRecent {
		clear(known)
	}
	known[scope] = recent[T]{value, now}
	return value, nil
}

// maxRecent bounds how many taxpayers are remembered.
const maxRecent = 1024

// readinessPause is how soon a document that waits for its taxpayer looks again.
const readinessPause = time.Minute
