package api

import (
	"context"
	"hash/fnv"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

const (
	windowSeconds  = 60
	anonymousLimit = 300     // failed requests per minute for each client address
	unlimited      = 1000000 // the limit that the headers show when limits are off
	leaseShare     = 8       // a lease takes an eighth of the rest of a window
	leaseTime      = time.Second
	maxBuckets     = 100_000
)

// DefaultRateLimit returns the requests per minute for each credential.
func DefaultRateLimit(env fiscal.Environment) int64 {
	if env == fiscal.Sandbox {
		return 600
	}
	return 1200
}

// window is the state of a rate limit as the RateLimit headers show it.
type window struct {
	limit, remaining int64
	reset            int64 // when the window ends, in Unix seconds
}

// rateLimiter counts requests in fixed windows of a minute. When several nodes
// share a database, each node leases a part of the window of a credential from
// the database and counts inside that part, so most requests write nothing. The
// leases get smaller as the window fills up; the last requests are leased one by
// one.
type rateLimiter struct {
	limit int64 // of a credential; 0: limits are off
	now   func() time.Time
	lease leaseFunc // nil: no other node uses the database

	mu      sync.Mutex
	buckets map[string]*bucket
	swept   int64 // when sweep ran last, in Unix seconds
}

// leaseFunc adds n to what the nodes have claimed of the window of a bucket, and
// returns the sum.
type leaseFunc func(ctx context.Context, bucket string, end time.Time, n int64) (claimed int64, err error)

// bucket counts the current window of a credential, a source or an address.
type bucket struct {
	mu      sync.Mutex
	end     int64 // of the window, in Unix seconds
	used    int64 // by this node
	leased  int64 // by this node
	claimed int64 // by all nodes, as of the last lease
}

func newRateLimiter(limit int64, now func() time.Time, s *store.Store) *rateLimiter {
	l := &rateLimiter{limit: limit, now: now, buckets: make(map[string]*bucket)}
	if s.Shared() {
		l.lease = func(ctx context.Context, name string, end time.Time, n int64) (claimed int64, err error) {
			err = s.Update(ctx, func(tx *store.Tx) error {
				claimed, err = tx.TakeBlock(ctx, name, end, n)
				return err
			})
			return claimed, err
		}
	}
	return l
}

// countCredential counts a request of a credential or a source. It returns false
// when the window is full; the request is not counted then.
func (l *rateLimiter) countCredential(ctx context.Context, name string, limit int64) (window, bool) {
	return l.count(ctx, name, limit, l.lease)
}

// countAddress counts a request without a credential by the address of its
// client. Each node counts alone.
func (l *rateLimiter) countAddress(ctx context.Context, address string) (window, bool) {
	return l.count(ctx, address, anonymousLimit, nil)
}

func (l *rateLimiter) count(ctx context.Context, name string, limit int64, lease leaseFunc) (window, bool) {
	now := l.now().Unix()
	end := windowEnd(name, now)
	if l.limit == 0 {
		return window{unlimited, unlimited, end}, true
	}
	b := l.bucket(name, now)
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

// remaining returns how many requests are left in the window, as far as this node
// knows.
func (b *bucket) remaining(limit int64) int64 {
	return max(0, limit-b.claimed) + b.leased - b.used
}

// extend leases another part of the window. When the database fails the node
// counts the whole window alone: a failure must not refuse invoices. A client that
// disconnects does not end the lease, or it could make the node count alone.
func (b *bucket) extend(ctx context.Context, name string, limit int64, lease leaseFunc) {
	if lease == nil {
		b.leased, b.claimed = limit, limit
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseTime)
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

// giveBack undoes one count if its window has not ended.
func (l *rateLimiter) giveBack(name string, shown *window) {
	l.mu.Lock()
	b := l.buckets[name]
	l.mu.Unlock()
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

// bucket returns the bucket of a name and creates it if necessary.
func (l *rateLimiter) bucket(name string, now int64) *bucket {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.buckets[name]
	if b == nil {
		// Requests from very many addresses must not sweep each time.
		if len(l.buckets) >= maxBuckets && l.swept != now {
			l.sweep(now)
			l.swept = now
		}
		b = &bucket{}
		l.buckets[name] = b
	}
	return b
}

// sweep deletes the buckets whose window has ended.
func (l *rateLimiter) sweep(now int64) {
	for name, b := range l.buckets {
		b.mu.Lock()
		over := b.end <= now
		b.mu.Unlock()
		if over {
			delete(l.buckets, name)
		}
	}
}

// windowEnd returns when the current window of a name ends. The windows of
// different names end at different seconds, so that refused clients do not all
// return at the same time.
func windowEnd(name string, now int64) int64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // a hash never fails
	offset := int64(h.Sum32() % windowSeconds)
	return (now-offset)/windowSeconds*windowSeconds + windowSeconds + offset
}

// countRequest counts the request of an authenticated client, and reports
// whether it is within the limit.
func (a *API) countRequest(x *exchange) (allowed bool) {
	limit := a.o.RateLimit
	if x.credential.RateLimit > 0 {
		limit = x.credential.RateLimit
	}
	x.window, allowed = a.rateLimiter.countCredential(x.r.Context(), x.credential.Prefix, limit)
	x.counted = true
	return allowed
}

// rateLimitExceeded returns the refusal of a request whose window is full.
func (a *API) rateLimitExceeded(x *exchange) error {
	return rateLimited(x.window.reset-a.o.Now().Unix(), lang.Messagef("the rate limit is exceeded; try again after Retry-After seconds",
		"se superó el límite de solicitudes; intente otra vez después de los segundos de Retry-After"))
}

// countAnonymous counts a request that is not authenticated, by the address of
// its client. It counts a request only once.
func (a *API) countAnonymous(x *exchange) (allowed bool) {
	if x.counted {
		return true
	}
	x.counted = true
	x.window, allowed = a.rateLimiter.countAddress(x.r.Context(), "address "+x.address)
	return allowed
}

// addressExceeded returns the refusal of a request that is not authenticated and
// whose address has used up its window.
func (a *API) addressExceeded(x *exchange) error {
	x.exceeded = true
	return shed(rateLimited(x.window.reset-a.o.Now().Unix(), lang.Messagef(
		"too many requests without a valid credential from this address; try again after Retry-After seconds",
		"demasiadas solicitudes sin credencial válida desde esta dirección; intente otra vez después de los segundos de Retry-After")))
}
