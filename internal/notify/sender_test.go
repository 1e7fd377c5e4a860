package notify

import (
	"bytes"
	"errors"
	"net/http"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/wake"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

// requestIDForm is the form of a request id in the OpenAPI document.
var requestIDForm = regexp.MustCompile(`^req_[0-9a-f]{32}$`)

// A delivery that fails nine times succeeds at the tenth attempt. All attempts follow the
// schedule, have the same event id, and are signed with the time of the attempt.
func TestRetriesFollowTheSchedule(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		r := newReceiver(t, func(w http.ResponseWriter, n int) {
			if n < 10 {
				w.WriteHeader(http.StatusInternalServerError)
			}
		})
		hook, secret := e.endpoint(r.URL, event.All)
		n := e.addEvent(e.scope, "fiscal_document.accepted")
		s := e.newSender()
		times := []time.Time{e.now()}
		for i, step := range steps {
			if got := e.sendDue(s); got != 1 {
				t.Fatalf("attempt %d: %d deliveries are due", i+1, got)
			}
			due := e.next()
			wait := due.Sub(e.now())
			early := step - step/10
			if i < 2 {
				early = step
			}
			if wait < early || wait > step+step/10 {
				t.Errorf("after attempt %d: %s, want %s ±10 %%, and the first two waits never shorter", i+1, wait, step)
			}
			e.set(due.Add(-time.Microsecond))
			if e.sendDue(s) != 0 {
				t.Errorf("attempt %d was made before its time", i+2)
			}
			e.set(due)
			times = append(times, due)
		}
		if e.sendDue(s) != 1 {
			t.Fatal("the tenth attempt was not made")
		}
		e.advance(1000 * time.Hour)
		if e.sendDue(s) != 0 {
			t.Error("an eleventh attempt was made")
		}
		got := r.requests()
		if len(got) != 10 {
			t.Fatalf("%d attempts, want 10", len(got))
		}
		ids := map[string]bool{}
		for i, l := range got {
			if l.id() != n.ID || !bytes.Equal(l.body, n.Body) {
				t.Errorf("attempt %d: id %s, body %s", i+1, l.id(), l.body)
			}
			if stamp := l.header.Get(webhook.HeaderTimestamp); stamp != strconv.FormatInt(times[i].Unix(), 10) {
				t.Errorf("attempt %d has the time %s, want %d", i+1, stamp, times[i].Unix())
			}
			if err := webhook.Verify(l.header, l.body, times[i], secret); err != nil {
				t.Errorf("attempt %d: %v", i+1, err)
			}
			id := l.header.Get("X-Request-Id")
			if !requestIDForm.MatchString(id) {
				t.Errorf("attempt %d has the request id %s", i+1, id)
			}
			ids[id] = true
		}
		log := e.log(hook)
		if len(log) != 10 || log[0].Error != "" || log[0].HTTPStatus != 200 || log[0].Number != 10 || !log[0].NextAt.IsZero() ||
			log[9].Error != "status_500" || log[9].Number != 1 || !log[9].NextAt.Equal(times[1]) {
			t.Errorf("the log: %+v", log)
		}
		for _, a := range log {
			if !ids[AttemptRequestID(a.ID)] {
				t.Errorf("the log names %s, which the receiver never saw", a.ID)
			}
		}
		if d := storetest.DeliveriesOf(t, e.store, n); len(d) != 1 || d[0].State != store.DeliveryDelivered {
			t.Errorf("the delivery: %+v", d)
		}
	})
}

func TestADeliveryEndsAfterTenFailures(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		r := newReceiver(t, status(http.StatusInternalServerError))
		hook, _ := e.endpoint(r.URL, event.All)
		n := e.addEvent(e.scope, "fiscal_document.accepted")
		s, began := e.newSender(), e.now()
		reported := map[store.DeliveryState]int{}
		s.o.OnAttempt = func(state store.DeliveryState, _ time.Duration) { reported[state]++ }
		for i := 1; i <= 10; i++ {
			if e.sendDue(s) != 1 {
				t.Fatalf("attempt %d was not made", i)
			}
			if i < 10 {
				e.set(e.next())
			}
		}
		if span := e.now().Sub(began); span < 68*time.Hour || span > 84*time.Hour {
			t.Errorf("ten attempts over %s", span)
		}
		d := storetest.DeliveriesOf(t, e.store, n)
		if d[0].State != store.DeliveryFailed || e.read(hook).Status != store.EndpointEnabled {
			t.Errorf("%+v; the endpoint is %s", d, e.read(hook).Status)
		}
		if reported[store.DeliveryPending] != 9 || reported[store.DeliveryFailed] != 1 {
			t.Errorf("reported %v", reported)
		}
		// A replay sends the failed deliveries again.
		replayed, err := e.Replay(t.Context(), e.scope, hook.ID, Replay{Failed: true})
		if err != nil || replayed.Events != 1 || e.sendDue(s) != 0 {
			t.Errorf("replayed %+v, %v; or the sender did not wait after the failure", replayed, err)
		}
		e.advance(restTime)
		if e.sendDue(s) != 1 {
			t.Error("the replayed event was not sent")
		}
	})
}

