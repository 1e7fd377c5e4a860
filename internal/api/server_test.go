package api

import (
	"bufio"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/capacity"
)

func TestServerHasTheTimeoutsAndLimits(t *testing.T) {
	t.Parallel()
	s := NewServer(http.NotFoundHandler(), slog.New(slog.DiscardHandler))
	for name, got := range map[string][2]time.Duration{
		"ReadHeaderTimeout": {s.ReadHeaderTimeout, 5 * time.Second},
		"ReadTimeout":       {s.ReadTimeout, 30 * time.Second},
		"WriteTimeout":      {s.WriteTimeout, 60 * time.Second},
		"IdleTimeout":       {s.IdleTimeout, 120 * time.Second},
	} {
		if got[0] != got[1] {
			t.Errorf("%s is %s, want %s", name, got[0], got[1])
		}
	}
	if s.MaxHeaderBytes+(4<<10) != 16<<10 || s.HTTP2.MaxConcurrentStreams != 128 {
		t.Errorf("headers of %d bytes, %d streams", s.MaxHeaderBytes, s.HTTP2.MaxConcurrentStreams)
	}
}

// A mounted handler must not get a request with Content-Length and
// Transfer-Encoding, even after other requests on the same connection.
func TestMountInspectsEveryHeader(t *testing.T) {
	t.Parallel()
	answers := func(status int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	}
	h := Mount(answers(http.StatusAccepted), func(path string) bool { return strings.EqualFold(path, "/fe/x") }, answers(http.StatusNoContent))
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	server := NewServer(h, log)
	limited := capacity.New(capacity.DefaultLimits(1<<30, 2)).Listen(listener, capacity.NewClientFinder(nil, time.Now, log))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(limited) // returns when the server is closed
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	answer := bufio.NewReader(conn)
	for _, step := range []struct {
		path, lines string
		status      int
	}{
		{"/FE/x", "Content-Length: 0\r\n", http.StatusNoContent},
		{"/fe/x", "Content-Length: 0\r\n", http.StatusNoContent},
		{"/livez", "Content-Length: 0\r\n", http.StatusAccepted},
		{"/fe/x", "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n", http.StatusBadRequest},
	} {
		body := ""
		if strings.Contains(step.lines, "chunked") {
			body = "0\r\n\r\n"
		}
		if _, err := conn.Write([]byte("POST " + step.path + " HTTP/1.1\r\nHost: a\r\n" + step.lines + "\r\n" + body)); err != nil {
			t.Fatal(err)
		}
		got, err := http.ReadResponse(answer, nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = got.Body.Close()
		if got.StatusCode != step.status {
			t.Errorf("%s %q: %d, want %d", step.path, step.lines, got.StatusCode, step.status)
		}
	}
}

// AdmitCaller counts the requests of each caller apart, with the limit of a credential.
func TestAdmitCallerCountsByCaller(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	a := &API{o: Options{RateLimit: 20}, rateLimiter: &rateLimiter{limit: 20, now: func() time.Time { return now }, buckets: map[string]*bucket{}}}
	for n := range 20 {
		if !a.AdmitCaller(t.Context(), "token a") {
			t.Fatalf("request %d is refused", n+1)
		}
	}
	if a.AdmitCaller(t.Context(), "token a") || !a.AdmitCaller(t.Context(), "token b") {
		t.Error("the limit of one caller is not its own")
	}
	now = now.Add(time.Minute)
	if !a.AdmitCaller(t.Context(), "token a") {
		t.Error("refused in the next minute")
	}
}

// Admit counts requests by client address, apart from the failed requests of the
// API.
func TestAdmitCountsByAddress(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	clients := capacity.NewClientFinder(nil, time.Now, slog.New(slog.DiscardHandler))
	a := &API{o: Options{Clients: clients}, rateLimiter: &rateLimiter{limit: 1, now: func() time.Time { return now }, buckets: map[string]*bucket{}}}
	from := func(address string) *http.Request {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/fe/x", nil)
		r.RemoteAddr = address
		return r
	}
	for n := range anonymousLimit {
		if !a.Admit(from("198.51.100.7:1000")) {
			t.Fatalf("request %d is refused", n+1)
		}
	}
	if a.Admit(from("198.51.100.7:1001")) {
		t.Error("one request too many is admitted")
	}
	if !a.Admit(from("198.51.100.8:1000")) {
		t.Error("another address is refused")
	}
	if _, ok := a.rateLimiter.countAddress(t.Context(), "address 198.51.100.7"); !ok {
		t.Error("Admit used up the limit of failed API requests")
	}
	now = now.Add(time.Minute)
	if !a.Admit(from("198.51.100.7:1000")) {
		t.Error("a request of the next minute is refused")
	}
}

func TestReadDelayGrowsWithTheDelayedConnections(t *testing.T) {
	t.Parallel()
	for delayed, want := range map[int64][2]time.Duration{
		1:    {time.Millisecond, 4 * time.Millisecond},
		100:  {100 * time.Millisecond, 400 * time.Millisecond},
		1000: {time.Second, time.Second},
		4096: {time.Second, time.Second},
	} {
		if got := [2]time.Duration{readDelay(delayed, refusalsPerSecond), readDelay(delayed, exceededRefusalsPerSecond)}; got != want {
			t.Errorf("with %d delayed connections: %s, want %s", delayed, got, want)
		}
	}
}

// The refusal is sent before the delay. The delay ends after its time, when the
// client leaves, or when the service drains.
func TestDelayNextReadSendsTheRefusalFirst(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		setup func(a *API, x *exchange, leave context.CancelFunc)
		want  time.Duration
		sent  bool
	}{
		{"after its time", func(*API, *exchange, context.CancelFunc) {}, 500 * time.Millisecond, true},
		{"the window is used up", func(_ *API, x *exchange, _ context.CancelFunc) { x.exceeded = true }, time.Second, true},
		{"the client leaves", func(_ *API, _ *exchange, leave context.CancelFunc) { leave() }, 0, true},
		{"the service stops", func(a *API, _ *exchange, _ context.CancelFunc) { a.Drain() }, 0, true},
		{"a proxy", func(_ *API, x *exchange, _ context.CancelFunc) { x.r.Header.Set("X-Forwarded-For", "192.0.2.1") }, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				a := &API{}
				a.delayed.Store(499)
				w := httptest.NewRecorder()
				x := &exchange{w: w, r: httptest.NewRequestWithContext(ctx, "GET", "/", nil)}
				tt.setup(a, x, leave)
				start := time.Now()
				a.delayNextRead(x)
				if got := time.Since(start); got != tt.want {
					t.Errorf("delayed %s, want %s", got, tt.want)
				}
				if w.Flushed != tt.sent {
					t.Errorf("the refusal was sent before the delay: %v", w.Flushed)
				}
				if a.delayed.Load() != 499 {
					t.Errorf("%d delayed connections at the end, want 499", a.delayed.Load())
				}
			})
		})
	}
}
