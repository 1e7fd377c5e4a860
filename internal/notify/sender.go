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
	workers      = 64 // they wait for others' servers, mostly
	forFailing   = workers / 2
	drainTime    = 5 * time.Second // what is under way when the service ends is given so long
	recordTries  = 5
	recordPause  = 100 * time.Millisecond
	troubleDelay = 10 * time.Second // what could not be attempted through a fault of ours
)

// Options are what a sender needs.
type Options struct {
	Store   *store.Store
	Secrets access.Secrets
	Poster  Poster
	Env     fiscal.Environment
	Now     func() time.Time
	Log     *slog.Logger
	// BaseURL is the public address of the service, for the links in events.
	BaseURL string
	// Pace divides every wait; 0 and 1 leave them as they are.
	Pace wake.Pace
	// OnCommit is told of whom the sender has told something by itself; nil: nobody is.
	OnCommit func(store.Scope)
	// Point, for tests, is told before and after everything that a process may
	// end between, by the worker that comes by.
	Point func(name string)
}

func (o Options) check() error {
	if o.Store == nil || o.Poster == nil || o.Env == "" || o.Now == nil || o.Log == nil {
		return errors.New("notify: Options are incomplete")
	}
	return nil
}

// Sender delivers events to webhook endpoints, at least once: an event that was
// sent but not recorded is sent again with the same id.
type Sender struct {
	store         *store.Store
	secrets       access.Secrets
	poster        Poster
	env           fiscal.Environment
	now           func() time.Time
	log           *slog.Logger
	baseURL       string
	pace          wake.Pace
	onCommit      func(store.Scope)
	onPoint       func(name string)
	signal        wake.Signal
	busy, failing atomic.Int64
}

// NewSender returns a sender. Run does its work. NewSender fails when an option that
// it needs is missing.
func NewSender(o Options) (*Sender, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.OnCommit == nil {
		o.OnCommit = func(store.Scope) {}
	}
	if o.Point == nil {
		o.Point = func(string) {}
	}
	return &Sender{
		store: o.Store, secrets: o.Secrets, poster: o.Poster, env: o.Env, now: o.Now, log: o.Log, baseURL: o.BaseURL, pace: o.Pace,
		onCommit: o.OnCommit, onPoint: o.Point, signal: wake.NewSignal(),
	}, nil
}

// Wake lets the sender look for due deliveries now.
func (s *Sender) Wake() { s.signal.Notify() }

