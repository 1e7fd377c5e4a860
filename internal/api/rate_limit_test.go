package api

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// testClock is a clock of whole seconds that tests set.
type testClock struct{ unix atomic.Int64 }

func (c *testClock) now() time.Time { return time.Unix(c.unix.Load(), 0) }

func newTestClock() *testClock {
	c := &testClock{}
	c.unix.Store(1_800_000_000)
	return c
}

// stubLease stands for the row of the database that nodes lease from.
type stubLease struct {
	mu      sync.Mutex
	claimed int64
	leases  int
	err     error
}

func (r *stubLease) lease(_ context.Context, _ string, _ time.Time, n int64) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return 0, r.err
	}
	r.claimed += n
	r.leases++
	return r.claimed, nil
}

func newTestLimiter(limit int64, c *testClock, shared *stubLease) *rateLimiter {
	l := &rateLimiter{limit: limit, now: c.now, buckets: make(map[string]*bucket)}
	if shared != nil {
		l.lease = shared.lease
	}
	return l
}

// countAllowed sends n requests and returns how many are allowed.
func countAllowed(t *testing.T, l *rateLimiter, n int, limit int64) int64 {
	t.Helper()
	var allowed int64
	for range n {
		if _, ok := l.countCredential(t.Context(), "s", limit); ok {
			allowed++
		}
	}
	return allowed
}

func TestWindowEndsWithinAMinute(t *testing.T) {
	t.Parallel()
	offsets := make(map[int64]bool)
	for i := range 200 {
		name := fmt.Sprintf("s%011d", i)
		start := windowEnd(name, 1_800_000_000)
		offsets[start%windowSeconds] = true
		for now := start; now < start+windowSeconds; now++ {
			if end := windowEnd(name, now); end != start+windowSeconds {
				t.Fatalf("at %d the window of %s ends at %d, want %d", now, name, end, start+windowSeconds)
			}
		}
	}
	if len(offsets) < windowSeconds/2 {
		t.Errorf("200 credentials start at only %d different seconds", len(offsets))
	}
}

func TestRateLimiterAllowsTheLimit(t *testing.T) {
	t.Parallel()
	c := newTestClock()
	l := newTestLimiter(5, c, nil)
	for i := range int64(5) {
		got, ok := l.countCredential(t.Context(), "s", 5)
		if !ok || got.limit != 5 || got.remaining != 4-i {
			t.Errorf("request %d: %+v %v", i+1, got, ok)
		}
	}
	for range 3 { // a refusal is not counted
		if got, ok := l.countCredential(t.Context(), "s", 5); ok || got.remaining != 0 {
			t.Errorf("past the limit: %+v %v", got, ok)
		}
	}
	if _, ok := l.countCredential(t.Context(), "other", 5); !ok {
		t.Error("another credential shares the limit")
	}
	got, _ := l.countCredential(t.Context(), "s", 5)
	c.unix.Store(got.reset - 1)
	if _, ok := l.countCredential(t.Context(), "s", 5); ok {
		t.Error("allowed a second before the reset")
	}
	c.unix.Store(got.reset)
	if got, ok := l.countCredential(t.Context(), "s", 5); !ok || got.remaining != 4 {
		t.Errorf("at the reset: %+v %v", got, ok)
	}
}

func TestRateLimiterCountsConcurrentRequests(t *testing.T) {
	t.Parallel()
	l := newTestLimiter(100, newTestClock(), nil)
	var in atomic.Int64
	var clients sync.WaitGroup
	for range 20 {
		clients.Go(func() {
			for range 20 {
				if _, ok := l.countCredential(t.Context(), "s", 100); ok {
					in.Add(1)
				}
			}
		})
	}
	clients.Wait()
	if in.Load() != 100 {
		t.Errorf("%d requests were allowed, want 100", in.Load())
	}
}

