package dgii

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// endpointSlots is how many calls one endpoint gets at the same time.
	endpointSlots = 2
	// endpointWait is how long a delivery waits for a slot of its endpoint. It is
	// short, so that an endpoint that does not respond keeps few callers waiting.
	endpointWait = 2 * time.Second
	// maxEndpoints is how many receivers the client remembers.
	maxEndpoints = 1000
)

// An endpoint has the circuit breaker and the slots of one buyer's endpoint. So an
// endpoint that does not respond delays no call to another one, nor to the
// authority.
type endpoint struct {
	key     string
	slots   slots
	breaker *circuitBreaker
	callers int // that hold it; it stays in the pool while there are any
	// signed is how many of its seeds were signed since it is in the pool.
	signed atomic.Int64
}

func (c *Client) newEndpoint(key string) *endpoint {
	return &endpoint{key: key, slots: newSlots(endpointSlots), breaker: &circuitBreaker{
		now: c.now, probeEvery: c.pace.Scale(probeInterval),
		onChange: func(open bool) {
			if open {
				c.log.Info("A buyer's receiver does not respond. Its circuit is open, and deliveries to it wait.", "receiver", key)
			} else {
				c.log.Info("A buyer's receiver responds again. Its circuit is closed.", "receiver", key)
			}
		},
	}}
}

// acquire waits for a slot for a short time. It fails with a RetryAfterError when
// there is none, and when ctx ends.
func (r *endpoint) acquire(ctx context.Context) (free func(), err error) {
	short, cancel := context.WithTimeout(ctx, endpointWait)
	defer cancel()
	free, err = r.slots.acquire(short)
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return nil, &RetryAfterError{r.breaker.probeEvery}
	}
	return free, err
}

// An endpointPool remembers the receivers that were called last.
type endpointPool struct {
	size        int
	newEndpoint func(key string) *endpoint

	mu      sync.Mutex
	order   *list.List // of *endpoint, the one that was called last in front
	entries map[string]*list.Element
}

func newEndpointPool(size int, newEndpoint func(string) *endpoint) *endpointPool {
	return &endpointPool{size: size, newEndpoint: newEndpoint, order: list.New(), entries: make(map[string]*list.Element)}
}

// join returns the endpoint with a key. The caller calls leave when it no longer
// needs it.
func (p *endpointPool) join(key string) (r *endpoint, leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entries[key]
	if e == nil {
		p.evict()
		e = p.order.PushFront(p.newEndpoint(key))
		p.entries[key] = e
	}
	p.order.MoveToFront(e)
	r = e.Value.(*endpoint)
	r.callers++
	return r, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		r.callers--
	}
}

// evict makes room for one endpoint. It removes those that were called longest ago
// and have no callers. The caller holds the lock.
func (p *endpointPool) evict() {
	for e := p.order.Back(); e != nil && p.order.Len() >= p.size; {
		previous := e.Prev()
		if r := e.Value.(*endpoint); r.callers == 0 {
			p.order.Remove(e)
			delete(p.entries, r.key)
		}
		e = previous
	}
}
