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

// queue starts a request that waits at the gate, and returns once it waits.
// Inside a bubble time stands still until then.
func queue(ctx context.Context, g *gate) <-chan entry {
	done := make(chan entry, 1)
	go func() {
		came := time.Now()
		leave, err := g.enter(ctx)
		done <- entry{leave, err, time.Since(came)}
	}()
	synctest.Wait()
	return done
}

type entry struct {
	leave  func()
	err    error
	waited time.Duration
}

// full is a gate whose only place is taken.
func full(t *testing.T, waiting int) (g *gate, leave func()) {
	t.Helper()
	g = newGate(1, waiting)
	leave, ok := g.tryEnter()
	if !ok {
		t.Fatal("a new gate has no place")
	}
	return g, leave
}

func decided(c <-chan entry) (entry, bool) {
	synctest.Wait()
	select {
	case e := <-c:
		return e, true
	default:
		return entry{}, false
	}
}

func TestGateServesTheLastComeFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, leave := full(t, 3)
		order := []<-chan entry{queue(t.Context(), g), queue(t.Context(), g), queue(t.Context(), g)}
		for i := len(order) - 1; i >= 0; i-- {
			leave()
			got, ok := decided(order[i])
			if !ok || got.err != nil {
				t.Fatalf("waiter %d is the last come and was not served: %v", i, got.err)
			}
			for _, other := range order[:i] {
				if _, ok := decided(other); ok {
					t.Fatalf("two waiters were served for one place")
				}
			}
			leave = got.leave
		}
		leave()
		if _, ok := g.tryEnter(); !ok {
			t.Error("the place was lost")
		}
	})
}

func TestGateGivesUpTheOldestAtOnceWhenTooManyWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, leave := full(t, 2)
		oldest, middle := queue(t.Context(), g), queue(t.Context(), g)
		newest := queue(t.Context(), g)
		if got, ok := decided(oldest); !ok || !errors.Is(got.err, errCrowded) || got.waited != 0 {
			t.Errorf("the oldest: decided %v, err %v, waited %s; want it refused at once", ok, got.err, got.waited)
		}
		leave()
		got, ok := decided(newest)
		if !ok || got.err != nil {
			t.Fatalf("the newest was not served: %v", got.err)
		}
		got.leave()
		if got, ok := decided(middle); !ok || got.err != nil {
			t.Errorf("the one between was not served: %v", got.err)
		}
	})
}

func TestGateWaitsOneSecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, leave := full(t, 2)
		if got := <-queue(t.Context(), g); !errors.Is(got.err, errCrowded) || got.waited != time.Second {
			t.Errorf("err %v after %s, want errCrowded after 1 s", got.err, got.waited)
		}
		leave()
		if _, ok := g.tryEnter(); !ok {
			t.Error("the waiter that gave up took the place along")
		}
	})
}

func TestGateForgetsAClientThatLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, leave := full(t, 2)
		ctx, cancel := context.WithCancel(t.Context())
		stays, left := queue(t.Context(), g), queue(ctx, g)
		cancel()
		if got, ok := decided(left); !ok || !errors.Is(got.err, errCrowded) {
			t.Errorf("a client that left still waits: %v", got.err)
		}
		leave() // the one that left came last, but its turn is over
		if got, ok := decided(stays); !ok || got.err != nil {
			t.Errorf("the one that stayed was not served: %v", got.err)
		}
	})
}

func TestGateWithoutAQueueRefusesNobodyItCanServe(t *testing.T) {
	t.Parallel()
	g := newGate(2, 1)
	for range 2 {
		if _, err := g.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := g.tryEnter(); ok {
		t.Error("a third came in through a gate of two")
	}
}

// Turns, withdrawals and evictions cross each other here; whatever happens, no
// more than the bound may be inside, and in the end every place is back.
func TestGateKeepsItsPlacesUnderStress(t *testing.T) {
	t.Parallel()
	const places = 8
	g := newGate(places, 16)
	var inside, served atomic.Int64
	var clients sync.WaitGroup
	for range 64 {
		clients.Go(func() {
			for range 200 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(300))*time.Microsecond)
				if leave, err := g.enter(ctx); err == nil {
					if n := inside.Add(1); n > places {
						t.Errorf("%d inside a gate of %d", n, places)
					}
					time.Sleep(time.Duration(rand.IntN(50)) * time.Microsecond) // so that others queue up
					inside.Add(-1)
					served.Add(1)
					leave()
				}
				cancel()
			}
		})
	}
	clients.Wait()
	if g.free != places || len(g.waiting) != 0 {
		t.Errorf("%d free and %d waiting in the end, want %d and 0", g.free, len(g.waiting), places)
	}
	if served.Load() < places {
		t.Errorf("only %d were served", served.Load())
	}
}

func TestGatesAreOnePerCredential(t *testing.T) {
	t.Parallel()
	g := newGates()
	first, second := g.of("s1"), g.of("s2")
	if first == second || g.of("s1") != first {
		t.Error("a credential has a gate of its own, and only one")
	}
}