func TestRateLimiterThatIsOffShowsAMillion(t *testing.T) {
	t.Parallel()
	l := newTestLimiter(0, newTestClock(), nil)
	for range 2 * anonymousLimit {
		if got, ok := l.countAddress(t.Context(), "address"); !ok || got.limit != 1000000 || got.remaining != 1000000 {
			t.Fatalf("%+v %v", got, ok)
		}
		if got, ok := l.countCredential(t.Context(), "s", 3); !ok || got.remaining != 1000000 {
			t.Fatalf("%+v %v", got, ok)
		}
	}
}

func TestRateLimiterFollowsARaisedLimit(t *testing.T) {
	t.Parallel()
	l := newTestLimiter(5, newTestClock(), nil)
	if in := countAllowed(t, l, 10, 5); in != 5 {
		t.Fatalf("%d of 5", in)
	}
	if in := countAllowed(t, l, 10, 8); in != 3 {
		t.Errorf("raised to 8: %d more, want 3", in)
	}
}

func TestRateLimiterRecoversWhenTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		back int64
	}{{"an hour", 3600}, {"a day", 86400}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newTestClock()
			l := newTestLimiter(5, c, nil)
			countAllowed(t, l, 10, 5)
			now := c.unix.Add(-tt.back)
			got, ok := l.countCredential(t.Context(), "s", 5)
			if !ok || got.reset <= now || got.reset > now+windowSeconds {
				t.Errorf("after the clock went back: %+v %v at %d", got, ok, now)
			}
			c.unix.Store(got.reset)
			if in := countAllowed(t, l, 10, 5); in != 5 {
				t.Errorf("the next window allows %d, want 5", in)
			}
		})
	}
}

func TestRateLimiterKeepsItsCountWhenTheClockIsSetBackWithinTheWindow(t *testing.T) {
	t.Parallel()
	c := newTestClock()
	l := newTestLimiter(5, c, nil)
	c.unix.Store(windowEnd("s", c.unix.Load()) - 1) // the last second of the window
	countAllowed(t, l, 10, 5)
	c.unix.Add(-windowSeconds / 2)
	if in := countAllowed(t, l, 10, 5); in != 0 {
		t.Errorf("%d more in the same window", in)
	}
}

func TestGiveBackUndoesOneCount(t *testing.T) {
	t.Parallel()
	c := newTestClock()
	l := newTestLimiter(2, c, nil)
	countAllowed(t, l, 1, 2)
	shown, _ := l.countCredential(t.Context(), "s", 2)
	l.giveBack("s", &shown)
	if shown.remaining != 1 {
		t.Errorf("shows %d remaining, want 1", shown.remaining)
	}
	if in := countAllowed(t, l, 5, 2); in != 1 {
		t.Errorf("%d allowed after one was given back, want 1", in)
	}
	c.unix.Store(shown.reset)
	countAllowed(t, l, 2, 2)
	l.giveBack("s", &shown) // of a window that has ended
	if in := countAllowed(t, l, 5, 2); in != 0 {
		t.Errorf("%d requests of an old window were given to a new one", in)
	}
	l.giveBack("never seen", &shown)
}

func TestNodesShareOneWindow(t *testing.T) {
	t.Parallel()
	for _, limit := range []int64{1, 2, 7, 8, 100, 600} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			t.Parallel()
			c, shared := newTestClock(), &stubLease{}
			nodes := []*rateLimiter{newTestLimiter(limit, c, shared), newTestLimiter(limit, c, shared), newTestLimiter(limit, c, shared)}
			var in atomic.Int64
			var clients sync.WaitGroup
			for _, node := range nodes {
				clients.Go(func() { in.Add(countAllowed(t, node, int(limit)+10, limit)) })
			}
			clients.Wait()
			if in.Load() != limit {
				t.Errorf("three nodes allow %d, want %d", in.Load(), limit)
			}
			for i, node := range nodes {
				if got, ok := node.countCredential(t.Context(), "s", limit); ok || got.remaining != 0 {
					t.Errorf("node %d, window full: %+v %v", i, got, ok)
				}
			}
		})
	}
}

