package simulator_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
)

func TestResponsesWaitForTheLatency(t *testing.T) {
	t.Parallel()
	var slept atomic.Int64
	e := newEnv(t, func(o *simulator.Options) {
		o.Config.Latency = nil
		o.Sleep = func(_ context.Context, d time.Duration) error { slept.Store(int64(d)); return nil }
	})
	e.get(seedURL)
	if d := time.Duration(slept.Load()); d < 5*time.Millisecond || d > 30*time.Millisecond {
		t.Errorf("slept %s", d)
	}
	slept.Store(0)
	e.Freeze()
	e.get(seedURL)
	if slept.Load() != 0 {
		t.Error("slept while the clock is frozen")
	}
	e.Thaw()
	// Without Options.Sleep a real timer waits.
	real := newEnv(t, func(o *simulator.Options) { o.Now, o.Config.Latency = time.Now, simulator.Fixed(time.Millisecond) })
	if a := real.get(seedURL); a.status != http.StatusOK {
		t.Errorf("%d", a.status)
	}
}
