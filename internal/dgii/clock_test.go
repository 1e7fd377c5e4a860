package dgii

import (
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// A twoClocks has a wall clock and a monotonic clock that a test moves.
type twoClocks struct {
	mu        sync.Mutex
	wall      time.Time
	monotonic time.Duration
}

func newTwoClocks() *twoClocks {
	return &twoClocks{wall: time.Date(2026, 10, 8, 12, 0, 0, 0, time.UTC)}
}

func (c *twoClocks) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wall
}

func (c *twoClocks) Monotonic() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.monotonic
}

// pass lets time pass on both clocks.
func (c *twoClocks) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall, c.monotonic = c.wall.Add(d), c.monotonic+d
}

// set moves the wall clock alone.
func (c *twoClocks) set(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall = c.wall.Add(d)
}

// A clockEnv is an authority whose clock is ahead of the client's by an amount that
// the test sets.
type clockEnv struct {
	*env
	clocks   *twoClocks
	client   *Client
	ahead    atomic.Int64 // a time.Duration
	status   atomic.Int64 // of the answers
	noDate   atomic.Bool
	requests atomic.Int64
}

func newClockEnv(t *testing.T) *clockEnv {
	t.Helper()
	e := &clockEnv{env: newEnv(t, answer(200, `{"trackId":"t"}`)), clocks: newTwoClocks()}
	e.status.Store(200)
	handler := e.Config.Handler
	e.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.requests.Add(1)
		w.Header().Set("Date", e.clocks.Now().Add(time.Duration(e.ahead.Load())).UTC().Format(http.TimeFormat))
		if e.noDate.Load() {
			w.Header()["Date"] = nil
		}
		if status := int(e.status.Load()); status != 200 {
			answer(status, htmlPage)(w, r)
			return
		}
		handler.ServeHTTP(w, r)
	})
	e.client = e.env.client(t, func(o *Options) { o.Now, o.Monotonic = e.clocks.Now, e.clocks.Monotonic })
	return e
}

// observe gives the client one response of an authority whose clock is ahead.
func (e *clockEnv) observe(ahead time.Duration) {
	e.client.clock.observe(e.clocks.Now().Add(ahead), e.client.clock.read())
}

func (e *clockEnv) want(t *testing.T, ahead time.Duration, known, confirmed bool) {
	t.Helper()
	gotAhead, gotKnown := e.client.Clock()
	if gotAhead != ahead || gotKnown != known || e.client.ClockConfirmed() != confirmed {
		t.Errorf("Clock() = %v, %v; ClockConfirmed() = %v; want %v, %v, %v", gotAhead, gotKnown, e.client.ClockConfirmed(), ahead, known, confirmed)
	}
}

func TestOneWrongDateHeaderIsIgnored(t *testing.T) {
	t.Parallel()
	e := newClockEnv(t)
	e.want(t, 0, false, false)
	e.observe(-time.Hour) // the first response is the wrong one
	e.want(t, 0, false, false)
	e.observe(time.Second)
	e.want(t, time.Second, true, true)
	for range 5 {
		e.observe(10 * time.Minute)
		e.want(t, time.Second, true, true)
		e.observe(time.Second)
		e.want(t, time.Second, true, true)
	}
}

func TestOffsetCountsWhenTwoResponsesAgree(t *testing.T) {
	t.Parallel()
	e := newClockEnv(t)
	e.observe(-5 * time.Second)
	e.want(t, 0, false, false)
	e.observe(-6 * time.Second)
	e.want(t, -6*time.Second, true, true)
	e.observe(200 * time.Second)
	e.want(t, -6*time.Second, true, true)
	e.observe(201 * time.Second)
	e.want(t, 201*time.Second, true, true)
	// A response that agrees with our own clock is one witness too few now.
	e.observe(0)
	e.want(t, 201*time.Second, true, true)
}

func TestOffsetExpires(t *testing.T) {
	t.Parallel()
	e := newClockEnv(t)
	e.observe(2 * time.Second)
	e.clocks.pass(clockLife)
	e.want(t, 2*time.Second, true, true)
	e.clocks.pass(time.Second)
	e.want(t, 2*time.Second, false, true)
	e.observe(time.Second)
	e.want(t, time.Second, true, true)
	e.clocks.pass(clockLife - time.Minute)
	e.observe(time.Hour) // a wrong one does not prolong it
	e.clocks.pass(2 * time.Minute)
	e.want(t, time.Second, false, true)
}

func TestOffsetIsUnknownAfterTheClockWasSet(t *testing.T) {
	t.Parallel()
	for _, step := range []time.Duration{5 * time.Second, -5 * time.Second, 1100 * time.Millisecond} {
		e := newClockEnv(t)
		e.observe(0)
		e.clocks.pass(time.Minute)
		e.clocks.set(step)
		e.want(t, 0, false, false)
		e.clocks.set(-step) // setting it back does not restore the trust
		e.want(t, 0, false, false)
	}
	e := newClockEnv(t)
	e.observe(0)
	e.clocks.set(900 * time.Millisecond)
	e.want(t, 0, true, true)
	// A response that arrives before the step is noticed cannot confirm one from
	// before the step.
	e.observe(-5 * time.Second)
	e.clocks.set(5 * time.Second)
	e.observe(-5 * time.Second)
	e.want(t, 0, false, false)
	e.observe(-5 * time.Second)
	e.want(t, -5*time.Second, true, true)
}

