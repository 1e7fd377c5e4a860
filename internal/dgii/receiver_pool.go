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
	// receiverSlots is how many calls one receiver gets at the same time.
	receiverSlots = 2
	// receiverWait is how long a delivery waits for a slot of its receiver. It is
	// short, so that a receiver that does not respond keeps few callers waiting.
	receiverWait = 2 * time.Second
	// maxReceivers is how many receivers the client remembers.
	maxReceivers = 1000
)

// A receiver has the circuit breaker and the slots of one buyer's receiver. So a
// receiver that does not respond delays no call to another one, nor to the
// authority.
type receiver struct {
	key     string
	slots   slots
	breaker *circuitBreaker
	callers int // that hold it; it stays in the pool while there are any
	// signed is how many of its seeds were signed since it is in the pool.
	signed atomic.Int64
}

func (c *Client) newReceiver(key string) *receiver {
	return &receiver{key: key, slots: newSlots(receiverSlots), breaker: &circuitBreaker{
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
func (r *receiver) acquire(ctx context.Context) (free func(), err error) {
	short, cancel := context.WithTimeout(ctx, receiverWait)
	defer cancel()
	free, err = r.slots.acquire(short)
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return nil, &RetryAfterError{r.breaker.probeEvery}
	}
	return free, err
}

// A receiverPool remembers the receivers that were called last.
type receiverPool struct {
	size        int
	newReceiver func(key string) *receiver

	mu      sync.Mutex
	order   *list.List // of *receiver, the one that was called last in front
	entries map[string]*list.Element
}

func newReceiverPool(size int, newReceiver func(string) *receiver) *receiverPool {
	return &receiverPool{size: size, newReceiver: newReceiver, order: list.New(), entries: make(map[string]*list.Element)}
}

// join returns the receiver with a key. The caller calls leave when it no longer
// needs it.
func (p *receiverPool) join(key string) (r *receiver, leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entries[key]
	if e == nil {
		p.evict()
		e = p.order.PushFront(p.newReceiver(key))
		p.entries[key] = e
	}
	p.order.MoveToFront(e)
	r = e.Value.(*receiver)
	r.callers++
	return r, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		r.callers--
	}
}

// evict makes room for one receiver. It removes those that were called longest ago
// and have no callers. The caller holds the lock.
func (p *receiverPool) evict() {
	for e := p.order.Back(); e != nil && p.order.Len() >= p.size; {
		previous := e.Prev()
		if r := e.Value.(*receiver); r.callers == 0 {
			p.order.Remove(e)
			delete(p.entries, r.key)
		}
		e = previous
	}
}
