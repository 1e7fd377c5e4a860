package notify

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/wake"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

const (
	workers     = 64              // they mostly wait for the servers of integrators
	maxFailing  = workers / 2     // workers for endpoints whose last delivery failed
	drainTime   = 5 * time.Second // for attempts that are under way when the service stops
	recordTries = 5
	recordPause = 100 * time.Millisecond
	retryDelay  = 10 * time.Second // for deliveries that an internal error has prevented
)

// Options configure a Sender. Store, Secrets, Poster, Env, Now and Log are required.
type Options struct {
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
}

func (o Options) check() error {
	if o.Store == nil || o.Secrets == nil || o.Poster == nil || o.Env == "" || o.Now == nil || o.Log == nil {
		return errors.New("notify: a sender needs Store, Secrets, Poster, Env, Now and Log")
	}
	return nil
}

// Sender delivers events to webhook endpoints at least once. When it cannot record that
// an event was sent, it sends the event again with the same id.
type Sender struct {
	store         *store.Store
	secrets       *access.Secrets
	poster        Poster
	env           fiscal.Environment
	now           func() time.Time
	log           *slog.Logger
	baseURL       string
	pace          wake.Pace
	onCommit      func(store.Scope)
	onPoint       func(name string) // tests stop a worker here, as a crash would
	signal        wake.Signal
	busy, failing atomic.Int64
}

// NewSender returns a sender; call Run to start it. NewSender fails when a required
// option is missing.
func NewSender(o Options) (*Sender, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.OnCommit == nil {
		o.OnCommit = func(store.Scope) {}
	}
	return &Sender{
		store: o.Store, secrets: o.Secrets, poster: o.Poster, env: o.Env, now: o.Now, log: o.Log, baseURL: o.BaseURL, pace: o.Pace,
		onCommit: o.OnCommit, onPoint: func(string) {}, signal: wake.NewSignal(),
	}, nil
}

// Wake makes the sender look for due deliveries now.
func (s *Sender) Wake() { s.signal.Notify() }

// Run sends due deliveries until ctx ends. It then waits up to drainTime for the attempts
// that are under way.
func (s *Sender) Run(ctx context.Context) {
	working, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(drainTime, cancel) })
	defer stop()
	var attempts sync.WaitGroup
	defer attempts.Wait()
	for ctx.Err() == nil {
		claimed, err := s.claim(ctx)
		if err != nil && ctx.Err() == nil {
			s.log.Warn("Cannot claim webhook deliveries. The sender retries.", "error", err.Error())
		}
		for _, d := range claimed {
			s.count(d, 1)
			attempts.Go(func() {
				defer s.Wake()
				defer s.count(d, -1)
				s.deliver(working, d)
			})
		}
		now := s.now()
		next, err := s.store.NextDelivery(ctx, s.env, now)
		s.signal.Wait(ctx, wake.Until(next, now, err))
	}
}

// count adds to the number of busy workers.
func (s *Sender) count(d store.Delivery, by int64) {
	s.busy.Add(by)
	if d.Failing {
		s.failing.Add(by)
	}
}

// claim claims as many due deliveries as there are free workers. Failing endpoints get at
// most half of the workers, so that endpoints that hang do not block the others.
func (s *Sender) claim(ctx context.Context) ([]store.Delivery, error) {
	free := int(workers - s.busy.Load())
	if free <= 0 {
		return nil, nil
	}
	now := s.now()
	s.onPoint("before claim")
	claimed, err := s.store.ClaimDeliveries(ctx, store.DeliveryClaim{
		Environment: s.env, Lease: store.NewID(), Now: now, Until: now.Add(s.pace.Lease()),
		Limit: free, Failing: int(max(maxFailing-s.failing.Load(), 0)),
	})
	s.onPoint("after claim")
	return claimed, err
}

