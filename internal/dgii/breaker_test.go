package dgii

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

func TestBreaker(t *testing.T) {
	t.Parallel()
	var posts atomic.Int64
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { posts.Add(1); say(503, "")(w, r) })
	c := s.client(t, func(o *Options) { o.Pace = 2 })
	id := signer(t)
	submit := func(want error) error {
		t.Helper()
		_, err := c.Submit(soon(t), id, shipment())
		wantError(t, err, want)
		return err
	}
	for range breakerFailures {
		if _, down := c.Down(); down {
			t.Fatal("down too early")
		}
		_ = submit(fiscal.ErrInconclusive)
	}
	opened := s.clock.Now()
	if since, down := c.Down(); !down || !since.Equal(opened) {
		t.Errorf("down since %v, %v", since, down)
	}
	s.clock.advance(4 * time.Second)
	err := submit(fiscal.ErrNotReceived)
	if wait, ok := errors.AsType[*RetryAfter](err); !ok || wait.After != time.Second {
		t.Errorf("%v", err)
	}
	if posts.Load() != breakerFailures {
		t.Fatalf("%d posts", posts.Load())
	}
	if _, err := c.Result(soon(t), id, "t"); !errors.Is(err, fiscal.ErrUnavailable) {
		t.Error(err) // its own circuit is closed, and its call is made
	}
	if posts.Load() != breakerFailures+1 {
		t.Errorf("another service waits too")
	}

	// One probe per wait, and no document before a seed.
	s.clock.advance(time.Second)
	seeds := s.seeds.Load()
	_ = submit(fiscal.ErrInconclusive)
	_ = submit(fiscal.ErrNotReceived)
	if posts.Load() != breakerFailures+2 || s.seeds.Load() != seeds+1 {
		t.Errorf("%d posts, %d seeds", posts.Load(), s.seeds.Load()-seeds)
	}
	s.clock.advance(5 * time.Second)
	s.script(say(200, `{"trackId":"t"}`))
	_ = submit(nil)
	if _, down := c.Down(); down {
		t.Error("still down")
	}
	_ = submit(nil)
}

// While nothing can be reached no document is risked.
func TestProbeRisksNoDocument(t *testing.T) {
	t.Parallel()
	var posts atomic.Int64
	down := atomic.Bool{}
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { posts.Add(1); say(503, "")(w, r) })
	handler := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			say(503, page)(w, r)
			posts.Add(int64(len(r.Method) - 3)) // POST
			return
		}
		handler.ServeHTTP(w, r)
	})
	c := s.client(t)
	id := signer(t)
	for range breakerFailures {
		_, err := c.SubmitSummary(soon(t), id, shipment())
		wantError(t, err, fiscal.ErrInconclusive)
	}
	before := posts.Load()
	down.Store(true)
	for range 3 {
		s.clock.advance(breakerWait)
		_, err := c.SubmitSummary(soon(t), id, shipment())
		wantError(t, err, fiscal.ErrNotReceived)
	}
	if posts.Load() != before {
		t.Errorf("%d documents were risked", posts.Load()-before)
	}
}

// What is wrong with documents or tokens does not open a circuit.
func TestConclusiveAnswersKeepTheCircuit(t *testing.T) {
	t.Parallel()
	s := serve(t, say(400, `{"mensajes":["no"]}`))
	c := s.client(t)
	for range 2 * breakerFailures {
		if _, err := c.Submit(soon(t), signer(t), shipment()); err != nil {
			t.Fatal(err)
		}
	}
	s.script(say(200, `{"codigo":1,"estado":"Rechazado"}`))
	for range 2 * breakerFailures {
		_, err := c.Result(soon(t), signer(t), "t")
		wantError(t, err, fiscal.ErrUnavailable)
	}
	for _, service := range []*service{c.reception, c.result} {
		if _, open := service.breaker.since(); open {
			t.Errorf("the circuit of %s is open", service.name)
		}
	}
}

func TestToldToWait(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]time.Duration{
		"": breakerWait, "7": 7 * time.Second, "x": breakerWait, "-1": breakerWait, "999999": time.Hour,
		"Thu, 08 Oct 2026 10:00:30 GMT": 30 * time.Second,
	} {
		var posts atomic.Int64
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			posts.Add(1)
			w.Header().Set("Date", "Thu, 08 Oct 2026 10:00:00 GMT")
			w.Header().Set("Retry-After", header)
			say(429, page)(w, r)
		})
		c := s.client(t)
		for range 2 {
			_, err := c.Submit(soon(t), signer(t), shipment())
			wantError(t, err, fiscal.ErrNotReceived)
			wait, ok := errors.AsType[*RetryAfter](err)
			if !ok || wait.After != min(want, max(wait.After, holdMost)) {
				t.Errorf("%q: %v", header, err)
			}
		}
		if posts.Load() != 1 {
			t.Errorf("%q: %d posts", header, posts.Load())
		}
	}
}

func TestClock(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	s.script(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", s.clock.Now().Add(90*time.Second).UTC().Format(http.TimeFormat))
		say(503, "")(w, r)
	})
	c := s.client(t)
	if _, known := c.Clock(); known {
		t.Error("known before any answer")
	}
	if _, err := c.Result(soon(t), signer(t), "t"); err == nil {
		t.Error("no error")
	}
	if offset, known := c.Clock(); !known || offset < 88*time.Second || offset > 91*time.Second {
		t.Errorf("%v, %v", offset, known)
	}
}

func TestHosts(t *testing.T) {
	t.Parallel()
	if _, err := SimulatorHosts("http://127.0.0.1:9090/", "certecf"); err != nil {
		t.Error(err)
	}
	for _, tt := range [][2]string{{"ftp://x", "ecf"}, {"http://", "ecf"}, {"http://x", "production"}, {"http://u@x", "ecf"}, {"x", "ecf"}} {
		if h, err := SimulatorHosts(tt[0], tt[1]); err == nil {
			t.Errorf("%v: %+v", tt, h)
		}
	}
	if _, err := New(Options{Hosts: ProductionHosts("ecf")}); err == nil {
		t.Error("a client without a clock")
	}
	c := newClient(t, Options{Hosts: ProductionHosts("ecf"), Now: time.Now})
	if want := "https://fc.dgii.gov.do/ecf/recepcionfc/api/recepcion/ecf"; c.rfce.base != want {
		t.Errorf("%s, want %s", c.rfce.base, want)
	}
}
