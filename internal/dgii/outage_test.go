package dgii

import (
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/wake"
)

// failAll makes the authority answer every request with a page while down is true,
// and counts the requests for seeds.
func failAll(s *env, down *atomic.Bool, seeds *atomic.Int64) {
	handler := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			seeds.Add(1)
		}
		if down.Load() {
			answer(503, htmlPage)(w, r)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// waitUntil waits until ok is true.
func waitUntil(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx := testContext(t)
	for !ok() {
		if ctx.Err() != nil {
			t.Fatalf("%s did not happen", what)
		}
		runtime.Gosched()
	}
}

// While the authority is down, the client requests seeds. The first answer ends the
// outage without a document being sent, and the probes end with it.
func TestDownEndsWithoutADocument(t *testing.T) {
	t.Parallel()
	var posts, seeds atomic.Int64
	var down atomic.Bool
	s := newEnv(t, func(w http.ResponseWriter, r *http.Request) { posts.Add(1); answer(503, "")(w, r) })
	failAll(s, &down, &seeds)
	c := s.client(t, func(o *Options) { o.Pace = wake.Pace(2000) })
	id := signer(t)
	if _, ok := c.LastAnswer(); ok {
		t.Error("an answer before the first call")
	}
	if _, err := c.token(testContext(t), id); err != nil {
		t.Fatal(err)
	}
	answered := s.clock.Now()
	if at, ok := c.LastAnswer(); !ok || !at.Equal(answered) {
		t.Errorf("LastAnswer() = %v, %v", at, ok)
	}
	down.Store(true)
	s.clock.advance(time.Second)
	failedAt := s.clock.Now()
	for range failureThreshold {
		_, err := c.SubmitSummary(testContext(t), id, shipment())
		wantError(t, err, fiscal.ErrInconclusive)
		s.clock.advance(time.Microsecond)
	}
	if since, is := c.Down(); !is || !since.Equal(failedAt) {
		t.Errorf("Down() = %v, %v, want %v", since, is, failedAt)
	}
	before := seeds.Load()
	waitUntil(t, "a probe", func() bool { return seeds.Load() >= before+3 })
	if since, is := c.Down(); !is || !since.Equal(failedAt) {
		t.Errorf("Down() = %v, %v, want %v", since, is, failedAt)
	}
	if at, _ := c.LastAnswer(); !at.Equal(answered) {
		t.Errorf("an error page counts as an answer: %v", at)
	}
	sent := posts.Load()
	down.Store(false)
	waitUntil(t, "the end of the outage", func() bool { _, is := c.Down(); return !is })
	waitUntil(t, "the end of the probes", func() bool {
		c.outage.mu.Lock()
		defer c.outage.mu.Unlock()
		return !c.outage.probing
	})
	if posts.Load() != sent {
		t.Errorf("%d documents were sent", posts.Load()-sent)
	}
	// The circuit of the service stays open until a call to it succeeds.
	if !c.rfce.breaker.isOpen() {
		t.Error("a seed closed the circuit of another service")
	}
}

// The open circuit of one service is no outage while another service answers.
func TestOneFailingServiceIsNoOutage(t *testing.T) {
	t.Parallel()
	s := newEnv(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			answer(503, "")(w, r)
			return
		}
		answer(200, `{"codigo":1,"estado":"Aceptado"}`)(w, r)
	})
	c := s.client(t)
	id := signer(t)
	for range failureThreshold {
		_, err := c.SubmitSummary(testContext(t), id, shipment())
		wantError(t, err, fiscal.ErrInconclusive)
	}
	if _, down := c.Down(); !down {
		t.Error("no service has answered since the circuit opened")
	}
	if _, err := c.Result(testContext(t), id, "t"); err != nil {
		t.Fatal(err)
	}
	if since, down := c.Down(); down {
		t.Errorf("down since %v although a service answers", since)
	}
}

// Close ends the probes although the authority is still down.
func TestCloseEndsTheProbes(t *testing.T) {
	t.Parallel()
	s := newEnv(t, answer(503, ""))
	var seeds atomic.Int64
	var down atomic.Bool
	failAll(s, &down, &seeds)
	down.Store(true)
	c, err := New(s.options(t))
	if err != nil {
		t.Fatal(err)
	}
	for range failureThreshold {
		_, err := c.Submit(testContext(t), signer(t), shipment())
		wantError(t, err, fiscal.ErrNotReceived)
	}
	if _, is := c.Down(); !is {
		t.Error("the authority is not down")
	}
	c.Close()
}

// Before the first document is signed, the checks of the clock alone show that the
// authority is down.
func TestFailedClockChecksShowAnOutage(t *testing.T) {
	t.Parallel()
	e := newClockEnv(t)
	e.status.Store(503)
	e.noDate.Store(true)
	began := e.clocks.Now()
	for range failureThreshold {
		if _, down := e.client.Down(); down {
			t.Error("down after too few failures")
		}
		wantError(t, e.client.CheckClock(testContext(t)), fiscal.ErrUnavailable)
		e.clocks.pass(clockCheckInterval)
	}
	if since, down := e.client.Down(); !down || !since.Equal(began) {
		t.Errorf("Down() = %v, %v", since, down)
	}
}
