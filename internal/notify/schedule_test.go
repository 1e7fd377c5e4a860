package notify

import (
	"bytes"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/wake"
)

func TestEachAnswerHasItsOutcome(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		for _, tt := range []struct {
			name     string
			code     int
			header   [2]string
			disabled bool
			least    time.Duration
			slots    int64 // the concurrency of the endpoint afterwards
		}{
			{"410 disables", http.StatusGone, [2]string{}, true, 5 * time.Second, 4},
			{"302 is a failure", http.StatusFound, [2]string{"Location", "http://127.0.0.1:1/"}, false, 5 * time.Second, 4},
			{"429 waits as asked, with half the concurrency", http.StatusTooManyRequests, [2]string{"Retry-After", "3600"}, false, time.Hour, 2},
			{"503 waits as asked", http.StatusServiceUnavailable, [2]string{"Retry-After", "7200"}, false, 2 * time.Hour, 4},
			{"502 halves the concurrency", http.StatusBadGateway, [2]string{}, false, 5 * time.Second, 2},
			{"504 halves the concurrency", http.StatusGatewayTimeout, [2]string{}, false, 5 * time.Second, 2},
			{"400 is a failure", http.StatusBadRequest, [2]string{}, false, 5 * time.Second, 4},
		} {
			t.Run(tt.name, func(t *testing.T) {
				e.t = t
				e.scope = e.taxpayer()
				r := newReceiver(t, func(w http.ResponseWriter, n int) {
					if n > 1 {
						return
					}
					if tt.header[0] != "" {
						w.Header().Set(tt.header[0], tt.header[1])
					}
					w.WriteHeader(tt.code)
				})
				other := newReceiver(t, status(http.StatusOK))
				hook, _ := e.endpoint(r.URL, "fiscal_document.accepted")
				e.endpoint(other.URL, event.EndpointDisabled)
				n := e.addEvent(e.scope, "fiscal_document.accepted")
				s := e.newSender()
				e.sendDue(s)
				after := e.read(hook)
				if (after.Status == store.EndpointDisabled) != tt.disabled || after.Failures != 1 || after.Concurrency != tt.slots {
					t.Errorf("the endpoint: %+v", after)
				}
				if log := e.log(hook); len(log) != 1 || log[0].Error != "status_"+strconv.Itoa(tt.code) || log[0].HTTPStatus != int64(tt.code) {
					t.Errorf("the log: %+v", log)
				}
				d := storetest.DeliveriesOf(t, e.store, n)
				wait := d[0].RunAt.Sub(e.now())
				if d[0].State != store.DeliveryPending || wait < tt.least || wait > tt.least+tt.least/10 {
					t.Errorf("the delivery is %s and waits for %s, want %s", d[0].State, wait, tt.least)
				}
				e.sendDue(s) // the other endpoint receives the event about a disabled endpoint
				if got := other.requests(); (len(got) == 1) != tt.disabled {
					t.Errorf("the other endpoint got %d events", len(got))
				} else if tt.disabled && !bytes.Contains(got[0].body, []byte(`"data":{"object":"webhook_endpoint","id":"`+hook.ID+`","url":"`+r.URL+`","reason":"gone"}`)) {
					t.Errorf("the other endpoint got %s", got[0].body)
				}
				e.set(d[0].RunAt)
				if sent := e.sendDue(s); sent != map[bool]int{true: 0, false: 1}[tt.disabled] {
					t.Errorf("then the sender made %d attempts", sent)
				}
				if tt.disabled {
					_, err := e.Enable(t.Context(), e.scope, hook.ID)
					e.must(err)
					if e.sendDue(s) != 1 || len(r.requests()) != 2 {
						t.Error("the pending delivery did not continue when the endpoint was enabled")
					}
				}
				e.must(e.Delete(t.Context(), e.scope, hook.ID))
			})
		}
	})
}

