package api

import (
	"context"
	"hash/fnv"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

const (
	windowSeconds  = 60
	anonymousLimit = 300     // failed requests a minute and address
	unlimited      = 1000000 // shown when limits are off
	leaseShare     = 8       // a node takes an eighth of what is left at a time
	leaseTime      = time.Second
	maxBuckets     = 100_000
)

// DefaultRateLimit is the limit of requests a minute of a credential.
func DefaultRateLimit(env fiscal.Environment) int64 {
	if env == fiscal.Sandbox {
		return 600
	}
	return 1200
}

// window is what the rate-limit headers show.
type window struct {
	limit, remaining, reset int64
}

// windows counts requests in fixed windows of a minute. Where several nodes
// share a database they lease blocks of a credential's window from its row and
// count within them, so that most requests write nothing. Blocks shrink as the
// window fills up, so that the last places are shared out one by one.
type windows struct {
	limit int64 // of a credential; 0: off
	now   func() time.Time
	lease func(ctx context.Context, bucket string, end time.Time, n int64) (int64, error) // nil: one node

	mu      sync.Mutex
	buckets map[string]*bucket
	swept   int64 // the second of the last sweep
}

// bucket is a window under way. All of its counts are of this window.
type bucket struct {
	mu      sync.Mutex
	end     int64
	used    int64 // by this node
	leased  int64 // by this node
	claimed int64 // by all nodes, as last heard
}

func newWindows(opt Options) *windows {
	w := &windows{limit: opt.RateLimit, now: opt.Now, buckets: make(map[string]*bucket)}
	if opt.Store.Shared() {
		w.lease = func(ctx context.Context, name string, end time.Time, n int64) (claimed int64, err error) {
			err = opt.Store.Update(ctx, func(tx *store.Tx) error {
				claimed, err = tx.TakeBlock(ctx, name, end, n)
				return err
			})
			return claimed, err
		}
	}
	return w
}

// take counts a request of a credential. It is refused when the window is full,
// and then costs nothing.
func (w *windows) take(ctx context.Context, prefix string, limit int64) (window, bool) {
	return w.count(ctx, prefix, limit, w.lease)
}

// fail counts a failed request of an address, on this node alone.
func (w *windows) fail(ctx context.Context, address string) (window, bool) {
	return w.count(ctx, address, anonymousLimit, nil)
}

func (w *windows) count(ctx context.Context, name string, limit int64, lease func(context.Context, string, time.Time, int64) (int64, error)) (window, bool) {
	now := w.now().Unix()
	end := windowEnd(name, now)
	if w.limit == 0 {
		return window{unlimited, unlimited, end}, true
	}
	b := w.bucket(name, now)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.end != end {
		b.end, b.used, b.leased, b.claimed = end, 0, 0, 0
	}
	if b.used == b.leased && b.claimed < limit {
		b.extend(ctx, name, limit, lease)
	}
	ok := b.used < b.leased
	if ok {
		b.used++
	}
	return window{limit, b.remaining(limit), end}, ok
}

// remaining is what this node knows to be left.
func (b *bucket) remaining(limit int64) int64 {
	return max(0, limit-b.claimed) + b.leased - b.used
}

// extend takes another block of the window. A database that cannot be asked
// never keeps an invoice out: the node then counts alone.
func (b *bucket) extend(ctx context.Context, name string, limit int64, lease func(context.Context, string, time.Time, int64) (int64, error)) {
	if lease == nil {
		b.leased, b.claimed = limit, limit
		return
	}
	ctx, cancel := context.WithTimeout(ctx, leaseTime)
	defer cancel()
	n := max(1, (limit-b.claimed)/leaseShare)
	claimed, err := lease(ctx, name, time.Unix(b.end, 0), n)
	if err != nil {
		b.leased, b.claimed = limit, limit
		return
	}
	b.leased += min(n, max(0, limit-(claimed-n)))
	b.claimed = claimed
}

// giveBack undoes a count of the window that is still running.
func (w *windows) giveBack(name string, shown *window) {
	w.mu.Lock()
	b := w.buckets[name]
	w.mu.Unlock()
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.end == shown.reset && b.used > 0 {
		b.used--
		shown.remaining++
	}
}

func (w *windows) bucket(name string, now int64) *bucket {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.buckets[name]
	if b == nil {
		// A flood of addresses must not make each of its requests sweep.
		if len(w.buckets) >= maxBuckets && w.swept != now {
			w.sweep(now)
			w.swept = now
		}
		b = &bucket{}
		w.buckets[name] = b
	}
	return b
}

// sweep forgets the windows that are over.
func (w *windows) sweep(now int64) {
	for name, b := range w.buckets {
		b.mu.Lock()
		over := b.end <= now
		b.mu.Unlock()
		if over {
			delete(w.buckets, name)
		}
	}
}

// windowEnd is when the window ends that a moment is in. Windows start at a
// second of their own, so that clients do not all come back at once.
func windowEnd(name string, now int64) int64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // a hash never fails
	offset := int64(h.Sum32() % windowSeconds)
	return (now-offset)/windowSeconds*windowSeconds + windowSeconds + offset
}

// takePlace counts the request of an authenticated client.
func (a *API) takePlace(x *exchange) bool {
	limit := a.RateLimit
	if x.credential.RateLimit > 0 {
		limit = x.credential.RateLimit
	}
	shown, ok := a.windows.take(x.r.Context(), x.credential.Prefix, limit)
	x.window, x.counted = shown, true
	return ok
}

// anonymous counts a request that has not been authenticated, once.
func (a *API) anonymous(x *exchange) bool {
	if x.counted {
		return true
	}
	x.counted = true
	shown, ok := a.windows.fail(x.r.Context(), "address "+clientNetwork(x.r, a.Proxies))
	x.window = shown
	return ok
}

// clientNetwork is who is asking: an IPv4 address or an IPv6 /64. What a proxy
// says of its client is believed only of a proxy that was configured.
func clientNetwork(r *http.Request, proxies []netip.Prefix) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && trusted(address, proxies); i-- {
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		address = hop
	}
	address = address.Unmap().WithZone("")
	if address.Is6() {
		if network, err := address.Prefix(64); err == nil {
			return network.String()
		}
	}
	return address.String()
}

func trusted(address netip.Addr, proxies []netip.Prefix) bool {
	for _, p := range proxies {
		if p.Contains(address.Unmap()) {
			return true
		}
	}
	return false
}
