package api

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	maxExecuting           = 256
	maxWaiting             = 512
	maxCredentialExecuting = 64
	maxCredentialWaiting   = 256
	maxSlotWait            = time.Second
)

var errNoSlot = errors.New("no slot became free in time")

// concurrencyLimiter bounds how many requests execute at the same time. A
// request that executes holds a slot. A bounded number of requests waits for a
// slot, and the newest one is served first: under overload its client is the
// most likely to be still there. The oldest one is refused first.
type concurrencyLimiter struct {
	mu        sync.Mutex
	free      int
	maxQueued int
	waiting   []*waiter // oldest first
}

// waiter is a request that waits. It receives true with a slot, and false when
// it is refused.
type waiter struct{ granted chan bool }

func newConcurrencyLimiter(executing, waiting int) *concurrencyLimiter {
	return &concurrencyLimiter{free: executing, maxQueued: waiting}
}

// tryAcquire takes a slot if one is free. The caller must call release.
func (c *concurrencyLimiter) tryAcquire() (release func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.free == 0 {
		return nil, false
	}
	c.free--
	return c.release, true
}

// acquire takes a slot and waits for one if necessary. It returns errNoSlot when
// it has waited maxSlotWait, when ctx ends, or when too many newer requests wait.
func (c *concurrencyLimiter) acquire(ctx context.Context) (release func(), err error) {
	c.mu.Lock()
	if c.free > 0 {
		c.free--
		c.mu.Unlock()
		return c.release, nil
	}
	if len(c.waiting) >= c.maxQueued {
		oldest := c.waiting[0]
		c.waiting = c.waiting[1:]
		oldest.granted <- false
	}
	w := &waiter{granted: make(chan bool, 1)}
	c.waiting = append(c.waiting, w)
	c.mu.Unlock()

	timeout := time.NewTimer(maxSlotWait)
	defer timeout.Stop()
	select {
	case granted := <-w.granted:
		return c.result(granted)
	case <-timeout.C:
	case <-ctx.Done():
	}
	if c.remove(w) {
		return nil, errNoSlot
	}
	return c.result(<-w.granted)
}

func (c *concurrencyLimiter) result(granted bool) (func(), error) {
	if !granted {
		return nil, errNoSlot
	}
	return c.release, nil
}

// remove removes a waiter from the queue. It returns false when the waiter was
// granted a slot or refused before.
func (c *concurrencyLimiter) remove(w *waiter) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, other := range c.waiting {
		if other == w {
			c.waiting = append(c.waiting[:i], c.waiting[i+1:]...)
			return true
		}
	}
	return false
}

// release gives the slot to the newest waiter, or makes it free.
func (c *concurrencyLimiter) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.waiting); n > 0 {
		newest := c.waiting[n-1]
		c.waiting = c.waiting[:n-1]
		newest.granted <- true
		return
	}
	c.free++
}

// credentialLimiters holds a limiter for each credential in use.
type credentialLimiters struct {
	mu       sync.Mutex
	byPrefix map[string]*concurrencyLimiter
}

func newCredentialLimiters() *credentialLimiters {
	return &credentialLimiters{byPrefix: make(map[string]*concurrencyLimiter)}
}

// of returns the limiter of a credential. The map stays small, because only
// verified credentials get here.
func (c *credentialLimiters) of(prefix string) *concurrencyLimiter {
	c.mu.Lock()
	defer c.mu.Unlock()
	limiter := c.byPrefix[prefix]
	if limiter == nil {
		limiter = newConcurrencyLimiter(maxCredentialExecuting, maxCredentialWaiting)
		c.byPrefix[prefix] = limiter
	}
	return limiter
}
