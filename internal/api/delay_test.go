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
	for delayed, want := range map[int64]time.Duration{
		1: time.Millisecond, 100: 100 * time.Millisecond, 1000: time.Second, 4096: time.Second,
	} {
		if got := readDelay(delayed); got != want {
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
		setup func(a *API, leave context.CancelFunc)
		want  time.Duration
	}{
		{"after its time", func(*API, context.CancelFunc) {}, 500 * time.Millisecond},
		{"the client leaves", func(_ *API, leave context.CancelFunc) { leave() }, 0},
		{"the service stops", func(a *API, _ context.CancelFunc) { a.Drain() }, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				a := &API{}
				a.delayed.Store(499)
				tt.setup(a, leave)
				w := httptest.NewRecorder()
				start := time.Now()
				a.delayNextRead(&exchange{w: w, r: httptest.NewRequestWithContext(ctx, "GET", "/", nil)})
				if got := time.Since(start); got != tt.want {
					t.Errorf("delayed %s, want %s", got, tt.want)
				}
				if !w.Flushed {
					t.Error("the refusal was not sent before the delay")
				}
				if a.delayed.Load() != 499 {
					t.Errorf("%d delayed connections at the end, want 499", a.delayed.Load())
				}
			})
		})
	}
}
