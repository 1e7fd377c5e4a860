package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// hand is a clock for windows.
type hand struct{ unix atomic.Int64 }

func (h *hand) now() time.Time { return time.Unix(h.unix.Load(), 0) }

func newHand() *hand {
	h := &hand{}
	h.unix.Store(1_800_000_000)
	return h
}

// row plays the row that nodes lease from.
type row struct {
	mu      sync.Mutex
	claimed int64
	leases  int
	err     error
}

func (r *row) lease(_ context.Context, _ string, _ time.Time, n int64) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return 0, r.err
	}
	r.claimed += n
	r.leases++
	return r.claimed, nil
}

func testWindows(limit int64, h *hand, shared *row) *windows {
	w := &windows{limit: limit, now: h.now, buckets: make(map[string]*bucket)}
	if shared != nil {
		w.lease = shared.lease
	}
	return w
}

// takes counts how many of n requests are let in.
func takes(t *testing.T, w *windows, n int, limit int64) int64 {
	t.Helper()
	var in int64
	for range n {
		if _, ok := w.take(t.Context(), "s", limit); ok {
			in++
		}
	}
	return in
}

func TestWindowEndIsAheadByAMinuteAtMost(t *testing.T) {
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

func TestWindowsLetTheLimitInAndNoMore(t *testing.T) {
	t.Parallel()
	h := newHand()
	w := testWindows(5, h, nil)
	for i := range int64(5) {
		got, ok := w.take(t.Context(), "s", 5)
		if !ok || got.limit != 5 || got.remaining != 4-i {
			t.Errorf("request %d: %+v %v", i+1, got, ok)
		}
	}
	for range 3 { // a refusal costs nothing, so it can be repeated
		if got, ok := w.take(t.Context(), "s", 5); ok || got.remaining != 0 {
			t.Errorf("past the limit: %+v %v", got, ok)
		}
	}
	if _, ok := w.take(t.Context(), "other", 5); !ok {
		t.Error("another credential is limited too")
	}
	got, _ := w.take(t.Context(), "s", 5)
	h.unix.Store(got.reset - 1)
	if _, ok := w.take(t.Context(), "s", 5); ok {
		t.Error("let in a second before the reset")
	}
	h.unix.Store(got.reset)
	if got, ok := w.take(t.Context(), "s", 5); !ok || got.remaining != 4 {
		t.Errorf("at the reset: %+v %v", got, ok)
	}
}

func TestWindowsCountOnceUnderConcurrency(t *testing.T) {
	t.Parallel()
	w := testWindows(100, newHand(), nil)
	var in atomic.Int64
	var clients sync.WaitGroup
	for range 20 {
		clients.Go(func() {
			for range 20 {
				if _, ok := w.take(t.Context(), "s", 100); ok {
					in.Add(1)
				}
			}
		})
	}
	clients.Wait()
	if in.Load() != 100 {
		t.Errorf("%d of 100 were let in", in.Load())
	}
}

func TestWindowsThatAreOffShowAMillion(t *testing.T) {
	t.Parallel()
	w := testWindows(0, newHand(), nil)
	for range 2 * anonymousLimit {
		if got, ok := w.fail(t.Context(), "address"); !ok || got.limit != 1000000 || got.remaining != 1000000 {
			t.Fatalf("%+v %v", got, ok)
		}
		if got, ok := w.take(t.Context(), "s", 3); !ok || got.remaining != 1000000 {
			t.Fatalf("%+v %v", got, ok)
		}
	}
}

func TestWindowsFollowALimitThatIsRaised(t *testing.T) {
	t.Parallel()
	w := testWindows(5, newHand(), nil)
	if in := takes(t, w, 10, 5); in != 5 {
		t.Fatalf("%d of 5", in)
	}
	if in := takes(t, w, 10, 8); in != 3 {
		t.Errorf("raised to 8: %d more, want 3", in)
	}
}

func TestP81WindowsRecoverFromAClockSetBack(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		back int64
	}{{"an hour", 3600}, {"a day", 86400}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := newHand()
			w := testWindows(5, h, nil)
			takes(t, w, 10, 5)
			now := h.unix.Add(-tt.back)
			got, ok := w.take(t.Context(), "s", 5)
			if !ok || got.reset <= now || got.reset > now+windowSeconds {
				t.Errorf("after the clock went back: %+v %v at %d", got, ok, now)
			}
			h.unix.Store(got.reset)
			if in := takes(t, w, 10, 5); in != 5 {
				t.Errorf("the next window lets %d in, want 5", in)
			}
		})
	}
}

