package notify

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

// aheadEnv is an endpoint with events, and a sender that runs while a test decides the
// result of each attempt.
type aheadEnv struct {
	*env
	hook    store.Endpoint
	events  []store.Event
	sender  *Sender
	attempt chan webhook.Result // the test sends the result of each attempt
	posting atomic.Int64
	most    atomic.Int64
	sent    atomic.Int64
	full    atomic.Bool // the sender claims nothing more
	cancel  context.CancelFunc
	stop    func()
}

func newAheadEnv(t *testing.T, e *env, events int) *aheadEnv {
	t.Helper()
	a := &aheadEnv{env: e, attempt: make(chan webhook.Result), sender: e.newSender()}
	a.hook, _ = e.endpoint("https://hooks.example.com/x", event.All)
	for range events {
		a.events = append(a.events, e.addEvent(e.scope, "fiscal_document.accepted"))
	}
	a.sender.o.Poster = posterFunc(func(webhook.Message) webhook.Result {
		a.sent.Add(1)
		a.most.Store(max(a.most.Load(), a.posting.Add(1)))
		defer a.posting.Add(-1)
		return <-a.attempt
	})
	a.sender.o.Point = func(name string) error {
		if name == "before claim" && a.full.Load() {
			return errOutage
		}
		return nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { a.sender.Run(ctx) })
	a.cancel, a.stop = cancel, func() { cancel(); running.Wait() }
	eventually(t, "the first attempts", func() bool { return a.posting.Load() == store.MaxConcurrency && a.sender.ahead.len() > 0 })
	return a
}

// count returns how many deliveries are under a lease, and how many are delivered.
func (a *aheadEnv) count() (held, delivered int) {
	a.t.Helper()
	for _, n := range a.events {
		d := storetest.DeliveriesOf(a.t, a.store, n)
		if d[0].Lease != "" {
			held++
		}
		if d[0].State == store.DeliveryDelivered {
			delivered++
		}
	}
	return held, delivered
}

func TestDeliveriesClaimedAheadKeepTheConcurrency(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		a := newAheadEnv(t, e, 50)
		for range a.events {
			a.attempt <- webhook.Result{Status: 200}
		}
		eventually(t, "all are delivered", func() bool { _, delivered := a.count(); return delivered == 50 })
		a.stop()
		if a.sent.Load() != 50 || a.most.Load() != store.MaxConcurrency || len(e.log(a.hook)) != 50 || a.sender.ahead.len() != 0 {
			t.Errorf("%d attempts, %d at a time, %d wait", a.sent.Load(), a.most.Load(), a.sender.ahead.len())
		}
	})
}

// The sender claims more before an endpoint has to wait for it.
func TestTheQueueIsFilledBeforeItIsEmpty(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		a := newAheadEnv(t, e, 150)
		for a.sender.ahead.len() > refillAt {
			a.attempt <- webhook.Result{Status: 200}
		}
		// No attempt ends now, and so no worker does.
		eventually(t, "the queue is filled", func() bool {
			return a.sender.ahead.len() > refillAt+10 && a.posting.Load() == store.MaxConcurrency
		})
		for range int64(len(a.events)) - a.sent.Load() + a.posting.Load() {
			a.attempt <- webhook.Result{Status: 200}
		}
		eventually(t, "all are delivered", func() bool { _, delivered := a.count(); return delivered == len(a.events) })
		a.stop()
		if a.most.Load() != store.MaxConcurrency || int(a.sent.Load()) != len(a.events) {
			t.Errorf("%d attempts, %d at a time", a.sent.Load(), a.most.Load())
		}
	})
}

// When the workers of an endpoint have ended before a claim for it returns, new ones start.
func TestWhatIsClaimedAheadForAnIdleEndpointStarts(t *testing.T) {
	t.Parallel()
	endpoint := &store.Endpoint{ID: "x", Concurrency: 3}
	ahead := store.Delivery{EndpointID: "x", Ahead: true, Endpoint: endpoint}
	var q aheadQueues
	add := func(now, back, waiting int, claimed ...store.Delivery) {
		t.Helper()
		if a, b := q.add(claimed); len(a) != now || len(b) != back || q.len() != waiting {
			t.Errorf("%d start, %d go back, %d wait; want %d, %d, %d", len(a), len(b), q.len(), now, back, waiting)
		}
	}
	add(3, 0, 2, ahead, ahead, ahead, ahead, ahead)
	add(0, 0, 3, ahead)
	if taken := q.block("x"); len(taken) != 3 {
		t.Errorf("%d were taken", len(taken))
	}
	for range 2 {
		add(0, 1, 0, ahead)
		if _, _, ok := q.next("x"); ok {
			t.Error("a delivery to a blocked endpoint is left")
		}
	}
	add(0, 1, 0, ahead)
	q.unblock("x")
	add(1, 0, 0, ahead)
}

// After a failed attempt, the store decides again what the endpoint gets.
func TestAFailureGivesBackWhatWasClaimedAhead(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		a := newAheadEnv(t, e, 100)
		a.attempt <- webhook.Result{Status: 410, Error: "status_410", Gone: true}
		eventually(t, "the endpoint is disabled", func() bool { return e.read(a.hook).Status == store.EndpointDisabled })
		for range store.MaxConcurrency - 1 {
			a.attempt <- webhook.Result{Status: 200}
		}
		eventually(t, "nothing is held", func() bool { held, _ := a.count(); return held == 0 })
		a.stop()
		if _, delivered := a.count(); a.sent.Load() != store.MaxConcurrency || delivered != store.MaxConcurrency-1 {
			t.Errorf("%d attempts, %d delivered", a.sent.Load(), delivered)
		}
	})
}

// A delivery that was claimed ahead is not sent to an endpoint that was disabled
// meanwhile, nor after its sender has begun to stop.
func TestWhatWasClaimedAheadIsGivenBack(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*aheadEnv){
		"a disabled endpoint": func(a *aheadEnv) {
			a.must(a.store.Update(a.t.Context(), func(tx *store.Tx) error {
				return tx.DisableEndpoint(a.t.Context(), a.scope, a.hook.ID, store.DisabledFailing, a.now())
			}))
			a.advance(knownTime)
		},
		"a long wait": func(a *aheadEnv) {
			a.full.Store(true)
			a.advance(a.sender.o.Pace.Lease()/3 + time.Microsecond)
		},
		"a stop": func(a *aheadEnv) { a.cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			forEachEngine(t, func(t *testing.T, e *env) {
				a := newAheadEnv(t, e, 20)
				change(a)
				for range store.MaxConcurrency {
					a.attempt <- webhook.Result{Status: 200}
				}
				eventually(t, "nothing is held", func() bool { held, _ := a.count(); return held == 0 })
				a.stop()
				if _, delivered := a.count(); a.sent.Load() != store.MaxConcurrency || delivered != store.MaxConcurrency {
					t.Errorf("%d attempts, %d delivered", a.sent.Load(), delivered)
				}
			})
		})
	}
}
