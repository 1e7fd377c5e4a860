package notify

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/trace"
	"github.com/fiscalhub/fiscalhub/internal/wake"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

const (
	workers    = 64                     // they mostly wait for the servers of integrators
	maxAhead   = 256                    // deliveries that wait in this process for an attempt to their endpoint to end
	maxFailing = workers / 2            // workers for endpoints whose last delivery failed
	drainTime  = 5 * time.Second        // for attempts that are under way when the service stops
	retryDelay = 10 * time.Second       // for deliveries that an internal error has prevented
	busyPause  = 100 * time.Millisecond // between claims that find nothing while workers are busy
	gatherTime = time.Millisecond       // after an attempt that ends, so that a claim finds more and a commit records more
	knownTime  = 100 * time.Millisecond // for which the sender uses an endpoint as it has read it

	// The pauses between attempts to record an outcome while the database is
	// unavailable.
	recordRetryFirst = 100 * time.Millisecond
	recordRetryMost  = 5 * time.Second
)

// SenderOptions configure a Sender. Store, Secrets, Poster, Env, Now and Log are required.
type SenderOptions struct {
	Store   *store.Store
	Secrets *access.Secrets
	Poster  Poster
	Env     fiscal.Environment
	Now     func() time.Time
	Log     *slog.Logger
	// BaseURL is the public address of the service. The links in events begin with it.
	BaseURL string
	// Pace divides every wait. 0 and 1 do not change the waits.
	Pace wake.Pace
	// OnCommit is called after the sender has committed an event of a taxpayer. It may
	// be nil.
	OnCommit func(store.Scope)
	// OnAttempt is called after every attempt with the state of the delivery then, for
	// metrics. It must not block. It may be nil.
	OnAttempt func(state store.DeliveryState, took time.Duration)
	// Tracer exports a span of every attempt; nil exports none.
	Tracer *trace.Tracer
	// Point, for tests, is called before and after every claim, every attempt and every
	// record of an outcome. An error before the effect replaces it; one after it hides
	// its success.
	Point func(name string) error
	// Random, for tests, returns a number from 0 to n-1 for the jitter of waits.
	Random func(n int64) int64
}

func (o SenderOptions) check() error {
	if o.Store == nil || o.Secrets == nil || o.Poster == nil || o.Env == "" || o.Now == nil || o.Log == nil {
		return errors.New("notify: a sender needs Store, Secrets, Poster, Env, Now and Log")
	}
	return nil
}

// Sender delivers events to webhook endpoints at least once. When it cannot record that
// an event was sent, it sends the event again with the same id.
type Sender struct {
	o             SenderOptions
	limit         wake.LogLimit
	drainTime     time.Duration
	signal        wake.Signal
	replaySignal  wake.Signal
	busy, failing atomic.Int64
	id            string // begins every lease of this sender
	ahead         aheadQueues
	outcomes      *outcomeGroup
	unrecorded    atomic.Int64 // attempts whose outcome waits for the database
}

// NewSender returns a sender; call Run to start it. NewSender fails when a required
// option is missing.
func NewSender(o SenderOptions) (*Sender, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.OnCommit == nil {
		o.OnCommit = func(store.Scope) {}
	}
	if o.OnAttempt == nil {
		o.OnAttempt = func(store.DeliveryState, time.Duration) {}
	}
	if o.Point == nil {
		o.Point = func(string) error { return nil }
	}
	if o.Random == nil {
		o.Random = rand.Int64N
	}
	return &Sender{
		o: o, drainTime: drainTime,
		signal: wake.NewSignal(), replaySignal: wake.NewSignal(), id: store.NewID(), outcomes: newOutcomeGroup(o.Store),
	}, nil
}

// Wake makes the sender look for due deliveries and for replays now.
func (s *Sender) Wake() {
	s.signal.Notify()
	s.replaySignal.Notify()
}

