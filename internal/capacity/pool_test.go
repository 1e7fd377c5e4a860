package capacity

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// acquired is the result of an Acquire and how long it took.
type acquired struct {
	hold   *Hold
	err    error
	waited time.Duration
}

// acquireAsync starts a request that waits for a part of a pool, and returns when it
// waits. The time of a synctest bubble stands still until then.
func acquireAsync(ctx context.Context, p *Pool, n int64, shares ...Share) <-chan acquired {
	done := make(chan acquired, 1)
	go func() {
		began := time.Now()
		hold, err := p.Acquire(ctx, n, time.Second, shares...)
		done <- acquired{hold, err, time.Since(began)}
	}()
	synctest.Wait()
	return done
}

// result returns how an Acquire ended, or false while it waits.
func result(c <-chan acquired) (acquired, bool) {
	synctest.Wait()
	select {
	case e := <-c:
		return e, true
	default:
		return acquired{}, false
	}
}

// wantBound checks that a request was refused because of an account.
func wantBound(t *testing.T, err error, want Kind) {
	t.Helper()
	var full *FullError
	if !errors.As(err, &full) || full.Bound != want {
		t.Errorf("refused with %v, want the bound of the %s", err, want)
	}
}

// newSlots returns a pool of slots.
func newSlots(slots int64, waiting int) *Pool { return newPool(Service, slots, waiting, true) }

// take takes a part of a pool that is free.
func take(t *testing.T, p *Pool, n int64, shares ...Share) *Hold {
	t.Helper()
	hold, err := p.TryAcquire(n, shares...)
	if err != nil {
		t.Fatal(err)
	}
	return hold
}

func taxpayer(name string, most int64) Share { return Share{Kind: Taxpayer, Name: name, Max: most} }

func credential(name string, most int64) Share {
	return Share{Kind: Credential, Name: name, Max: most, MaxWaiting: 2}
}

func TestNewestRequestGetsTheFreeSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newSlots(1, 3)
		held := take(t, p, 1)
		order := []<-chan acquired{acquireAsync(t.Context(), p, 1), acquireAsync(t.Context(), p, 1), acquireAsync(t.Context(), p, 1)}
		for i := len(order) - 1; i >= 0; i-- {
			held.Release()
			got, ok := result(order[i])
			if !ok || got.err != nil {
				t.Fatalf("waiter %d is the newest and was not served: %v", i, got.err)
			}
			for _, other := range order[:i] {
				if _, ok := result(other); ok {
					t.Fatal("two waiters were served with one slot")
				}
			}
			held = got.hold
		}
		held.Release()
		held.Release() // the second call must not count
		take(t, p, 1)
		if _, err := p.TryAcquire(1); err == nil {
			t.Error("a slot was released twice")
		}
	})
}

func TestOldestRequestIsRefusedWhenTooManyWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newSlots(1, 2)
		held := take(t, p, 1)
		oldest, middle := acquireAsync(t.Context(), p, 1), acquireAsync(t.Context(), p, 1)
		newest := acquireAsync(t.Context(), p, 1)
		got, ok := result(oldest)
		if !ok || got.waited != 0 {
			t.Errorf("the oldest: ended %v after %s; want it refused at once", ok, got.waited)
		}
		wantBound(t, got.err, Service)
		held.Release()
		if got, ok = result(newest); !ok || got.err != nil {
			t.Fatalf("the newest request was not served: %v", got.err)
		}
		got.hold.Release()
		if got, ok := result(middle); !ok || got.err != nil {
			t.Errorf("the request between them was not served: %v", got.err)
		}
	})
}

func TestRequestWaitsOneSecondForASlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newSlots(1, 2)
		held := take(t, p, 1)
		got := <-acquireAsync(t.Context(), p, 1)
		wantBound(t, got.err, Service)
		if got.waited != time.Second {
			t.Errorf("refused after %s", got.waited)
		}
		held.Release()
		take(t, p, 1) // a request that has timed out must not keep it
	})
}

