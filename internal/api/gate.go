package api

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

const (
	maxExecuting           = 256
	maxWaiting             = 512
	maxCredentialExecuting = 64
	maxCredentialWaiting   = 256
	maxWait                = time.Second
)

// refusalsPerSecond is how many refusals for want of room the service is ready
// to spend its time on.
const refusalsPerSecond = 1000

var errCrowded = errors.New("no place within the time")

// gate bounds how many requests execute at a time. A few more may wait, the
// last come being the first served: under overload that keeps the ones served
// fresh, and gives up those whose clients have waited longest, quickly.
type gate struct {
	mu        sync.Mutex
	free      int
	maxQueued int
	waiting   []*waiter // oldest first
}

type waiter struct{ turn chan bool }

func newGate(executing, waiting int) *gate { return &gate{free: executing, maxQueued: waiting} }

// tryEnter takes a place if one is free.
func (g *gate) tryEnter() (leave func(), ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.free == 0 {
		return nil, false
	}
	g.free--
	return g.leave, true
}

// enter takes a place, waiting for one if need be.
func (g *gate) enter(ctx context.Context) (leave func(), err error) {
	g.mu.Lock()
	if g.free > 0 {
		g.free--
		g.mu.Unlock()
		return g.leave, nil
	}
	if len(g.waiting) >= g.maxQueued {
		oldest := g.waiting[0]
		g.waiting = g.waiting[1:]
		oldest.turn <- false
	}
	me := &waiter{turn: make(chan bool, 1)}
	g.waiting = append(g.waiting, me)
	g.mu.Unlock()

	patience := time.NewTimer(maxWait)
	defer patience.Stop()
	select {
	case mine := <-me.turn:
		return g.outcome(mine)
	case <-patience.C:
	case <-ctx.Done():
	}
	if g.withdraw(me) {
		return nil, errCrowded
	}
	return g.outcome(<-me.turn)
}

func (g *gate) outcome(mine bool) (func(), error) {
	if !mine {
		return nil, errCrowded
	}
	return g.leave, nil
}

// withdraw takes a waiter out, unless its turn has been decided.
func (g *gate) withdraw(me *waiter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, w := range g.waiting {
		if w == me {
			g.waiting = append(g.waiting[:i], g.waiting[i+1:]...)
			return true
		}
	}
	return false
}

// leave hands the place to the waiter that came last.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := len(g.waiting); n > 0 {
		last := g.waiting[n-1]
		g.waiting = g.waiting[:n-1]
		last.turn <- true
		return
	}
	g.free++
}

// gates holds a gate for each credential in use.
type gates struct {
	mu       sync.Mutex
	byPrefix map[string]*gate
}

func newGates() *gates { return &gates{byPrefix: make(map[string]*gate)} }

// of returns the gate of a credential. Credentials are few: only keys that
// have been verified get here.
func (g *gates) of(prefix string) *gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	own := g.byPrefix[prefix]
	if own == nil {
		own = newGate(maxCredentialExecuting, maxCredentialWaiting)
		g.byPrefix[prefix] = own
	}
	return own
}

// hold keeps a connection that was refused for want of room from being read
// again at once. A refusal costs a good part of what serving a request does:
// clients that ignore its Retry-After would take the time of those served. The
// more there are the longer they wait, and one that comes back when it was
// told to does not notice.
func (a *API) hold(x *exchange) {
	held := a.held.Add(1)
	defer a.held.Add(-1)
	if http.NewResponseController(x.w).Flush() != nil || a.draining.Load() {
		return
	}
	wait := time.NewTimer(holdTime(held))
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-x.r.Context().Done():
	}
}

// holdTime spreads the refusals of so many connections over time.
func holdTime(held int64) time.Duration {
	return min(time.Duration(held)*time.Second/refusalsPerSecond, time.Second)
}
