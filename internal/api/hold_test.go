package api

import (
	"context"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

func TestHoldGrowsWithTheCrowd(t *testing.T) {
	t.Parallel()
	for held, want := range map[int64]time.Duration{
		1: time.Millisecond, 100: 100 * time.Millisecond, 1000: time.Second, 4096: time.Second,
	} {
		if got := holdTime(held); got != want {
			t.Errorf("with %d held one waits %s, want %s", held, got, want)
		}
	}
}

// A refusal is sent before the wait; the wait ends with its time, with the
// client, or with the service.
func TestHoldAnswersFirst(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		setup func(a *API, leave context.CancelFunc)
		want  time.Duration
	}{
		{"the time is over", func(*API, context.CancelFunc) {}, 500 * time.Millisecond},
		{"the client leaves", func(_ *API, leave context.CancelFunc) { leave() }, 0},
		{"the service stops", func(a *API, _ context.CancelFunc) { a.Drain() }, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				a := &API{}
				a.held.Store(499)
				tt.setup(a, leave)
				w := httptest.NewRecorder()
				start := time.Now()
				a.hold(&exchange{w: w, r: httptest.NewRequestWithContext(ctx, "GET", "/", nil)})
				if got := time.Since(start); got != tt.want {
					t.Errorf("it waited %s, want %s", got, tt.want)
				}
				if !w.Flushed {
					t.Error("the refusal was kept back")
				}
				if a.held.Load() != 499 {
					t.Errorf("%d are held in the end", a.held.Load())
				}
			})
		})
	}
}
