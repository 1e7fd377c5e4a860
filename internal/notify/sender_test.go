package notify

import (
	"bytes"
	"errors"
	"net/http"
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
	"github.com/fiscalhub/fiscalhub/internal/wake"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

// An endpoint that fails nine times is told at the tenth: at the schedule, under
// one id, signed anew each time.
func TestP99TheScheduleOfRetries(t *testing.T) {
	eachOffice(t, func(t *testing.T, o *office) {
		r := newReceiver(t, func(w http.ResponseWriter, n int) {
			if n < 10 {
				w.WriteHeader(http.StatusInternalServerError)
			}
		})
		e, secret := o.endpoint(r.URL, event.All)
		n := o.tell(o.scope, "fiscal_document.accepted")
		s := o.node()
		times := []time.Time{o.now()}
		for i, step := range steps {
			if got := o.round(s); got != 1 {
				t.Fatalf("attempt %d: %d deliveries are due", i+1, got)
			}
			due := o.next()
			wait := due.Sub(o.now())
			early := step - step/10
			if i < 2 {
				early = step
			}
			if wait < early || wait > step+step/10 {
				t.Errorf("after attempt %d: %s, want %s ±10 %%, and the first two never early", i+1, wait, step)
			}
			o.set(due.Add(-time.Microsecond))
			if o.round(s) != 0 {
				t.Errorf("attempt %d was made before its time", i+2)
			}
			o.set(due)
			times = append(times, due)
		}
		if o.round(s) != 1 {
			t.Fatal("the tenth attempt was not made")
		}
		o.advance(1000 * time.Hour)
		if o.round(s) != 0 {
			t.Error("an eleventh attempt was made")
		}
		got := r.letters()
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
			ids[l.header.Get("X-Request-Id")] = true
		}
		log := o.log(e)
		if len(log) != 10 || log[0].Error != "" || log[0].HTTPStatus != 200 || log[0].Number != 10 || !log[0].NextAt.IsZero() ||
			log[9].Error != "status_500" || log[9].Number != 1 || !log[9].NextAt.Equal(times[1]) {
			t.Errorf("the log: %+v", log)
		}
		for _, a := range log {
			if !ids[a.ID] {
				t.Errorf("the log names %s, which the receiver never saw", a.ID)
			}
		}
		if d, err := o.store.DeliveriesOf(t.Context(), o.scope, n.ID); err != nil || len(d) != 1 || d[0].State != store.DeliveryDelivered {
			t.Errorf("the delivery: %+v, %v", d, err)
		}
	})
}

func TestADeliveryThatFailsTenTimesIsGivenUp(t *testing.T) {
	eachOffice(t, func(t *testing.T, o *office) {
		r := newReceiver(t, status(http.StatusInternalServerError))
		e, _ := o.endpoint(r.URL, event.All)
		n := o.tell(o.scope, "fiscal_document.accepted")
		s, began := o.node(), o.now()
		for i := 1; i <= 10; i++ {
			if o.round(s) != 1 {
				t.Fatalf("attempt %d was not made", i)
			}
			if i < 10 {
				o.set(o.next())
			}
		}
		if span := o.now().Sub(began); span < 68*time.Hour || span > 84*time.Hour {
			t.Errorf("ten attempts over %s", span)
		}
		d, err := o.store.DeliveriesOf(t.Context(), o.scope, n.ID)
		if err != nil || d[0].State != store.DeliveryFailed || o.read(e).Status != store.EndpointEnabled {
			t.Errorf("%+v, %v; the endpoint is %s", d, err, o.read(e).Status)
		}
		// Everything that was not told is told again on request.
		replayed, err := o.Replay(t.Context(), o.scope, e.ID, Replay{Failed: true})
		if err != nil || replayed != 1 || o.round(s) != 0 {
			t.Errorf("replayed %d, %v; or the endpoint had no rest", replayed, err)
		}
		o.advance(restTime)
		if o.round(s) != 1 {
			t.Error("what was replayed is not sent")
		}
	})
}