// Run sends due deliveries and works off replays until ctx ends. It then claims nothing
// more, and waits up to drainTime for the attempts that are under way.
func (s *Sender) Run(ctx context.Context) {
	working, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(s.drainTime, cancel) })
	defer stop()
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { s.runReplays(ctx) })
	for ctx.Err() == nil {
		if !s.canClaim() {
			s.signal.Wait(ctx, wake.PollEvery) // each attempt that ends wakes the loop
			continue
		}
		claimed, err := s.claim(ctx, maxAhead-s.ahead.len())
		s.warn(ctx, err, "Cannot claim webhook deliveries. The sender retries.")
		start, back := s.ahead.add(claimed)
		for _, d := range start {
			s.count(d, 1)
			running.Go(func() {
				defer s.signal.Notify()
				defer s.count(d, -1)
				s.deliverAll(ctx, working, d)
			})
		}
		s.releaseAll(working, back)
		s.signal.Wait(ctx, s.pause(ctx, len(claimed)))
		if s.busy.Load() > 0 {
			wake.Sleep(ctx, gatherTime) // a claim is a commit
		}
	}
}

// warn logs the error of a loop when it begins, and from time to time while it lasts. A
// nil error ends it.
func (s *Sender) warn(ctx context.Context, err error, message string, attributes ...any) {
	switch {
	case err == nil:
		s.limit.End(message)
	case ctx.Err() == nil && s.limit.Allow(message, s.o.Now()):
		s.o.Log.Warn(message, append(attributes, "error", err.Error())...)
	}
}

// Step works off the replays and makes the attempts that are due now, one after the
// other. It returns the number of attempts. The simulation calls it instead of Run,
// because it decides itself which node works when.
func (s *Sender) Step(ctx context.Context) (int, error) {
	for s.replayRound(ctx) && ctx.Err() == nil {
		continue
	}
	claimed, err := s.claim(ctx, 0)
	for _, d := range claimed {
		s.deliver(ctx, d)
	}
	return len(claimed), err
}

// canClaim reports whether there is a free worker. While an outcome cannot be recorded,
// there is none: the outcome of another attempt could not be recorded either, and a claim
// could take over a delivery whose outcome waits.
func (s *Sender) canClaim() bool { return s.busy.Load() < workers && s.unrecorded.Load() == 0 }

// pause returns how long to wait after a claim. When a claim finds nothing although
// workers are busy, the due deliveries wait for these workers, and the end of an attempt
// wakes the loop.
func (s *Sender) pause(ctx context.Context, claimed int) time.Duration {
	if claimed > 0 && s.busy.Load() > 0 {
		return busyPause // the end of an attempt comes earlier
	}
	now := s.o.Now()
	next, err := s.o.Store.NextDelivery(ctx, s.o.Env, now)
	wait := wake.Until(next, now, err)
	if claimed == 0 && s.busy.Load() > 0 {
		wait = max(wait, busyPause)
	}
	return wait
}

// count adds to the number of busy workers.
func (s *Sender) count(d store.Delivery, by int64) {
	s.busy.Add(by)
	if d.Failing {
		s.failing.Add(by)
	}
}

// claim claims as many due deliveries as there are free workers. Failing endpoints get at
// most half of the workers, so that endpoints that hang do not block the others. It claims
// up to ahead more for endpoints that answer, because a claim is a commit.
func (s *Sender) claim(ctx context.Context, ahead int) ([]store.Delivery, error) {
	now := s.o.Now()
	if err := s.o.Point("before claim"); err != nil {
		return nil, err
	}
	claimed, err := s.o.Store.ClaimDeliveries(ctx, store.DeliveryClaim{
		Environment: s.o.Env, Lease: s.id + store.NewID(), Now: now, Until: now.Add(s.o.Pace.Lease()),
		Limit: int(workers - s.busy.Load()), Failing: int(max(maxFailing-s.failing.Load(), 0)), Ahead: ahead, Sender: s.id,
	})
	return claimed, errors.Join(err, s.o.Point("after claim"))
}

// deliverAll makes the attempt of a claimed delivery, and then the attempts of deliveries that
// were claimed ahead for the same endpoint. It does not wait until the previous outcome is
// recorded. It gives the deliveries that were claimed ahead back
//   - after an attempt that did not succeed: the store then decides what the endpoint gets;
//   - when they have waited for long, or an outcome cannot be recorded;
//   - when ctx ends: the service stops, and another node sends the events.
func (s *Sender) deliverAll(ctx, working context.Context, d store.Delivery) {
	var recording sync.WaitGroup
	defer recording.Wait()
	for {
		late := d.Ahead && s.o.Now().After(d.LeaseUntil.Add(-2*s.o.Pace.Lease()/3))
		if ctx.Err() != nil || late || d.Ahead && s.unrecorded.Load() > 0 {
			s.releaseAll(working, append(s.ahead.drop(d.EndpointID), d))
			return
		}
		record, accepted := s.attempt(working, d)
		if !accepted {
			rest := s.ahead.block(d.EndpointID)
			record()
			s.ahead.unblock(d.EndpointID)
			s.releaseAll(working, rest)
			return
		}
		recording.Go(record)
		next, low, ok := s.ahead.next(d.EndpointID)
		if !ok {
			return
		}
		if low {
			s.signal.Notify()
		}
		d = next
	}
}

