package api

import (
	"context"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

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
