// Package wake holds what the loops of background workers share: a signal that
// wakes them, the time for which a claimed row is leased, the heartbeat that
// prolongs a lease, and the pace at which they wait.
package wake

import (
	"context"
	"time"
)

// A Signal wakes one loop. The zero Signal is of no use; call NewSignal.
type Signal struct{ c chan struct{} }

// NewSignal returns a signal for one loop.
func NewSignal() Signal { return Signal{make(chan struct{}, 1)} }

// Notify wakes the loop, now or when it next waits. It never blocks.
func (s Signal) Notify() {
	select {
	case s.c <- struct{}{}:
	default: // a wake-up is pending already
	}
}

// Wait returns after Notify, after d, or when ctx ends.
func (s Signal) Wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-s.c:
	case <-timer.C:
	}
}

// Sleep returns after d or when ctx ends.
func Sleep(ctx context.Context, d time.Duration) { Signal{}.Wait(ctx, d) }

// The pauses of a loop: PollEvery is how soon it sees a row that another node has
// written, minPause the shortest wait.
const (
	PollEvery = time.Second
	minPause  = 10 * time.Millisecond
)

// Until returns how long a loop waits for a row that is due at next. When next
// could not be read, err, the loop polls.
func Until(next, now time.Time, err error) time.Duration {
	if err != nil {
		return PollEvery
	}
	return min(max(next.Sub(now), minPause), PollEvery)
}

// Heartbeat calls beat three times within each lease until the returned function
// is called, which waits for the last call.
func Heartbeat(ctx context.Context, lease time.Duration, beat func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(lease / 3)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				beat(ctx)
			}
		}
	}()
	return func() { cancel(); <-done }
}

// Retry calls do until it returns nil, an error that retryable refuses, or ctx ends.
// It returns the last error of do. The pauses grow from first to most.
func Retry(ctx context.Context, first, most time.Duration, retryable func(error) bool, do func() error) error {
	for pause := first; ; pause = min(2*pause, most) {
		err := do()
		if err == nil || !retryable(err) || ctx.Err() != nil {
			return err
		}
		Sleep(ctx, pause)
	}
}
