package notify

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

const (
	workers      = 64 // they wait for others' servers, mostly
	forFailing   = workers / 2
	leaseTime    = 30 * time.Second
	minLease     = 2 * time.Second
	pollEvery    = time.Second // how soon what another node has written is seen
	minPause     = 10 * time.Millisecond
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
	Pace float64
	// Told is told of whom the sender has told something by itself; nil: nobody is.
	Told func(store.Scope)
	// Point, for tests, is told before and after everything that a process may
	// end between, by the worker that comes by.
	Point func(name string)
}

// Sender delivers what endpoints have asked for, at least once: what was sent and
// could not be recorded is sent again, under the same id. Use it by pointer.
type Sender struct {
	Options
	wake          chan struct{}
	busy, failing atomic.Int64
}

// NewSender makes a sender. Run does its work.
func NewSender(opt Options) *Sender {
	return &Sender{Options: opt, wake: make(chan struct{}, 1)}
}

// Rouse tells the sender that there may be something to send.
func (s *Sender) Rouse() {
	select {
	case s.wake <- struct{}{}:
	default: // it has been told
	}
}

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
			s.Log.Warn("deliveries could not be claimed", "error", err.Error())
		}
		for _, d := range claimed {
			s.count(d, 1)
			under.Go(func() {
				defer s.Rouse()
				defer s.count(d, -1)
				s.deliver(working, d)
			})
		}
		pause := time.NewTimer(s.pause(ctx))
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-pause.C:
		}
		pause.Stop()
	}
}

func (s *Sender) count(d store.Delivery, by int64) {
	s.busy.Add(by)
	if d.Failing {
		s.failing.Add(by)
	}
}

// pause is how long to wait for the next delivery to come due. Those that are due
// and wait for their turn come with the end of another, which rouses.
func (s *Sender) pause(ctx context.Context) time.Duration {
	now := s.Now()
	next, err := s.Store.NextDelivery(ctx, s.Env, now)
	if err != nil {
		return pollEvery
	}
	return min(max(next.Sub(now), minPause), pollEvery)
}

// claim takes what there is room for. Endpoints that fail get half of the room:
// however many of them hang, the others are served.
func (s *Sender) claim(ctx context.Context) ([]store.Delivery, error) {
	room := int(workers - s.busy.Load())
	if room <= 0 {
		return nil, nil
	}
	now := s.Now()
	s.point("before claim")
	claimed, err := s.Store.ClaimDeliveries(ctx, store.DeliveryClaim{
		Environment: s.Env, Lease: store.NewID(), Now: now, Until: now.Add(s.lease()),
		Limit: room, Failing: int(max(forFailing-s.failing.Load(), 0)),
	})
	s.point("after claim")
	return claimed, err
}

// lease is how long a delivery is held without a sign of life.
func (s *Sender) lease() time.Duration {
	return max(time.Duration(float64(leaseTime)/max(s.Pace, 1)), minLease)
}

func (s *Sender) point(name string) {
	if s.Point != nil {
		s.Point(name)
	}
}

// deliver makes one attempt and records how it ended.
func (s *Sender) deliver(ctx context.Context, d store.Delivery) {
	message, endpoint, err := s.prepare(ctx, d)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return // deleted meanwhile, with its deliveries
	case err != nil:
		s.Log.Warn("a delivery could not be attempted", "endpoint_id", d.EndpointID, "event_id", d.NoticeID, "error", err.Error())
		s.release(ctx, d, s.Now().Add(paced(troubleDelay, s.Pace)))
		return
	case endpoint.Status != store.EndpointEnabled:
		s.release(ctx, d, d.RunAt) // it goes on when the endpoint is enabled
		return
	}
	at := s.Now()
	s.point("before send")
	held := s.hold(ctx, d)
	result := s.Poster.Post(ctx, message)
	held()
	s.point("after send")
	if result.Error == webhook.ClassStopped {
		s.release(context.WithoutCancel(ctx), d, d.RunAt)
		return
	}
	o := outcome(d, result, s.Now(), s.Pace)
	o.Attempt = logged(message.RequestID, d.Scope, d.EndpointID, store.Notice{ID: d.NoticeID, Kind: d.Kind}, d.Attempt+1, at, result)
	if o.State == store.DeliveryPending {
		o.Attempt.NextAt = o.RunAt
	}
	s.record(context.WithoutCancel(ctx), d, endpoint, o)
}