// When a process ends at any point of an attempt, the next process sends the event again
// with the same id, and no event is lost.
func TestACrashAtAnyPointLosesNoEvent(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		for _, point := range []string{"before claim", "after claim", "before send", "after send", "before record", "after record"} {
			t.Run(point, func(t *testing.T) {
				e.t = t
				e.scope = e.taxpayer()
				r := newReceiver(t, status(http.StatusNoContent))
				hook, _ := e.endpoint(r.URL, event.All)
				want := []string{e.addEvent(e.scope, "fiscal_document.submitted").ID, e.addEvent(e.scope, "fiscal_document.accepted").ID}
				crashing := e.newSender()
				crashing.o.Point = func(name string) error {
					if name == point {
						runtime.Goexit()
					}
					return nil
				}
				var ended sync.WaitGroup
				ended.Go(func() { e.sendDue(crashing) })
				ended.Wait()
				sent := len(r.requests())
				if wantSent := map[string]int{"after send": 1, "before record": 1, "after record": 1}[point]; sent != wantSent {
					t.Fatalf("%d were sent before the crash, want %d", sent, wantSent)
				}
				next := e.newSender()
				for range 3 {
					e.sendDue(next)
					e.advance(wake.MaxLease)
				}
				times := map[string]int{}
				for _, l := range r.requests() {
					times[l.id()]++
				}
				twice := 0
				for _, id := range want {
					if times[id] == 0 {
						t.Errorf("%s is missing", id)
					}
					twice += times[id] - 1
				}
				repeated := map[string]int{"after send": 1, "before record": 1}[point]
				if len(times) != 2 || twice != repeated {
					t.Errorf("the receiver got %v; want each event, and %d of them twice", times, repeated)
				}
				if log := e.log(hook); len(log) != 2 || log[0].Number != 1 {
					t.Errorf("the log: %+v", log)
				}
			})
		}
	})
}

func TestAHangingEndpointDoesNotDelayOthers(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		release := make(chan struct{})
		var hanging, most atomic.Int64
		hung := newReceiver(t, func(http.ResponseWriter, int) {
			if n := hanging.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer hanging.Add(-1)
			<-release
		})
		healthy := newReceiver(t, status(http.StatusOK))
		e.endpoint(hung.URL, event.All)
		const events = 40
		for range events {
			e.addEvent(e.scope, "fiscal_document.accepted")
		}
		s := e.newSender()
		stop := e.run(s)
		eventually(t, "the slow endpoint hangs", func() bool { return hanging.Load() == store.MaxConcurrency })
		e.endpoint(healthy.URL, event.All)
		for range events {
			e.addEvent(e.scope, "fiscal_document.accepted")
		}
		s.Wake()
		eventually(t, "the healthy endpoint gets all events", func() bool { return len(healthy.requests()) == events })
		if len(hung.requests()) != store.MaxConcurrency || most.Load() != store.MaxConcurrency {
			t.Errorf("the slow endpoint got %d events, %d at a time", len(hung.requests()), most.Load())
		}
		close(release)
		eventually(t, "the slow endpoint gets all events", func() bool { return len(hung.requests()) == 2*events })
		stop()
		ids := map[string]bool{}
		for _, l := range hung.requests() {
			ids[l.id()] = true
		}
		if len(ids) != 2*events {
			t.Errorf("%d different events", len(ids))
		}
	})
}

// Both secrets sign for a day after a rotation, then only the new one. A retry is signed
// with the secrets that are valid at its time.
func TestBothSecretsSignAfterARotation(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		r := newReceiver(t, func(w http.ResponseWriter, n int) {
			if n == 3 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		})
		hook, first := e.endpoint(r.URL, event.All)
		s := e.newSender()
		send := func(signers, others []webhook.Secret) {
			t.Helper()
			if e.sendDue(s) != 1 {
				t.Fatal("nothing was sent")
			}
			all := r.requests()
			l := all[len(all)-1]
			if got := len(strings.Fields(l.header.Get(webhook.HeaderSignature))); got != len(signers) {
				t.Errorf("%d signatures, want %d", got, len(signers))
			}
			for _, secret := range signers {
				if err := webhook.Verify(l.header, l.body, e.now(), secret); err != nil {
					t.Errorf("a secret that is valid: %v", err)
				}
			}
			for _, secret := range others {
				if err := webhook.Verify(l.header, l.body, e.now(), secret); !errors.Is(err, webhook.ErrSignature) {
					t.Errorf("a secret that has expired: %v", err)
				}
			}
		}
		e.addEvent(e.scope, "fiscal_document.accepted")
		send([]webhook.Secret{first}, nil)
		after, second, err := e.Rotate(t.Context(), e.scope, hook.ID, Overlap)
		e.must(err)
		if after.Secret.Version != 2 || second.Reveal() == first.Reveal() {
			t.Errorf("rotated to version %d", after.Secret.Version)
		}
		e.addEvent(e.scope, "fiscal_document.accepted")
		send([]webhook.Secret{second, first}, nil)
		e.advance(Overlap - time.Microsecond)
		e.addEvent(e.scope, "fiscal_document.accepted")
		send([]webhook.Secret{second, first}, nil) // this attempt fails
		e.set(e.next())
		send([]webhook.Secret{second}, []webhook.Secret{first})

		_, third, err := e.Rotate(t.Context(), e.scope, hook.ID, 0)
		e.must(err)
		e.addEvent(e.scope, "fiscal_document.accepted")
		send([]webhook.Secret{third}, []webhook.Secret{second})
		for _, overlap := range []time.Duration{-1, maxOverlap + 1} {
			if _, _, err := e.Rotate(t.Context(), e.scope, hook.ID, overlap); err == nil {
				t.Errorf("Rotate accepts an overlap of %s", overlap)
			}
		}
		if _, _, err := e.Rotate(t.Context(), e.taxpayer(), hook.ID, Overlap); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("by another taxpayer: %v, want ErrNotFound", err)
		}
	})
}