// An endpoint that fails for five days is disabled. A replay sends the missed events
// with their original ids.
func TestFiveDaysOfFailuresDisableAnEndpoint(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		var up atomic.Bool
		r := newReceiver(t, func(w http.ResponseWriter, _ int) {
			if !up.Load() {
				w.WriteHeader(http.StatusInternalServerError)
			}
		})
		hook, _ := e.endpoint(r.URL, "fiscal_document.accepted")
		s, began := e.newSender(), e.now()
		var events []string
		for e.read(hook).Status == store.EndpointEnabled {
			if e.now().Sub(began) > 6*24*time.Hour {
				t.Fatal("the endpoint was not disabled")
			}
			events = append(events, e.addEvent(e.scope, "fiscal_document.accepted").ID)
			e.advance(6 * time.Hour)
			for e.sendDue(s) > 0 {
				e.advance(restTime)
			}
		}
		if span := e.now().Sub(began); span < 5*24*time.Hour {
			t.Errorf("disabled after %s", span)
		}
		if hook := e.read(hook); hook.DisabledReason != store.DisabledFailing {
			t.Errorf("the reason is %s", hook.DisabledReason)
		}
		since := e.now()
		missed := e.addEvent(e.scope, "fiscal_document.accepted").ID
		other := e.addEvent(e.scope, "fiscal_document.rejected").ID
		up.Store(true)
		_, err := e.Enable(t.Context(), e.scope, hook.ID)
		e.must(err)
		// received sends until nothing is due and returns the ids of the events that the
		// receiver got.
		received := func() (ids []string) {
			before := len(r.requests())
			e.advance(48 * time.Hour)
			for e.sendDue(s) > 0 {
				continue
			}
			for _, l := range r.requests()[before:] {
				ids = append(ids, l.id())
			}
			return ids
		}
		if ids := received(); slices.Contains(ids, missed) || len(ids) == 0 {
			t.Errorf("enabled: %d were sent, including the missed one: %v", len(ids), slices.Contains(ids, missed))
		}
		n, err := e.Replay(t.Context(), e.scope, hook.ID, Replay{Failed: true})
		if ids := received(); err != nil || int(n.Events) != len(ids) || !slices.Contains(ids, missed) || slices.Contains(ids, other) {
			t.Errorf("replayed %+v, %v: %v", n, err, ids)
		}
		n, err = e.Replay(t.Context(), e.scope, hook.ID, Replay{Since: &since})
		if ids := received(); err != nil || n.Events != 1 || !slices.Equal(ids, []string{missed}) {
			t.Errorf("replayed %+v since the instant, %v: %v", n, err, ids)
		}
		n, err = e.Replay(t.Context(), e.scope, hook.ID, Replay{EventID: other})
		if ids := received(); err != nil || n.Events != 1 || !slices.Equal(ids, []string{other}) {
			t.Errorf("replayed %+v event, %v: %v", n, err, ids)
		}
		if _, err := e.Replay(t.Context(), e.scope, hook.ID, Replay{}); err == nil {
			t.Error("Replay accepts an empty selection")
		}
		all := map[string]bool{}
		for _, l := range r.requests() {
			all[l.id()] = true
		}
		for _, id := range events {
			if !all[id] {
				t.Errorf("%s was never received", id)
			}
		}
	})
}

func TestPaceDividesTheWaits(t *testing.T) {
	t.Parallel()
	for n := int64(1); n <= 9; n++ {
		for _, pace := range []wake.Pace{0, 1, 60, 1e9} {
			wait, more := backOff(n, pace, 0, rand.Int64N)
			want := float64(steps[n-1]) / max(float64(pace), 1)
			if !more || float64(wait) < min(want*0.9, want) && wait != minWait || wait < minWait || float64(wait) > max(want*1.1, float64(minWait))+1 {
				t.Errorf("after attempt %d at pace %g: %s, %v", n, pace, wait, more)
			}
		}
	}
	if _, more := backOff(10, 1, 0, rand.Int64N); more {
		t.Error("an eleventh attempt is scheduled")
	}
	if wait, _ := backOff(1, 60, time.Hour, rand.Int64N); wait < time.Minute || wait > time.Minute+time.Second {
		t.Errorf("asked for an hour, at pace 60: %s", wait)
	}
}

// The store takes an instant that lies further ahead than any pause for that of a wrong
// clock.
func TestTheStoreKnowsTheLongestPause(t *testing.T) {
	t.Parallel()
	most := func(n int64) int64 { return n - 1 } // the largest jitter, and never early
	var longest time.Duration
	for n := range steps {
		wait, _ := backOff(int64(n)+1, 1, 24*time.Hour, most)
		longest = max(longest, wait)
	}
	if got := store.LongestDeliveryPause; longest > got || longest < got-time.Second {
		t.Errorf("the store expects deliveries to wait for %s, they wait for %s", got, longest)
	}
}