// prepare reads what is sent. The secrets are those that are valid now: a retry
// may be days after the event.
func (s *Sender) prepare(ctx context.Context, d store.Delivery) (webhook.Message, store.Endpoint, error) {
	e, err := s.Store.Endpoint(ctx, d.Scope, d.EndpointID)
	if err != nil {
		return webhook.Message{}, store.Endpoint{}, err
	}
	n, err := s.Store.Notice(ctx, d.Scope, d.NoticeID)
	if err != nil {
		return webhook.Message{}, store.Endpoint{}, err
	}
	secrets, err := endpointSecrets(s.Secrets, e, s.Now())
	body := Absolute(n.Body, s.BaseURL) // as the feed shows it
	return webhook.Message{URL: e.URL, ID: n.ID, Body: body, Secrets: secrets, RequestID: store.NewID()}, e, err
}

// hold goes on holding a delivery until the returned function is called.
func (s *Sender) hold(ctx context.Context, d store.Delivery) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(s.lease() / 3)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				err := s.Store.Update(ctx, func(tx *store.Tx) error { return tx.HoldDelivery(ctx, d, s.Now().Add(s.lease())) })
				if err != nil && ctx.Err() == nil {
					s.Log.Warn("a delivery could not be held", "endpoint_id", d.EndpointID, "event_id", d.NoticeID, "error", err.Error())
				}
			}
		}
	}()
	return func() { cancel(); <-done }
}

// record stores how an attempt ended. What cannot be stored is sent again once
// the lease has run out.
func (s *Sender) record(ctx context.Context, d store.Delivery, e store.Endpoint, o store.DeliveryOutcome) {
	reason := store.DisabledFailing
	if o.Gone {
		reason = store.DisabledGone
	}
	var err error
	if o.Disabled, err = newNotice(kindDisabled, e, reason, s.Now()); err != nil {
		s.Log.Error("an event could not be made", "kind", kindDisabled, "error", err.Error())
		return
	}
	s.point("before record")
	disabled, err := s.Store.RecordDelivery(ctx, d, o)
	for try := 1; errors.Is(err, store.ErrUnavailable) && try < recordTries; try++ {
		time.Sleep(recordPause)
		disabled, err = s.Store.RecordDelivery(ctx, d, o)
	}
	s.point("after record")
	switch {
	case errors.Is(err, store.ErrLeaseLost):
		s.Log.Info("an attempt was not recorded: the delivery is no longer ours", "endpoint_id", d.EndpointID, "event_id", d.NoticeID)
	case err != nil:
		s.Log.Warn("an attempt could not be recorded", "endpoint_id", d.EndpointID, "event_id", d.NoticeID, "error", err.Error())
	case disabled:
		s.Log.Warn("a webhook endpoint was disabled", "endpoint_id", d.EndpointID, "taxpayer_id", d.TaxpayerID, "reason", reason)
		if s.Told != nil {
			s.Told(d.Scope)
		}
	}
}

func (s *Sender) release(ctx context.Context, d store.Delivery, runAt time.Time) {
	err := s.Store.Update(ctx, func(tx *store.Tx) error { return tx.ReleaseDelivery(ctx, d, runAt) })
	if err != nil && !errors.Is(err, store.ErrLeaseLost) {
		s.Log.Warn("a delivery could not be released", "endpoint_id", d.EndpointID, "event_id", d.NoticeID, "error", err.Error())
	}
}