// An attempt that was cancelled because the sender stops is not a failure. The event is
// sent again later.
func TestACancelledAttemptIsNotAFailure(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		s := e.newSender()
		hook, _ := e.endpoint("https://hooks.example.com/x", event.All)
		n := e.addEvent(e.scope, "fiscal_document.accepted")
		s.o.BaseURL = "https://api.example.com"
		s.o.Poster = posterFunc(func(webhook.Message) webhook.Result { return webhook.Result{Error: webhook.ClassStopped} })
		if e.sendDue(s) != 1 || len(e.log(hook)) != 0 || e.read(hook).Failures != 0 {
			t.Errorf("the attempt counted: %+v", e.log(hook))
		}
		var seen webhook.Message
		s.o.Poster = posterFunc(func(m webhook.Message) webhook.Result { seen = m; return webhook.Result{Status: 200} })
		if e.sendDue(s) != 1 || seen.ID != n.ID || !bytes.Equal(seen.Body, n.Body) {
			t.Errorf("the event was not sent again unchanged: %+v", seen)
		}
		linked := store.Event{Scope: e.scope, ID: event.NewID(), Kind: "a", At: e.now(), Body: []byte(`{"links":{"self":"/v1/x"}}`)}
		e.must(e.store.Update(t.Context(), func(tx *store.Tx) error { return tx.AddEvent(t.Context(), linked) }))
		if e.sendDue(s) != 1 || string(seen.Body) != `{"links":{"self":"https://api.example.com/v1/x"}}` {
			t.Errorf("the link: %s", seen.Body)
		}
	})
}

// When the secret of an endpoint cannot be opened, the delivery waits and does not count
// as a failure.
func TestADeliveryWaitsForAnUnreadableSecret(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		r := newReceiver(t, status(http.StatusOK))
		hook, _ := e.endpoint(r.URL, event.All)
		e.addEvent(e.scope, "fiscal_document.accepted")
		good := e.read(hook)
		e.rewrap(good, []byte("not sealed bytes"))
		s := e.newSender()
		e.sendDue(s)
		if len(r.requests()) != 0 || len(e.log(hook)) != 0 || e.read(hook).Failures != 0 {
			t.Error("the delivery was sent or counted as a failure")
		}
		e.rewrap(good, good.Secret.Sealed)
		e.set(e.next())
		if e.sendDue(s) != 1 || len(r.requests()) != 1 {
			t.Error("the delivery was not sent afterwards")
		}
	})
}

func (e *env) rewrap(hook store.Endpoint, sealed []byte) {
	e.t.Helper()
	hook.Secret.Sealed = sealed
	e.must(e.store.Update(e.t.Context(), func(tx *store.Tx) error { return tx.RewrapEndpoint(e.t.Context(), hook) }))
}

type posterFunc func(webhook.Message) webhook.Result

// Run sends a new event after Wake, retries without a call, and stops.
func TestRunSendsAndRetries(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		r := newReceiver(t, func(w http.ResponseWriter, n int) {
			if n == 1 {
				w.WriteHeader(http.StatusInternalServerError)
			}
		})
		e.endpoint(r.URL, event.All)
		s := e.newSender()
		stop := e.run(s)
		e.addEvent(e.scope, "fiscal_document.accepted")
		s.Wake()
		eventually(t, "the first attempt", func() bool {
			_, err := e.store.NextDelivery(t.Context(), fiscal.Production, e.now())
			return len(r.requests()) == 1 && err == nil
		})
		e.set(e.next())
		eventually(t, "the second attempt, without Wake", func() bool { return len(r.requests()) == 2 })
		stop()
	})
}