// An offset that stops the signing of documents is measured again soon: no other
// call does it.
func TestLargeOffsetIsMeasuredAgainAfterAMinute(t *testing.T) {
	t.Parallel()
	e := newClockEnv(t)
	e.observe(-5 * time.Minute)
	e.observe(-5 * time.Minute)
	e.clocks.pass(remeasureAfter)
	if err := e.client.CheckClock(testContext(t)); err != nil || e.requests.Load() != 0 {
		t.Errorf("%v, %d requests", err, e.requests.Load())
	}
	e.clocks.pass(time.Second)
	e.want(t, -5*time.Minute, true, true)
	// The authority's clock is right again. One response does not show it.
	wantError(t, e.client.CheckClock(testContext(t)), fiscal.ErrUnavailable)
	e.want(t, -5*time.Minute, true, true)
	e.clocks.pass(time.Second)
	if err := e.client.CheckClock(testContext(t)); err != nil {
		t.Error(err)
	}
	e.want(t, 0, true, true)
}

// The times of time.Now carry a monotonic reading, so that no other source is needed.
func TestReaderUsesTheMonotonicReadingOfTheTimes(t *testing.T) {
	t.Parallel()
	start := time.Now()
	now := start
	read := newReader(func() time.Time { return now }, nil)
	before := read()
	now = start.Add(time.Minute) // moves both readings
	after := read()
	if wall, monotonic := after.wall.Sub(before.wall), after.monotonic-before.monotonic; wall != time.Minute || monotonic != time.Minute {
		t.Errorf("wall %v, monotonic %v", wall, monotonic)
	}
}

func TestEveryResponseOfTheAuthorityMeasuresTheOffset(t *testing.T) {
	t.Parallel()
	e := newClockEnv(t)
	e.ahead.Store(int64(90 * time.Second))
	if _, err := e.client.Submit(testContext(t), signer(t), shipment()); err != nil { // a seed, a token and a document
		t.Fatal(err)
	}
	e.want(t, 90*time.Second, true, true)
}

func TestCheckClockAsksUntilTheOffsetIsConfirmed(t *testing.T) {
	t.Parallel()
	e := newClockEnv(t)
	e.status.Store(503) // an error page has a date, too
	check := func() error { return e.client.CheckClock(testContext(t)) }
	if err := check(); err != nil || e.requests.Load() != 1 {
		t.Fatalf("%v, %d requests", err, e.requests.Load())
	}
	e.want(t, 0, true, true)
	if err := check(); err != nil || e.requests.Load() != 1 {
		t.Errorf("the offset is known: %v, %d requests", err, e.requests.Load())
	}

	e.clocks.set(7 * time.Second)
	e.ahead.Store(int64(-7 * time.Second))
	wantRetry := func(err error) {
		t.Helper()
		wantError(t, err, fiscal.ErrUnavailable)
		if wait, ok := errors.AsType[*RetryAfterError](err); !ok || wait.Delay <= 0 || wait.Delay > time.Second {
			t.Errorf("%v", err)
		}
	}
	wantRetry(check()) // less than a second since the first request
	if e.requests.Load() != 1 {
		t.Errorf("%d requests", e.requests.Load())
	}
	e.clocks.pass(time.Second)
	wantRetry(check()) // the response has to be confirmed
	e.want(t, 0, false, false)
	wantRetry(check())
	if e.requests.Load() != 2 {
		t.Errorf("%d requests", e.requests.Load())
	}
	e.clocks.pass(time.Second)
	if err := check(); err != nil || e.requests.Load() != 3 {
		t.Errorf("%v, %d requests", err, e.requests.Load())
	}
	e.want(t, -7*time.Second, true, true)
}

func TestCheckClockFailsWithoutAResponse(t *testing.T) {
	t.Parallel()
	e := newClockEnv(t)
	e.noDate.Store(true)
	wantError(t, e.client.CheckClock(testContext(t)), fiscal.ErrUnavailable)
	closed, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	c := e.env.client(t, func(o *Options) { o.Hosts.ECF = "http://" + closed.Addr().String() })
	wantError(t, c.CheckClock(testContext(t)), fiscal.ErrUnavailable)
	if _, known := c.Clock(); known || c.ClockConfirmed() {
		t.Error("the offset is known without a response")
	}
}

// Many callers share one request, and an open circuit does not stop it.
func TestCheckClockIsSharedAndIgnoresTheCircuit(t *testing.T) {
	t.Parallel()
	e := newClockEnv(t)
	for range failureThreshold {
		e.client.auth.breaker.record(failed, false)
	}
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if err := e.client.CheckClock(testContext(t)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := e.requests.Load(); n != 1 {
		t.Errorf("%d requests", n)
	}
	e.client.Close()
	e.clocks.pass(time.Hour)
	if err := e.client.CheckClock(testContext(t)); !errors.Is(err, fiscal.ErrUnavailable) {
		t.Errorf("after Close: %v", err)
	}
}

func TestDateOfACachedResponseIsIgnored(t *testing.T) {
	t.Parallel()
	s := newEnv(t, nil)
	s.respond(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Age", "600")
		answer(503, "")(w, r)
	})
	handler := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Age", "600")
		handler.ServeHTTP(w, r)
	})
	c := s.client(t)
	wantError(t, c.CheckClock(testContext(t)), fiscal.ErrUnavailable)
}
