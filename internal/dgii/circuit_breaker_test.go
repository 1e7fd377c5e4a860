package dgii

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

func TestCircuitOpensAfterFailuresAndClosesAfterAProbe(t *testing.T) {
	t.Parallel()
	var posts atomic.Int64
	s := newEnv(t, func(w http.ResponseWriter, r *http.Request) { posts.Add(1); answer(503, "")(w, r) })
	c := s.client(t, func(o *Options) { o.Pace = 2 })
	id := signer(t)
	submit := func(want error) error {
		t.Helper()
		_, err := c.Submit(testContext(t), id, shipment())
		wantError(t, err, want)
		return err
	}
	for range failureThreshold {
		if _, down := c.Down(); down {
			t.Fatal("the circuit opened too early")
		}
		_ = submit(fiscal.ErrInconclusive)
	}
	opened := s.clock.Now()
	if since, down := c.Down(); !down || !since.Equal(opened) {
		t.Errorf("Down() = %v, %v", since, down)
	}
	for _, circuit := range c.Circuits() {
		if circuit.Open != (circuit.Service == "reception") {
			t.Errorf("the circuit of %s is open: %v", circuit.Service, circuit.Open)
		}
	}
	s.clock.advance(4 * time.Second)
	err := submit(fiscal.ErrNotReceived)
	if wait, ok := errors.AsType[*RetryAfterError](err); !ok || wait.Delay != time.Second {
		t.Errorf("%v", err)
	}
	if posts.Load() != failureThreshold {
		t.Fatalf("%d posts", posts.Load())
	}
	if _, err := c.Result(testContext(t), id, "t"); !errors.Is(err, fiscal.ErrUnavailable) {
		t.Error(err) // the circuit of this service is closed: the call is made
	}
	if posts.Load() != failureThreshold+1 {
		t.Errorf("the open circuit of one service stopped a call to another")
	}

	// One probe is made after each wait, and it requests a seed before it sends the document.
	s.clock.advance(time.Second)
	seeds := s.seedRequests.Load()
	_ = submit(fiscal.ErrInconclusive)
	_ = submit(fiscal.ErrNotReceived)
	if posts.Load() != failureThreshold+2 || s.seedRequests.Load() != seeds+1 {
		t.Errorf("%d posts, %d seeds", posts.Load(), s.seedRequests.Load()-seeds)
	}
	s.clock.advance(5 * time.Second)
	s.respond(answer(200, `{"trackId":"t"}`))
	_ = submit(nil)
	if _, down := c.Down(); down {
		t.Error("the circuit is still open")
	}
	_ = submit(nil)
}

// A probe sends no document while the authority cannot be reached: the outcome of
// the document would be unknown.
func TestProbeSendsNoDocumentWhileTheAuthorityIsDown(t *testing.T) {
	t.Parallel()
	var posts atomic.Int64
	down := atomic.Bool{}
	s := newEnv(t, func(w http.ResponseWriter, r *http.Request) { posts.Add(1); answer(503, "")(w, r) })
	handler := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			answer(503, htmlPage)(w, r)
			posts.Add(int64(len(r.Method) - 3)) // counts POST, not GET
			return
		}
		handler.ServeHTTP(w, r)
	})
	c := s.client(t)
	id := signer(t)
	for range failureThreshold {
		_, err := c.SubmitSummary(testContext(t), id, shipment())
		wantError(t, err, fiscal.ErrInconclusive)
	}
	before := posts.Load()
	down.Store(true)
	for range 3 {
		s.clock.advance(probeInterval)
		_, err := c.SubmitSummary(testContext(t), id, shipment())
		wantError(t, err, fiscal.ErrNotReceived)
	}
	if posts.Load() != before {
		t.Errorf("probes sent %d documents", posts.Load()-before)
	}
}

// Problems of a document do not open the circuit.
func TestCircuitStaysClosedAfterConclusiveAnswers(t *testing.T) {
	t.Parallel()
	s := newEnv(t, answer(400, `{"mensajes":["no"]}`))
	c := s.client(t)
	for range 2 * failureThreshold {
		if _, err := c.Submit(testContext(t), signer(t), shipment()); err != nil {
			t.Fatal(err)
		}
	}
	s.respond(answer(200, `{"codigo":1,"estado":"Rechazado"}`))
	for range 2 * failureThreshold {
		_, err := c.Result(testContext(t), signer(t), "t")
		wantError(t, err, fiscal.ErrUnavailable)
	}
	for _, service := range []*service{c.reception, c.result} {
		if service.breaker.isOpen() {
			t.Errorf("the circuit of %s is open", service.name)
		}
	}
}

func TestRetryAfterPausesTheService(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]time.Duration{
		"": probeInterval, "7": 7 * time.Second, "x": probeInterval, "-1": probeInterval, "999999": time.Hour,
		"Thu, 08 Oct 2026 10:00:30 GMT": 30 * time.Second,
	} {
		var posts atomic.Int64
		s := newEnv(t, func(w http.ResponseWriter, r *http.Request) {
			posts.Add(1)
			w.Header().Set("Date", "Thu, 08 Oct 2026 10:00:00 GMT")
			w.Header().Set("Retry-After", header)
			answer(429, htmlPage)(w, r)
		})
		c := s.client(t)
		for range 2 {
			_, err := c.Submit(testContext(t), signer(t), shipment())
			wantError(t, err, fiscal.ErrNotReceived)
			wait, ok := errors.AsType[*RetryAfterError](err)
			if !ok || wait.Delay != min(want, max(wait.Delay, maxPause)) {
				t.Errorf("%q: %v", header, err)
			}
		}
		if posts.Load() != 1 {
			t.Errorf("%q: %d posts", header, posts.Load())
		}
	}
}
