package notify

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/wake"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

var errOutage = fmt.Errorf("%w: the test says so", store.ErrUnavailable)

// acceptAll makes a sender post to a receiver that accepts everything, and counts the
// events.
func acceptAll(s *Sender) *atomic.Int64 {
	sent := new(atomic.Int64)
	s.o.Poster = posterFunc(func(webhook.Message) webhook.Result {
		sent.Add(1)
		return webhook.Result{Status: 200}
	})
	return sent
}

// While the database is unavailable, the sender keeps the outcome of an attempt. It is
// recorded even after the lease has expired, and the event is sent once.
func TestAnOutcomeSurvivesAnOutage(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		hook, _ := e.endpoint("https://hooks.example.com/x", event.All)
		e.addEvent(e.scope, "fiscal_document.accepted")
		s := e.newSender()
		s.o.Pace = 1000
		sent := acceptAll(s)
		var tries atomic.Int64
		s.o.Point = func(name string) error {
			switch {
			case name == "before claim" && s.unrecorded.Load() > 0:
				t.Error("the sender claims although an outcome is not recorded")
			case name == "before record" && tries.Add(1) <= 30:
				e.advance(wake.MaxLease)
				s.Wake()
				return errOutage
			}
			return nil
		}
		stop := e.run(s)
		eventually(t, "the outcome is recorded", func() bool { return len(e.log(hook)) == 1 })
		stop()
		if sent.Load() != 1 || tries.Load() != 31 || s.unrecorded.Load() != 0 {
			t.Errorf("the event was sent %d times; %d tries to record it; %d unrecorded", sent.Load(), tries.Load(), s.unrecorded.Load())
		}
		if _, err := e.store.NextDelivery(t.Context(), fiscal.Production, time.Time{}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a delivery is pending: %v", err)
		}
	})
}

// A commit whose result was lost is not an error: the event is not sent again.
func TestALostResultOfACommitIsHarmless(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		hook, _ := e.endpoint("https://hooks.example.com/x", event.All)
		e.addEvent(e.scope, "fiscal_document.accepted")
		s := e.newSender()
		s.o.Pace = 1000
		sent := acceptAll(s)
		lost := false
		s.o.Point = func(name string) error {
			if name == "after record" && !lost {
				lost = true
				return errOutage
			}
			return nil
		}
		e.sendDue(s)
		e.advance(time.Hour)
		e.sendDue(s)
		if sent.Load() != 1 || len(e.log(hook)) != 1 {
			t.Errorf("sent %d times, log %+v", sent.Load(), e.log(hook))
		}
	})
}

func TestAStopEndsTheRetries(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		hook, _ := e.endpoint("https://hooks.example.com/x", event.All)
		e.addEvent(e.scope, "fiscal_document.accepted")
		s := e.newSender()
		s.o.Pace, s.drainTime = 1000, 50*time.Millisecond
		acceptAll(s)
		failing := make(chan struct{}, 1)
		s.o.Point = func(name string) error {
			if name != "before record" {
				return nil
			}
			select {
			case failing <- struct{}{}:
			default:
			}
			return errOutage
		}
		stop := e.run(s)
		<-failing
		stop()
		if len(e.log(hook)) != 0 {
			t.Error("the outcome was recorded")
		}
	})
}

// A stop during a claim gives the deliveries back. Another sender gets them at once.
func TestAStopSendsNothingMore(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		e.endpoint("https://hooks.example.com/x", event.All)
		e.addEvent(e.scope, "fiscal_document.accepted")
		s := e.newSender()
		sent := acceptAll(s)
		ctx, cancel := context.WithCancel(t.Context())
		claims := 0
		s.o.Point = func(name string) error {
			if name == "after claim" {
				claims++
				cancel()
			}
			return nil
		}
		s.Run(ctx)
		if sent.Load() != 0 || claims != 1 {
			t.Errorf("%d events were sent after the stop, %d claims", sent.Load(), claims)
		}
		other := e.newSender()
		if got := acceptAll(other); e.sendDue(other) != 1 || got.Load() != 1 {
			t.Error("another sender does not get the event")
		}
	})
}

// While all workers are busy, the sender claims nothing, however often it is woken.
func TestABusySenderDoesNotClaim(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		e.endpoint("https://hooks.example.com/x", event.All)
		e.addEvent(e.scope, "fiscal_document.accepted")
		s := e.newSender()
		sent := acceptAll(s)
		s.o.Point = func(name string) error {
			if name == "before claim" && s.busy.Load() >= workers {
				t.Error("a claim while all workers are busy")
			}
			return nil
		}
		s.busy.Store(workers)
		stop := e.run(s)
		for range 100 {
			s.Wake()
		}
		s.busy.Add(-1)
		s.Wake()
		eventually(t, "a free worker sends the event", func() bool { return sent.Load() == 1 })
		stop()
	})
}

// When a claim finds nothing although workers are busy, the sender waits for them and
// not for the next of many deliveries that become due.
func TestTheSenderWaitsForItsWorkers(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		e.endpoint("https://hooks.example.com/x", event.All)
		e.addEvent(e.scope, "fiscal_document.accepted")
		e.advance(-time.Millisecond) // the delivery is due in a millisecond
		s := e.newSender()
		if wait := s.pause(t.Context(), 0); wait >= busyPause {
			t.Errorf("an idle sender waits for %s", wait)
		}
		s.busy.Store(1)
		if wait := s.pause(t.Context(), 0); wait < busyPause {
			t.Errorf("a busy sender waits for %s", wait)
		}
	})
}

// Outcomes that wait for one another are recorded each once. A delivery that another
// sender has taken fails alone.
func TestOutcomesShareCommits(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		hooks := []store.Endpoint{}
		for range 4 {
			hook, _ := e.endpoint("https://hooks.example.com/x", event.All)
			hooks = append(hooks, hook)
		}
		for range 4 {
			e.addEvent(e.scope, "fiscal_document.accepted")
		}
		claimed, err := e.newSender().claim(t.Context(), 0)
		e.must(err)
		if len(claimed) != 16 {
			t.Fatalf("claimed %d deliveries, want 16", len(claimed))
		}
		claimed[7].Lease = "another sender's"
		group := newOutcomeGroup(e.store)
		results := make([]error, len(claimed))
		var all sync.WaitGroup
		for i, d := range claimed {
			all.Go(func() {
				o := store.DeliveryOutcome{State: store.DeliveryDelivered, RunAt: d.RunAt, Attempt: store.DeliveryAttempt{
					Scope: d.Scope, ID: store.NewID(), EndpointID: d.EndpointID, EventID: d.EventID, Kind: d.Kind, Number: 1, At: e.now(), HTTPStatus: 200,
				}}
				_, results[i] = group.record(t.Context(), d, o)
			})
		}
		all.Wait()
		logged := 0
		for _, hook := range hooks {
			logged += len(e.log(hook))
		}
		for i, err := range results {
			if lost := errors.Is(err, store.ErrLeaseLost); lost != (i == 7) || !lost && err != nil {
				t.Errorf("delivery %d: %v", i, err)
			}
		}
		if logged != 15 || group.group.Waiting() != 0 {
			t.Errorf("%d attempts are logged, want 15; %d outcomes wait", logged, group.group.Waiting())
		}
	})
}