func TestNodesLeaseSeldom(t *testing.T) {
	t.Parallel()
	shared := &stubLease{}
	l := newTestLimiter(600, newTestClock(), shared)
	if in := countAllowed(t, l, 1000, 600); in != 600 {
		t.Fatalf("%d of 600", in)
	}
	// A lease takes an eighth of the rest; the last requests are leased one by one.
	if shared.leases > 50 {
		t.Errorf("600 requests took %d leases", shared.leases)
	}
}

func TestNodeCountsAloneWhenTheLeaseFails(t *testing.T) {
	t.Parallel()
	c, shared := newTestClock(), &stubLease{err: errors.New("no database")}
	l := newTestLimiter(10, c, shared)
	if in := countAllowed(t, l, 50, 10); in != 10 {
		t.Errorf("%d allowed, want 10", in)
	}
	shared.err = nil
	c.unix.Add(windowSeconds)
	if in := countAllowed(t, l, 50, 10); in != 10 || shared.claimed < 10 {
		t.Errorf("%d allowed and %d claimed in the next window", in, shared.claimed)
	}
}

// A client that disconnects while its node asks for a lease does not make the node count
// the whole window alone.
func TestALeaseOutlastsItsRequest(t *testing.T) {
	t.Parallel()
	shared := &stubLease{claimed: 80}
	l := newTestLimiter(80, newTestClock(), nil)
	l.lease = func(ctx context.Context, name string, end time.Time, n int64) (int64, error) {
		if _, limited := ctx.Deadline(); !limited {
			t.Error("the lease has no time limit")
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return shared.lease(ctx, name, end, n)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, ok := l.countCredential(gone, "k", 80); ok {
		t.Error("the node allows a request in a window that other nodes have used up")
	}
}

func TestAddressesAreNotLeased(t *testing.T) {
	t.Parallel()
	shared := &stubLease{}
	l := newTestLimiter(10, newTestClock(), shared)
	in := 0
	for range anonymousLimit + 10 {
		if _, ok := l.countAddress(t.Context(), "address 192.0.2.1"); ok {
			in++
		}
	}
	if in != anonymousLimit || shared.leases != 0 {
		t.Errorf("%d requests allowed, %d leases", in, shared.leases)
	}
}

// Requests from very many addresses must not sweep all buckets each time.
func TestSweepDeletesEndedWindowsOnceASecond(t *testing.T) {
	t.Parallel()
	c := newTestClock()
	l := newTestLimiter(5, c, nil)
	countAllowed(t, l, 1, 5)
	current := &bucket{end: c.unix.Load() + windowSeconds}
	for i := range maxBuckets {
		l.buckets[strconv.Itoa(i)] = current
	}
	l.countAddress(t.Context(), "first")
	l.buckets["ended"] = &bucket{end: c.unix.Load()}
	l.countAddress(t.Context(), "second")
	if l.buckets["ended"] == nil {
		t.Error("sweep ran twice in a second")
	}
	c.unix.Add(1)
	l.countAddress(t.Context(), "third")
	if l.buckets["ended"] != nil || len(l.buckets) != maxBuckets+4 {
		t.Errorf("%d buckets after the next sweep, want %d", len(l.buckets), maxBuckets+4)
	}
	if in := countAllowed(t, l, 10, 5); in != 4 {
		t.Errorf("the sweep changed a current window: %d more allowed, want 4", in)
	}
}

func TestDefaultRateLimits(t *testing.T) {
	t.Parallel()
	for env, want := range map[fiscal.Environment]int64{fiscal.Sandbox: 600, fiscal.Certification: 1200, fiscal.Production: 1200} {
		if got := DefaultRateLimit(env); got != want {
			t.Errorf("%s: %d, want %d", env, got, want)
		}
	}
}