func TestP81WindowsAClockSetBackWithinTheWindowGivesNothingAway(t *testing.T) {
	t.Parallel()
	h := newHand()
	w := testWindows(5, h, nil)
	h.unix.Store(windowEnd("s", h.unix.Load()) - 1) // the last second of the window
	takes(t, w, 10, 5)
	h.unix.Add(-windowSeconds / 2)
	if in := takes(t, w, 10, 5); in != 0 {
		t.Errorf("%d more in the same window", in)
	}
}

func TestGiveBackUndoesOneCountOfItsWindow(t *testing.T) {
	t.Parallel()
	h := newHand()
	w := testWindows(2, h, nil)
	takes(t, w, 1, 2)
	shown, _ := w.take(t.Context(), "s", 2)
	w.giveBack("s", &shown)
	if shown.remaining != 1 {
		t.Errorf("shows %d remaining, want 1", shown.remaining)
	}
	if in := takes(t, w, 5, 2); in != 1 {
		t.Errorf("%d let in after one was given back", in)
	}
	h.unix.Store(shown.reset)
	takes(t, w, 2, 2)
	w.giveBack("s", &shown) // of a window that is over
	if in := takes(t, w, 5, 2); in != 0 {
		t.Errorf("an old window gave %d places to a new one", in)
	}
	w.giveBack("never seen", &shown)
}

func TestNodesShareAWindow(t *testing.T) {
	t.Parallel()
	for _, limit := range []int64{1, 2, 7, 8, 100, 600} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			t.Parallel()
			h, shared := newHand(), &row{}
			nodes := []*windows{testWindows(limit, h, shared), testWindows(limit, h, shared), testWindows(limit, h, shared)}
			var in atomic.Int64
			var clients sync.WaitGroup
			for _, node := range nodes {
				clients.Go(func() { in.Add(takes(t, node, int(limit)+10, limit)) })
			}
			clients.Wait()
			if in.Load() != limit {
				t.Errorf("three nodes let %d in, want %d", in.Load(), limit)
			}
			for i, node := range nodes {
				if got, ok := node.take(t.Context(), "s", limit); ok || got.remaining != 0 {
					t.Errorf("node %d of a full window: %+v %v", i, got, ok)
				}
			}
		})
	}
}

func TestNodesAskTheirRowSeldom(t *testing.T) {
	t.Parallel()
	shared := &row{}
	w := testWindows(600, newHand(), shared)
	if in := takes(t, w, 1000, 600); in != 600 {
		t.Fatalf("%d of 600", in)
	}
	// An eighth of what is left at a time, then the last few one by one.
	if shared.leases > 50 {
		t.Errorf("600 requests took %d leases", shared.leases)
	}
}

func TestANodeThatCannotAskCountsAlone(t *testing.T) {
	t.Parallel()
	h, shared := newHand(), &row{err: errors.New("gone")}
	w := testWindows(10, h, shared)
	if in := takes(t, w, 50, 10); in != 10 {
		t.Errorf("%d let in, want the node's own 10", in)
	}
	shared.err = nil
	h.unix.Add(windowSeconds)
	if in := takes(t, w, 50, 10); in != 10 || shared.claimed < 10 {
		t.Errorf("%d let in and %d claimed in the next window", in, shared.claimed)
	}
}

