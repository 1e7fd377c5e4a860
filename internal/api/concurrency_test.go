package api

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// acquireAsync starts a request that waits for a slot, and returns when it waits.
// The time of a synctest bubble stands still until then.
func acquireAsync(ctx context.Context, l *concurrencyLimiter) <-chan acquired {
	done := make(chan acquired, 1)
	go func() {
		began := time.Now()
		release, err := l.acquire(ctx)
		done <- acquired{release, err, time.Since(began)}
	}()
	synctest.Wait()
	return done
}

// acquired is the result of an acquire and how long it took.
type acquired struct {
	release func()
	err     error
	waited  time.Duration
}

// newFullLimiter returns a limiter of one slot that is taken.
func newFullLimiter(t *testing.T, waiting int) (l *concurrencyLimiter, release func()) {
	t.Helper()
	l = newConcurrencyLimiter(1, waiting)
	release, ok := l.tryAcquire()
	if !ok {
		t.Fatal("a new limiter has no free slot")
	}
	return l, release
}

// result returns how an acquire ended, or false while it waits.
func result(c <-chan acquired) (acquired, bool) {
	synctest.Wait()
	select {
	case e := <-c:
		return e, true
	default:
		return acquired{}, false
	}
}

func TestConcurrencyServesTheNewestFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, release := newFullLimiter(t, 3)
		order := []<-chan acquired{acquireAsync(t.Context(), l), acquireAsync(t.Context(), l), acquireAsync(t.Context(), l)}
		for i := len(order) - 1; i >= 0; i-- {
			release()
			got, ok := result(order[i])
			if !ok || got.err != nil {
				t.Fatalf("waiter %d is the newest and was not served: %v", i, got.err)
			}
			for _, other := range order[:i] {
				if _, ok := result(other); ok {
					t.Fatalf("two waiters were served with one slot")
				}
			}
			release = got.release
		}
		release()
		if _, ok := l.tryAcquire(); !ok {
			t.Error("the slot was lost")
		}
	})
}

func TestConcurrencyRefusesTheOldestWhenTooManyWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, release := newFullLimiter(t, 2)
		oldest, middle := acquireAsync(t.Context(), l), acquireAsync(t.Context(), l)
		newest := acquireAsync(t.Context(), l)
		if got, ok := result(oldest); !ok || !errors.Is(got.err, errNoSlot) || got.waited != 0 {
			t.Errorf("the oldest: ended %v, err %v, waited %s; want it refused at once", ok, got.err, got.waited)
		}
		release()
		got, ok := result(newest)
		if !ok || got.err != nil {
			t.Fatalf("the newest request was not served: %v", got.err)
		}
		got.release()
		if got, ok := result(middle); !ok || got.err != nil {
			t.Errorf("the request between them was not served: %v", got.err)
		}
	})
}

func TestConcurrencyWaitsOneSecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, release := newFullLimiter(t, 2)
		if got := <-acquireAsync(t.Context(), l); !errors.Is(got.err, errNoSlot) || got.waited != time.Second {
			t.Errorf("err %v after %s, want errNoSlot after 1 s", got.err, got.waited)
		}
		release()
		if _, ok := l.tryAcquire(); !ok {
			t.Error("a request that timed out kept the slot")
		}
	})
}

func TestConcurrencyRemovesAClientThatLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, release := newFullLimiter(t, 2)
		ctx, cancel := context.WithCancel(t.Context())
		stays, left := acquireAsync(t.Context(), l), acquireAsync(ctx, l)
		cancel()
		if got, ok := result(left); !ok || !errors.Is(got.err, errNoSlot) {
			t.Errorf("the request of a client that left still waits: %v", got.err)
		}
		release() // the client that left was the newest, but it no longer waits
		if got, ok := result(stays); !ok || got.err != nil {
			t.Errorf("the client that stayed was not served: %v", got.err)
		}
	})
}

func TestConcurrencyServesUpToItsSlots(t *testing.T) {
	t.Parallel()
	l := newConcurrencyLimiter(2, 1)
	for range 2 {
		if _, err := l.acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := l.tryAcquire(); ok {
		t.Error("a limiter of two slots gave a third one")
	}
}

// Grants, timeouts and refusals happen at the same time here. Never more requests
// than slots may execute, and at the end all slots are free.
func TestConcurrencyKeepsItsSlotsUnderLoad(t *testing.T) {
	t.Parallel()
	const slots = 8
	l := newConcurrencyLimiter(slots, 16)
	var executing, served atomic.Int64
	var clients sync.WaitGroup
	for range 64 {
		clients.Go(func() {
			for range 200 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(300))*time.Microsecond)
				if release, err := l.acquire(ctx); err == nil {
					if n := executing.Add(1); n > slots {
						t.Errorf("%d requests execute with %d slots", n, slots)
					}
					time.Sleep(time.Duration(rand.IntN(50)) * time.Microsecond) // so that others have to wait
					executing.Add(-1)
					served.Add(1)
					release()
				}
				cancel()
			}
		})
	}
	clients.Wait()
	if l.free != slots || len(l.waiting) != 0 {
		t.Errorf("%d free and %d waiting at the end, want %d and 0", l.free, len(l.waiting), slots)
	}
	if served.Load() < slots {
		t.Errorf("only %d requests were served", served.Load())
	}
}

func TestEachCredentialHasItsOwnLimiter(t *testing.T) {
	t.Parallel()
	c := newCredentialLimiters()
	first, second := c.of("s1"), c.of("s2")
	if first == second || c.of("s1") != first {
		t.Error("want one limiter for each credential")
	}
}