// deliver makes one attempt and records its outcome.
func (s *Sender) deliver(ctx context.Context, d store.Delivery) {
	record, _ := s.attempt(ctx, d)
	record()
}

// attempt makes one attempt. It returns a function that records the outcome, and whether
// the endpoint has accepted the event. The lease lasts until the function has returned.
func (s *Sender) attempt(ctx context.Context, d store.Delivery) (record func(), accepted bool) {
	nothing := func() {}
	message, endpoint, err := s.prepare(ctx, d)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nothing, false // the endpoint and its deliveries were deleted
	case err != nil:
		if s.limit.Allow("prepare "+d.EndpointID+err.Error(), s.o.Now()) {
			s.o.Log.Warn("Cannot prepare a webhook delivery. The sender retries.", "endpoint_id", d.EndpointID, "event_id", d.EventID, "error", err.Error())
		}
		s.release(ctx, d, s.o.Now().Add(s.o.Pace.Of(retryDelay, minWait)))
		return nothing, false
	case endpoint.Status != store.EndpointEnabled:
		s.release(ctx, d, d.RunAt) // the sender continues when the endpoint is enabled
		return nothing, false
	}
	at, id := s.o.Now(), store.NewID()
	message.RequestID = AttemptRequestID(id)
	if s.o.Point("before send") != nil {
		return nothing, false
	}
	// The lease lasts until the outcome is recorded, which can take long.
	stop := wake.Heartbeat(ctx, s.o.Pace.Lease(), func(ctx context.Context) { s.extendLease(ctx, d) })
	span := s.startSpan(ctx, d)
	result := s.o.Poster.Post(ctx, message)
	endSpan(span, d, result)
	if s.o.Point("after send") != nil {
		return stop, false
	}
	if result.Error == webhook.ClassStopped {
		s.release(context.WithoutCancel(ctx), d, d.RunAt)
		return stop, false
	}
	o := outcome(d, result, s.o.Now(), s.o.Pace, s.o.Random)
	o.Attempt = newAttempt(id, d.Scope, d.EndpointID, store.Event{ID: d.EventID, Kind: d.Kind}, d.Attempt+1, at, result)
	if o.State == store.DeliveryPending {
		o.Attempt.NextAt = o.RunAt
	}
	s.o.OnAttempt(o.State, s.o.Now().Sub(at))
	return func() {
		defer stop()
		s.record(ctx, d, endpoint, o)
	}, result.OK()
}

// prepare reads the event and the endpoint of a delivery. It signs with the secrets that
// are valid now, because a retry may be days after the event.
func (s *Sender) prepare(ctx context.Context, d store.Delivery) (webhook.Message, store.Endpoint, error) {
	e, err := s.endpoint(ctx, d)
	if err != nil {
		return webhook.Message{}, store.Endpoint{}, err
	}
	body := d.Body
	if body == nil {
		stored, err := s.o.Store.Event(ctx, d.Scope, d.EventID)
		if err != nil {
			return webhook.Message{}, store.Endpoint{}, err
		}
		body = stored.Body
	}
	secrets, err := endpointSecrets(s.o.Secrets, e, s.o.Now())
	body = event.Absolute(body, s.o.BaseURL) // the same bytes as in the feed
	return webhook.Message{URL: e.URL, ID: d.EventID, Body: body, Secrets: secrets}, e, err
}

// endpoint returns the endpoint of a delivery as the claim has read it, and reads it again
// when the claim was long ago.
func (s *Sender) endpoint(ctx context.Context, d store.Delivery) (store.Endpoint, error) {
	claimed := d.LeaseUntil.Add(-s.o.Pace.Lease())
	if since := s.o.Now().Sub(claimed); d.Endpoint != nil && since >= 0 && since < s.o.Pace.Scale(knownTime) {
		return *d.Endpoint, nil
	}
	return s.o.Store.Endpoint(ctx, d.Scope, d.EndpointID)
}