func TestFailuresOfAnAddressAreNotLeased(t *testing.T) {
	t.Parallel()
	shared := &row{}
	w := testWindows(10, newHand(), shared)
	in := 0
	for range anonymousLimit + 10 {
		if _, ok := w.fail(t.Context(), "address 192.0.2.1"); ok {
			in++
		}
	}
	if in != anonymousLimit || shared.leases != 0 {
		t.Errorf("%d failures let in, %d leases", in, shared.leases)
	}
}

// A flood of addresses is forgotten as their windows end, but must not make
// every request of it look at all others.
func TestSweepForgetsWhatIsOverOnceASecond(t *testing.T) {
	t.Parallel()
	h := newHand()
	w := testWindows(5, h, nil)
	takes(t, w, 1, 5)
	under := &bucket{end: h.unix.Load() + windowSeconds}
	for i := range maxBuckets {
		w.buckets[strconv.Itoa(i)] = under
	}
	w.fail(t.Context(), "first")
	w.buckets["over"] = &bucket{end: h.unix.Load()}
	w.fail(t.Context(), "second")
	if w.buckets["over"] == nil {
		t.Error("swept twice in a second")
	}
	h.unix.Add(1)
	w.fail(t.Context(), "third")
	if w.buckets["over"] != nil || len(w.buckets) != maxBuckets+4 {
		t.Errorf("%d buckets after the next sweep, want the %d under way", len(w.buckets), maxBuckets+4)
	}
	if in := takes(t, w, 10, 5); in != 4 {
		t.Errorf("the sweep changed a window under way: %d more let in, want 4", in)
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

func TestClientNetwork(t *testing.T) {
	t.Parallel()
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	tests := []struct {
		name, peer string
		forwarded  []string
		want       string
	}{
		{"an address", "192.0.2.7:1234", nil, "192.0.2.7"},
		{"IPv6 counts by its network", "[2001:db8:1:2:3:4:5:6]:1234", nil, "2001:db8:1:2::/64"},
		{"a neighbour in the same network", "[2001:db8:1:2:ffff::1]:9", nil, "2001:db8:1:2::/64"},
		{"IPv4 inside IPv6", "[::ffff:192.0.2.7]:1234", nil, "192.0.2.7"},
		{"a zone says nothing of who it is", "[fe80::1%eth0]:1234", nil, "fe80::/64"},
		{"a stranger is not believed", "192.0.2.7:1234", []string{"203.0.113.9"}, "192.0.2.7"},
		{"a proxy is", "10.1.1.1:1234", []string{"203.0.113.9"}, "203.0.113.9"},
		{"a proxy on IPv6 is", "[fd00::1]:1234", []string{"2001:db8:9::1"}, "2001:db8:9::/64"},
		{"a proxy inside IPv6 is", "[::ffff:10.1.1.1]:1234", []string{"203.0.113.9"}, "203.0.113.9"},
		{"the client's own claim is left of the proxy's word", "10.1.1.1:1234", []string{"198.51.100.1, 203.0.113.9"}, "203.0.113.9"},
		{"a chain of proxies", "10.1.1.1:1234", []string{"198.51.100.1, 203.0.113.9, 10.2.2.2"}, "203.0.113.9"},
		{"a chain in several lines", "10.1.1.1:1234", []string{"198.51.100.1", "203.0.113.9", "10.2.2.2"}, "203.0.113.9"},
		{"a proxy that says nothing", "10.1.1.1:1234", nil, "10.1.1.1"},
		{"a proxy that says nonsense", "10.1.1.1:1234", []string{"203.0.113.9, unknown"}, "10.1.1.1"},
		{"proxies alone", "10.1.1.1:1234", []string{"10.2.2.2"}, "10.2.2.2"},
		{"a mapped client of a proxy", "10.1.1.1:1234", []string{"::ffff:203.0.113.9"}, "203.0.113.9"},
		{"no port", "pipe", nil, "pipe"},
		{"no address", "pipe:1", nil, "pipe"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := &http.Request{RemoteAddr: tt.peer, Header: http.Header{"X-Forwarded-For": tt.forwarded}}
			if got := clientNetwork(r, proxies); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