// Run sends what is due until ctx ends. What is under way then gets a little time
// to end.
func (s *Sender) Run(ctx context.Context) {
	working, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(drainTime, cancel) })
	defer stop()
	var under sync.WaitGroup
	defer under.Wait()
	for ctx.Err() == nil {
		claimed, err := s.claim(ctx)
		if err != nil && ctx.Err() == nil {
			s.log.Warn("deliveries could not be claimed", "error", err.Error())
		}
		for _, d := range claimed {
			s.count(d, 1)
			under.Go(func() {
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

func (s *Sender) count(d store.Delivery, by int64) {
	s.busy.Add(by)
	if d.Failing {
		s.failing.Add(by)
	}
}

// claim takes what there is room for. Endpoints that fail get half of the room:
// however many of them hang, the others are served.
func (s *Sender) claim(ctx context.Context) ([]store.Delivery, error) {
	room := int(workers - s.busy.Load())
	if room <= 0 {
		return nil, nil
	}
	now := s.now()
	s.onPoint("before claim")
	claimed, err := s.store.ClaimDeliveries(ctx, store.DeliveryClaim{
		Environment: s.env, Lease: store.NewID(), Now: now, Until: now.Add(s.pace.Lease()),
		Limit: room, Failing: int(max(forFailing-s.failing.Load(), 0)),
	})
	s.onPoint("after claim")
	return claimed, err
}

// deliver makes one attempt and records how it ended.
func (s *Sender) deliver(ctx context.Context, d store.Delivery) {
	message, endpoint, err := s.prepare(ctx, d)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return // deleted meanwhile, with its deliveries
	case err != nil:
		s.log.Warn("a delivery could not be attempted", "endpoint_id", d.EndpointID, "event_id", d.EventID, "error", err.Error())
		s.release(ctx, d, s.now().Add(s.pace.Of(troubleDelay, minWait)))
		return
	case endpoint.Status != store.EndpointEnabled:
		s.release(ctx, d, d.RunAt) // it goes on when the endpoint is enabled
		return
	}
	at := s.now()
	s.onPoint("before send")
	stop := wake.Heartbeat(ctx, s.pace.Lease(), func(ctx context.Context) { s.hold(ctx, d) })
	result := s.poster.Post(ctx, message)
	stop()
	s.onPoint("after send")
	if result.Error == webhook.ClassStopped {
		s.release(context.WithoutCancel(ctx), d, d.RunAt)
		return
	}
	o := outcome(d, result, s.now(), s.pace)
	o.Attempt = logged(message.RequestID, d.Scope, d.EndpointID, store.Event{ID: d.EventID, Kind: d.Kind}, d.Attempt+1, at, result)
	if o.State == store.DeliveryPending {
		o.Attempt.NextAt = o.RunAt
	}
	s.record(context.WithoutCancel(ctx), d, endpoint, o)
}

// prepare reads what is sent. The secrets are those that are valid now: a retry
// may be days after the event.
func (s *Sender) prepare(ctx context.Context, d store.Delivery) (webhook.Message, store.Endpoint, error) {
	e, err := s.store.Endpoint(ctx, d.Scope, d.EndpointID)
	if err != nil {
		return webhook.Message{}, store.Endpoint{}, err
	}
	n, err := s.store.Event(ctx, d.Scope, d.EventID)
	if err != nil {
		return webhook.Message{}, store.Endpoint{}, err
	}
	secrets, err := endpointSecrets(s.secrets, e, s.now())
	body := event.Absolute(n.Body, s.baseURL) // as the feed shows it
	return webhook.Message{URL: e.URL, ID: n.ID, Body: body, Secrets: secrets, RequestID: store.NewID()}, e, err
}

// hold extends the lease of a delivery.
func (s *Sender) hold(ctx context.Context, d store.Delivery) {
	err := s.store.Update(ctx, func(tx *store.Tx) error { return tx.HoldDelivery(ctx, d, s.now().Add(s.pace.Lease())) })
	if err != nil && ctx.Err() == nil {
		s.log.Warn("Cannot extend the lease of a delivery.", "endpoint_id", d.EndpointID, "event_id", d.EventID, "error", err.Error())
	}
}

// record stores how an attempt ended. What cannot be stored is sent again once
// the lease has run out.
func (s *Sender) record(ctx context.Context, d store.Delivery, e store.Endpoint, o store.DeliveryOutcome) {
	reason := store.DisabledFailing
	if o.Gone {
		reason = store.DisabledGone
	}
	var err error
	if o.Disabled, err = newEndpointEvent(event.EndpointDisabled, e, reason, s.now()); err != nil {
		s.log.Error("an event could not be made", "kind", event.EndpointDisabled, "error", err.Error())
		return
	}
	s.onPoint("before record")
	disabled, err := s.store.RecordDelivery(ctx, d, o)
	for try := 1; errors.Is(err, store.ErrUnavailable) && try < recordTries; try++ {
		time.Sleep(recordPause)
		disabled, err = s.store.RecordDelivery(ctx, d, o)
	}
	s.onPoint("after record")
	switch {
	case errors.Is(err, store.ErrLeaseLost):
		s.log.Info("an attempt was not recorded: the delivery is no longer ours", "endpoint_id", d.EndpointID, "event_id", d.EventID)
	case err != nil:
		s.log.Warn("an attempt could not be recorded", "endpoint_id", d.EndpointID, "event_id", d.EventID, "error", err.Error())
	case disabled:
		s.log.Warn("a webhook endpoint was disabled", "endpoint_id", d.EndpointID, "taxpayer_id", d.TaxpayerID, "reason", reason)
		s.onCommit(d.Scope)
	}
}

func (s *Sender) release(ctx context.Context, d store.Delivery, runAt time.Time) {
	err := s.store.Update(ctx, func(tx *store.Tx) error { return tx.ReleaseDelivery(ctx, d, runAt) })
	if err != nil && !errors.Is(err, store.ErrLeaseLost) {
		s.log.Warn("a delivery could not be released", "endpoint_id", d.EndpointID, "event_id", d.EventID, "error", err.Error())
	}
}