// extendLease extends the lease of a delivery. It reports no lost lease: record does, and
// after record there is no lease.
func (s *Sender) extendLease(ctx context.Context, d store.Delivery) {
	err := s.o.Store.Update(ctx, func(tx *store.Tx) error { return tx.HoldDelivery(ctx, d, s.o.Now().Add(s.o.Pace.Lease())) })
	if err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrLeaseLost) {
		s.o.Log.Warn("Cannot extend the lease of a webhook delivery. Another node may send the event too.", "endpoint_id", d.EndpointID, "event_id", d.EventID, "error", err.Error())
	}
}

// record stores the outcome of an attempt. While the database is unavailable, it retries
// until ctx ends, which is drainTime after the stop of the service. When it cannot store
// the outcome, the event is sent again after the lease has expired.
func (s *Sender) record(ctx context.Context, d store.Delivery, e store.Endpoint, o store.DeliveryOutcome) {
	reason := store.DisabledFailing
	if o.Gone {
		reason = store.DisabledGone
	}
	if o.State != store.DeliveryDelivered {
		var err error
		if o.Disabled, err = newEndpointEvent(event.EndpointDisabled, e, reason, s.o.Now()); err != nil {
			s.o.Log.Error("Cannot create an event. The delivery is sent again after its lease has expired.", "kind", event.EndpointDisabled, "error", err.Error())
			return
		}
	}
	disabled, err := s.commitOutcome(ctx, d, o)
	switch {
	case errors.Is(err, store.ErrLeaseLost):
		s.o.Log.Info("The outcome of a webhook attempt was not recorded, because the lease has expired. Another node has claimed the delivery.", "endpoint_id", d.EndpointID, "event_id", d.EventID)
	case err != nil:
		s.o.Log.Warn("Cannot record the outcome of a webhook attempt. The event is sent again after the lease has expired.", "endpoint_id", d.EndpointID, "event_id", d.EventID, "error", err.Error())
	case disabled:
		s.o.Log.Warn("A webhook endpoint was disabled. Its deliveries wait until it is enabled.", "endpoint_id", d.EndpointID, "taxpayer_id", d.TaxpayerID, "reason", reason)
		s.o.OnCommit(d.Scope)
	}
}

// commitOutcome records an outcome until it succeeds, fails for another reason than an
// unavailable database, or ctx ends. It tries at least once.
func (s *Sender) commitOutcome(ctx context.Context, d store.Delivery, o store.DeliveryOutcome) (disabled bool, err error) {
	failed := false
	defer func() {
		if failed {
			s.unrecorded.Add(-1)
		}
	}()
	err = wake.Retry(ctx, s.o.Pace.Scale(recordRetryFirst), s.o.Pace.Scale(recordRetryMost), func(err error) bool {
		retry := errors.Is(err, store.ErrUnavailable)
		if retry && !failed {
			failed = true
			s.unrecorded.Add(1)
			if s.limit.Allow("record", s.o.Now()) {
				s.o.Log.Warn("Cannot record the outcome of a webhook attempt, because the database is unavailable. The sender retries, and sends nothing until then.",
					"endpoint_id", d.EndpointID, "event_id", d.EventID, "error", err.Error())
			}
		}
		return retry
	}, func() error {
		if err := s.o.Point("before record"); err != nil {
			return err
		}
		var err error
		if disabled, err = s.outcomes.record(context.WithoutCancel(ctx), d, o); err != nil {
			return err
		}
		return s.o.Point("after record")
	})
	return disabled, err
}

// release ends the lease of a delivery, which is then due at runAt.
func (s *Sender) release(ctx context.Context, d store.Delivery, runAt time.Time) {
	err := s.o.Store.Update(ctx, func(tx *store.Tx) error { return tx.ReleaseDelivery(ctx, d, runAt) })
	if err != nil && !errors.Is(err, store.ErrLeaseLost) {
		s.o.Log.Warn("Cannot release a webhook delivery. It continues after its lease has expired.", "endpoint_id", d.EndpointID, "event_id", d.EventID, "error", err.Error())
	}
}

// releaseAll ends the leases of deliveries that no attempt was made of.
func (s *Sender) releaseAll(ctx context.Context, some []store.Delivery) {
	if len(some) == 0 {
		return
	}
	if err := s.o.Store.ReleaseDeliveries(ctx, some); err != nil {
		s.o.Log.Warn("Cannot release webhook deliveries. They continue after their leases have expired.", "endpoint_id", some[0].EndpointID, "error", err.Error())
	}
}