// Wherever a process ends, what it had in hand is sent again under the same id,
// and nothing is missing.
func TestP101AKillBetweenSendAndRecord(t *testing.T) {
	eachOffice(t, func(t *testing.T, o *office) {
		for _, point := range []string{"before claim", "after claim", "before send", "after send", "before record", "after record"} {
			t.Run(point, func(t *testing.T) {
				o.t = t
				o.scope = o.taxpayer()
				r := newReceiver(t, status(http.StatusNoContent))
				e, _ := o.endpoint(r.URL, event.All)
				want := []string{o.tell(o.scope, "fiscal_document.submitted").ID, o.tell(o.scope, "fiscal_document.accepted").ID}
				doomed := o.node()
				doomed.onPoint = func(name string) {
					if name == point {
						runtime.Goexit()
					}
				}
				var dying sync.WaitGroup
				dying.Go(func() { o.round(doomed) })
				dying.Wait()
				sent := len(r.letters())
				if wantSent := map[string]int{"after send": 1, "before record": 1, "after record": 1}[point]; sent != wantSent {
					t.Fatalf("%d were sent before the end, want %d", sent, wantSent)
				}
				next := o.node()
				for range 3 {
					o.round(next)
					o.advance(wake.MaxLease)
				}
				times := map[string]int{}
				for _, l := range r.letters() {
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
					t.Errorf("the receiver got %v; want each, and %d again", times, repeated)
				}
				if log := o.log(e); len(log) != 2 || log[0].Number != 1 {
					t.Errorf("the log: %+v", log)
				}
			})
		}
	})
}

// While one endpoint hangs, another is told everything.
func TestP102AnEndpointThatHangsDelaysNobody(t *testing.T) {
	eachOffice(t, func(t *testing.T, o *office) {
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
		o.endpoint(hung.URL, event.All)
		const events = 40
		for range events {
			o.tell(o.scope, "fiscal_document.accepted")
		}
		s := o.node()
		stop := o.run(s)
		soon(t, "the slow one hangs", func() bool { return hanging.Load() == store.MaxConcurrency })
		o.endpoint(healthy.URL, event.All)
		for range events {
			o.tell(o.scope, "fiscal_document.accepted")
		}
		s.Wake()
		soon(t, "the healthy one is told", func() bool { return len(healthy.letters()) == events })
		if len(hung.letters()) != store.MaxConcurrency || most.Load() != store.MaxConcurrency {
			t.Errorf("the slow one got %d, %d at a time", len(hung.letters()), most.Load())
		}
		close(release)
		soon(t, "the slow one is told", func() bool { return len(hung.letters()) == 2*events })
		stop()
		ids := map[string]bool{}
		for _, l := range hung.letters() {
			ids[l.id()] = true
		}
		if len(ids) != 2*events {
			t.Errorf("%d different events", len(ids))
		}
	})
}

// Both secrets sign for a day after a rotation, and then the new one alone; a
// retry is signed with what is valid then.
func TestP104RotationOfASecret(t *testing.T) {
	eachOffice(t, func(t *testing.T, o *office) {
		r := newReceiver(t, func(w http.ResponseWriter, n int) {
			if n == 3 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		})
		e, first := o.endpoint(r.URL, event.All)
		s := o.node()
		send := func(signers, others []webhook.Secret) {
			t.Helper()
			if o.round(s) != 1 {
				t.Fatal("nothing was sent")
			}
			all := r.letters()
			l := all[len(all)-1]
			if got := len(strings.Fields(l.header.Get(webhook.HeaderSignature))); got != len(signers) {
				t.Errorf("%d signatures, want %d", got, len(signers))
			}
			for _, secret := range signers {
				if err := webhook.Verify(l.header, l.body, o.now(), secret); err != nil {
					t.Errorf("a secret that is valid: %v", err)
				}
			}
			for _, secret := range others {
				if err := webhook.Verify(l.header, l.body, o.now(), secret); !errors.Is(err, webhook.ErrSignature) {
					t.Errorf("a secret that is not: %v", err)
				}
			}
		}
		o.tell(o.scope, "fiscal_document.accepted")
		send([]webhook.Secret{first}, nil)
		after, second, err := o.Rotate(t.Context(), o.scope, e.ID)
		o.must(err)
		if after.Secret.Version != 2 || second.Reveal() == first.Reveal() {
			t.Errorf("rotated to version %d", after.Secret.Version)
		}
		o.tell(o.scope, "fiscal_document.accepted")
		send([]webhook.Secret{second, first}, nil)
		o.advance(Overlap - time.Microsecond)
		o.tell(o.scope, "fiscal_document.accepted")
		send([]webhook.Secret{second, first}, nil) // and fails
		o.set(o.next())
		send([]webhook.Secret{second}, []webhook.Secret{first})

		if _, _, err := o.Rotate(t.Context(), o.taxpayer(), e.ID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("by another taxpayer: %v, want ErrNotFound", err)
		}
	})
}