func TestClientThatLeftWaitsNoLonger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newSlots(1, 2)
		held := take(t, p, 1)
		ctx, cancel := context.WithCancel(t.Context())
		stays, left := acquireAsync(t.Context(), p, 1), acquireAsync(ctx, p, 1)
		cancel()
		if got, ok := result(left); !ok || got.err == nil {
			t.Error("the request of a client that left still waits")
		}
		held.Release() // the client that left was the newest, but it no longer waits
		if got, ok := result(stays); !ok || got.err != nil {
			t.Errorf("the client that stayed was not served: %v", got.err)
		}
	})
}

// An account that holds its share waits, and does not keep others from free slots.
func TestShareOfAnAccountIsLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newSlots(8, 8)
		first := take(t, p, 1, taxpayer("a", 3), credential("a1", 2))
		take(t, p, 1, taxpayer("a", 3), credential("a1", 2))
		_, err := p.TryAcquire(1, taxpayer("a", 3), credential("a1", 2))
		wantBound(t, err, Credential)
		take(t, p, 1, taxpayer("a", 3), credential("a2", 2))
		_, err = p.TryAcquire(1, taxpayer("a", 3), credential("a3", 2))
		wantBound(t, err, Taxpayer)

		waiting := acquireAsync(t.Context(), p, 1, taxpayer("a", 3), credential("a1", 2))
		take(t, p, 1, taxpayer("b", 3), credential("b1", 2))
		first.Release()
		if got, ok := result(waiting); !ok || got.err != nil {
			t.Errorf("the account was not served after it had released a slot: %v", got.err)
		}
	})
}

// Whichever account floods the queue, another one gets the next free slot.
func TestFreeSlotGoesToTheAccountThatHoldsLeast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newSlots(4, 6)
		var held []*Hold
		for range 4 {
			held = append(held, take(t, p, 1, taxpayer("flood", 4)))
		}
		modest := acquireAsync(t.Context(), p, 1, taxpayer("modest", 4))
		var flood []<-chan acquired
		for range 10 { // more than may wait: the flood refuses its own
			flood = append(flood, acquireAsync(t.Context(), p, 1, taxpayer("flood", 8)))
		}
		held[0].Release()
		if got, ok := result(modest); !ok || got.err != nil {
			t.Errorf("the modest account was not served: %v", got.err)
		}
		for _, c := range flood[:len(flood)-5] {
			if got, ok := result(c); !ok || got.err == nil {
				t.Error("more requests wait than may")
			}
		}
	})
}

// Where only one request is served at a time, every account holds nothing when the next
// one is chosen: the accounts take turns, however many requests of one of them wait, and
// however many new accounts arrive.
func TestAccountsTakeTurnsAtASingleSlot(t *testing.T) {
	t.Parallel()
	for _, newestFirst := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			type turn struct {
				name string
				hold *Hold
			}
			p, turns := newPool(Service, 1, 1000, newestFirst), make(chan turn, 1)
			wait := func(name, key string) {
				go func() {
					hold, err := p.Acquire(t.Context(), 1, time.Hour, taxpayer(name, 1), Share{Kind: Credential, Name: key, Max: 1})
					if err != nil {
						t.Error(err)
					}
					turns <- turn{name, hold}
				}()
				synctest.Wait()
			}
			held := take(t, p, 1, taxpayer("flood", 1))
			next := func() string {
				held.Release()
				served := <-turns
				held = served.hold
				return served.name
			}
			for i := range 300 {
				wait("flood", "key "+strconv.Itoa(i%4))
			}
			wait("modest", "key")
			if first, second := next(), next(); first != "modest" && second != "modest" {
				t.Errorf("%s and %s were served before the modest account", first, second)
			}
			flood := 0
			for i := range 10 {
				wait("new "+strconv.Itoa(i), "key "+strconv.Itoa(i))
				if next() == "flood" {
					flood++
				}
			}
			if flood < 3 || flood > 7 {
				t.Errorf("the flood was served %d times of 10, want about half of them", flood)
			}
			for _, waiting := p.usage(); waiting > 0; _, waiting = p.usage() {
				next()
			}
			held.Release()
			if used, _ := p.usage(); used != 0 || len(p.accounts) != 0 {
				t.Errorf("%d are used by %d accounts at the end", used, len(p.accounts))
			}
		})
	}
}