// deliver makes one attempt and records its outcome.
func (s *Sender) deliver(ctx context.Context, d store.Delivery) {
	message, endpoint, err := s.prepare(ctx, d)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return // the endpoint and its deliveries were deleted
	case err != nil:
		s.log.Warn("Cannot prepare a webhook delivery. The sender retries.", "endpoint_id", d.EndpointID, "event_id", d.EventID, "error", err.Error())
		s.release(ctx, d, s.now().Add(s.pace.Of(retryDelay, minWait)))
		return
	case endpoint.Status != store.EndpointEnabled:
		s.release(ctx, d, d.RunAt) // the sender continues when the endpoint is enabled
		return
	}
	at := s.now()
	s.onPoint("before send")
	stop := wake.Heartbeat(ctx, s.pace.Lease(), func(ctx context.Context) { s.extendLease(ctx, d) })
	result := s.poster.Post(ctx, message)
	stop()
	s.onPoint("after send")
	if result.Error == webhook.ClassStopped {
		s.release(context.WithoutCancel(ctx), d, d.RunAt)
		return
	}
	o := outcome(d, result, s.now(), s.pace)
	o.Attempt = newAttempt(message.RequestID, d.Scope, d.EndpointID, store.Event{ID: d.EventID, Kind: d.Kind}, d.Attempt+1, at, result)
	if o.State == store.DeliveryPending {
		o.Attempt.NextAt = o.RunAt
	}
	s.record(context.WithoutCancel(ctx), d, endpoint, o)
}

// prepare reads the event and the endpoint of a delivery. It signs with the secrets that
// are valid now, because a retry may be days after the event.
func (s *Sender) prepare(ctx context.Context, d store.Delivery) (webhook.Message, store.Endpoint, error) {
	e, err := s.store.Endpoint(ctx, d.Scope, d.EndpointID)
	if err != nil {
		return webhook.Message{}, store.Endpoint{}, err
	}
	stored, err := s.store.Event(ctx, d.Scope, d.EventID)
	if err != nil {
		return webhook.Message{}, store.Endpoint{}, err
	}
	secrets, err := endpointSecrets(s.secrets, e, s.now())
	body := event.Absolute(stored.Body, s.baseURL) // the same bytes as in the feed
	return webhook.Message{URL: e.URL, ID: stored.ID, Body: body, Secrets: secrets, RequestID: store.NewID()}, e, err
}

// extendLease extends the lease of a delivery.
func (s *Sender) extendLease(ctx context.Context, d store.Delivery) {
	err := s.store.Update(ctx, func(tx *store.Tx) error { return tx.HoldDelivery(ctx, d, s.now().Add(s.pace.Lease())) })
	if err != nil && ctx.Err() == nil {
		s.log.Warn("Cannot extend the lease of a webhook delivery. Another node may send the event too.", "endpoint_id", d.EndpointID, "event_id", d.EventID, "error", err.Error())
	}
}

// record stores the outcome of an attempt. When it cannot store the outcome, the event is
// sent again after the lease has expired.
func (s *Sender) record(ctx context.Context, d store.Delivery, e store.Endpoint, o store.DeliveryOutcome) {
	reason := store.DisabledFailing
	if o.Gone {
		reason = store.DisabledGone
	}
	var err error
	if o.Disabled, err = newEndpointEvent(event.EndpointDisabled, e, reason, s.now()); err != nil {
		s.log.Error("Cannot create an event. The delivery is sent again after its lease has expired.", "kind", event.EndpointDisabled, "error", err.Error())
		return
	}
	s.onPoint("before record")
	disabled, err := s.store.RecordDelivery(ctx, d, o)
	for try := 1; errors.Is(err, store.ErrUnavailable) && try < recordTries; try++ {
		wake.Sleep(ctx, recordPause)
		disabled, err = s.store.RecordDelivery(ctx, d, o)
	}
	s.onPoint("after record")
	switch {
	case errors.Is(err, store.ErrLeaseLost):
		s.log.Info("The outcome of a webhook attempt was not recorded, because the lease has expired. Another node has claimed the delivery.", "endpoint_id", d.EndpointID, "event_id", d.EventID)
	case err != nil:
		s.log.Warn("Cannot record the outcome of a webhook attempt. The event is sent again after the lease has expired.", "endpoint_id", d.EndpointID, "event_id", d.EventID, "error", err.Error())
	case disabled:
		s.log.Warn("A webhook endpoint was disabled. Its deliveries wait until it is enabled.", "endpoint_id", d.EndpointID, "taxpayer_id", d.TaxpayerID, "reason", reason)
		s.onCommit(d.Scope)
	}
}

// release ends the lease of a delivery, which is then due at runAt.
func (s *Sender) release(ctx context.Context, d store.Delivery, runAt time.Time) {
	err := s.store.Update(ctx, func(tx *store.Tx) error { return tx.ReleaseDelivery(ctx, d, runAt) })
	if err != nil && !errors.Is(err, store.ErrLeaseLost) {
		s.log.Warn("Cannot release a webhook delivery. It continues after its lease has expired.", "endpoint_id", d.EndpointID, "event_id", d.EventID, "error", err.Error())
	}
}