// A sender that is told to stop ends at once with what hangs, which is sent again
// later and counts as nothing.
func TestStoppingLetsGo(t *testing.T) {
	eachOffice(t, func(t *testing.T, o *office) {
		s := o.node()
		e, _ := o.endpoint("https://hooks.example.com/x", event.All)
		n := o.tell(o.scope, "fiscal_document.accepted")
		s.baseURL = "https://api.example.com"
		s.poster = posterFunc(func(webhook.Message) webhook.Result { return webhook.Result{Error: webhook.ClassStopped} })
		if o.round(s) != 1 || len(o.log(e)) != 0 || o.read(e).Failures != 0 {
			t.Errorf("it counted: %+v", o.log(e))
		}
		var seen webhook.Message
		s.poster = posterFunc(func(m webhook.Message) webhook.Result { seen = m; return webhook.Result{Status: 200} })
		if o.round(s) != 1 || seen.ID != n.ID || !bytes.Equal(seen.Body, n.Body) {
			t.Errorf("it was not sent again as it is: %+v", seen)
		}
		linked := store.Event{Scope: o.scope, ID: event.NewID(), Kind: "a", At: o.now(), Body: []byte(`{"links":{"self":"/v1/x"}}`)}
		o.must(o.store.Update(t.Context(), func(tx *store.Tx) error { return tx.AddEvent(t.Context(), linked) }))
		if o.round(s) != 1 || string(seen.Body) != `{"links":{"self":"https://api.example.com/v1/x"}}` {
			t.Errorf("the link: %s", seen.Body)
		}
	})
}

// With a secret that does not open nothing is sent, and nothing is lost.
func TestASecretThatDoesNotOpen(t *testing.T) {
	eachOffice(t, func(t *testing.T, o *office) {
		r := newReceiver(t, status(http.StatusOK))
		e, _ := o.endpoint(r.URL, event.All)
		o.tell(o.scope, "fiscal_document.accepted")
		good := o.read(e)
		o.rewrap(good, []byte("no sealed bytes"))
		s := o.node()
		o.round(s)
		if len(r.letters()) != 0 || len(o.log(e)) != 0 || o.read(e).Failures != 0 {
			t.Error("it was sent, or counted")
		}
		o.rewrap(good, good.Secret.Sealed)
		o.set(o.next())
		if o.round(s) != 1 || len(r.letters()) != 1 {
			t.Error("it was not sent afterwards")
		}
	})
}

func (o *office) rewrap(e store.Endpoint, sealed []byte) {
	o.t.Helper()
	e.Secret.Sealed = sealed
	o.must(o.store.Update(o.t.Context(), func(tx *store.Tx) error { return tx.RewrapEndpoint(o.t.Context(), e) }))
}

type posterFunc func(webhook.Message) webhook.Result

// The running sender sends what it is roused for, waits for what is due later,
// and stops.
func TestRunSendsWhatIsWritten(t *testing.T) {
	eachOffice(t, func(t *testing.T, o *office) {
		r := newReceiver(t, func(w http.ResponseWriter, n int) {
			if n == 1 {
				w.WriteHeader(http.StatusInternalServerError)
			}
		})
		o.endpoint(r.URL, event.All)
		s := o.node()
		stop := o.run(s)
		o.tell(o.scope, "fiscal_document.accepted")
		s.Wake()
		soon(t, "the first attempt", func() bool {
			_, err := o.store.NextDelivery(t.Context(), fiscal.Production, o.now())
			return len(r.letters()) == 1 && err == nil
		})
		o.set(o.next())
		soon(t, "the second attempt, without a call", func() bool { return len(r.letters()) == 2 })
		stop()
	})
}

func TestPaceDividesTheSchedule(t *testing.T) {
	t.Parallel()
	for n := int64(1); n <= 9; n++ {
		for _, pace := range []wake.Pace{0, 1, 60, 1e9} {
			wait, more := backOff(n, pace, 0)
			want := float64(steps[n-1]) / max(float64(pace), 1)
			if !more || float64(wait) < min(want*0.9, want) && wait != minWait || wait < minWait || float64(wait) > max(want*1.1, float64(minWait))+1 {
				t.Errorf("after attempt %d at pace %g: %s, %v", n, pace, wait, more)
			}
		}
	}
	if _, more := backOff(10, 1, 0); more {
		t.Error("an eleventh attempt is scheduled")
	}
	if wait, _ := backOff(1, 60, time.Hour); wait < time.Minute || wait > time.Minute+time.Second {
		t.Errorf("asked for an hour, at pace 60: %s", wait)
	}
}