func TestWaitingRequestsOfAnAccountAreLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newSlots(8, 8)
		take(t, p, 1, credential("a", 1))
		oldest := acquireAsync(t.Context(), p, 1, credential("a", 1))
		acquireAsync(t.Context(), p, 1, credential("a", 1))
		acquireAsync(t.Context(), p, 1, credential("a", 1))
		got, ok := result(oldest)
		if !ok || got.waited != 0 {
			t.Fatalf("three requests of a credential wait, and two may")
		}
		wantBound(t, got.err, Credential)
	})
}

// A request for much must not wait for ever while small ones pass it.
func TestSmallRequestsDoNotPassALargeOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPool(Service, 10, 100, false)
		first, second := take(t, p, 5, taxpayer("a", 10)), take(t, p, 4, taxpayer("b", 10))
		large := acquireAsync(t.Context(), p, 6, taxpayer("c", 10))
		small := acquireAsync(t.Context(), p, 1, taxpayer("d", 10))
		if _, ok := result(small); ok {
			t.Fatal("a small request passed a large one")
		}
		first.Release()
		if got, ok := result(large); !ok || got.err != nil {
			t.Errorf("the large request was not served: %v", got.err)
		}
		second.Shrink(3)
		if got, ok := result(small); !ok || got.err != nil {
			t.Errorf("the small request was not served: %v", got.err)
		}
	})
}

// A request for more than its share gets all of the share when the account holds
// nothing else.
func TestRequestForMoreThanTheShareTakesAllOfIt(t *testing.T) {
	t.Parallel()
	p := newPool(Service, 10, 100, false)
	hold := take(t, p, 50, taxpayer("a", 7))
	if used, _ := p.usage(); used != 7 {
		t.Errorf("%d are used", used)
	}
	_, err := p.TryAcquire(1, taxpayer("a", 7))
	wantBound(t, err, Taxpayer)
	hold.Release()
	if used, _ := p.usage(); used != 0 || len(p.accounts) != 0 {
		t.Errorf("%d are used by %d accounts after the release", used, len(p.accounts))
	}
}

// Grants, timeouts and refusals happen at the same time here. Nothing may be held
// beyond the limits, and at the end everything is free.
func TestPoolKeepsItsLimitsUnderLoad(t *testing.T) {
	t.Parallel()
	for name, newestFirst := range map[string]bool{"slots": true, "bytes": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const most = 16
			p := newPool(Service, most, 16, newestFirst)
			var used, served atomic.Int64
			var clients sync.WaitGroup
			for client := range 64 {
				clients.Go(func() {
					account := taxpayer(string(rune('a'+client%5)), most/2)
					for range 100 {
						n := int64(1)
						if !newestFirst {
							n = 1 + rand.Int64N(most/2)
						}
						ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(300))*time.Microsecond)
						if hold, err := p.Acquire(ctx, n, time.Second, account); err == nil {
							if now := used.Add(n); now > most {
								t.Errorf("%d of %d are held", now, most)
							}
							time.Sleep(time.Duration(rand.IntN(50)) * time.Microsecond) // so that others have to wait
							used.Add(-n)
							served.Add(1)
							hold.Release()
						}
						cancel()
					}
				})
			}
			clients.Wait()
			if used, waiting := p.usage(); used != 0 || waiting != 0 || len(p.accounts) != 0 {
				t.Errorf("at the end %d are held, %d wait, %d accounts are known", used, waiting, len(p.accounts))
			}
			if served.Load() < most {
				t.Errorf("only %d requests were served", served.Load())
			}
		})
	}
}
