// Package combine lets concurrent calls share their work. While one call runs, later calls
// wait. Then the first of these does the work of all that wait: it leads.
package combine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// ErrNotEnded is the error of a call whose leader panicked.
var ErrNotEnded = errors.New("combine: the work did not end")

// Group combines calls. Its fields must not change after the first call; Run is required.
type Group[T any] struct {
	// Run does the work of some calls, oldest first, and sets the error of each. It runs in
	// the goroutine of the first, the leader, and with its context, which cannot be
	// cancelled when there are others.
	Run func(ctx context.Context, calls []*Call[T])
	// Max is how many calls share a run; 0: all that wait.
	Max int
	// Leaders is how many runs there are at the same time; 0: one.
	Leaders int
	// Patience is how long a call waits at most. Then it fails with Late or, if that is nil,
	// leads although others run. 0: it waits until it has its turn.
	Patience time.Duration
	Late     error
	// Gather is how long a leader waits for other calls before it runs.
	Gather time.Duration
	// Match reports whether a call may share the run of a leader; nil: every one may.
	Match func(leader, other T) bool

	mu      sync.Mutex
	waiting []*Call[T]
	running int
}

// Call is one call of Do.
type Call[T any] struct {
	Value T
	Err   error // what Do returns
	// turn gets one value after the call has left the list of those that wait: whether it
	// leads. Otherwise another one has run it.
	turn chan bool
}

// SetAll sets the error of calls.
func SetAll[T any](calls []*Call[T], err error) {
	for _, c := range calls {
		c.Err = err
	}
}

// Do returns when the work of the call is done. A context that ends before a run has begun
// cancels the call.
func (g *Group[T]) Do(ctx context.Context, value T) error {
	c := &Call[T]{Value: value, Err: ErrNotEnded, turn: make(chan bool, 1)}
	g.mu.Lock()
	leads := g.running < max(1, g.Leaders)
	if leads {
		g.running++
	} else {
		g.waiting = append(g.waiting, c)
	}
	g.mu.Unlock()
	if leads || g.wait(ctx, c) {
		g.lead(ctx, c)
	}
	return c.Err
}

// wait returns when a call was run or cancelled, or leads.
func (g *Group[T]) wait(ctx context.Context, c *Call[T]) (leads bool) {
	var late <-chan time.Time
	if g.Patience > 0 {
		timer := time.NewTimer(g.Patience)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case leads := <-c.turn:
		return leads
	case <-late:
	case <-ctx.Done():
	}
	g.mu.Lock()
	i := slices.Index(g.waiting, c)
	if i < 0 {
		g.mu.Unlock()
		return <-c.turn
	}
	defer g.mu.Unlock()
	g.waiting = slices.Delete(g.waiting, i, i+1)
	if err := cmp.Or(ctx.Err(), g.Late); err != nil {
		c.Err = err
		return false
	}
	g.running++
	return true
}

// lead runs a call together with those that wait, and lets the next one lead.
func (g *Group[T]) lead(ctx context.Context, c *Call[T]) {
	calls := []*Call[T]{c}
	defer func() {
		for _, other := range calls[1:] {
			other.turn <- false
		}
		g.pass()
	}()
	if g.Gather > 0 {
		select {
		case <-time.After(g.Gather):
		case <-ctx.Done():
		}
	}
	calls = g.take(calls)
	if len(calls) > 1 {
		ctx = context.WithoutCancel(ctx)
	}
	g.Run(ctx, slices.Clone(calls))
}

// take adds the calls that wait to the calls of a leader.
func (g *Group[T]) take(calls []*Call[T]) []*Call[T] {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = slices.DeleteFunc(g.waiting, func(other *Call[T]) bool {
		taken := (g.Max == 0 || len(calls) < g.Max) && (g.Match == nil || g.Match(calls[0].Value, other.Value))
		if taken {
			calls = append(calls, other)
		}
		return taken
	})
	return calls
}

// pass lets the call that has waited longest lead.
func (g *Group[T]) pass() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 || g.running > max(1, g.Leaders) {
		g.running--
		return
	}
	next := g.waiting[0]
	g.waiting = slices.Delete(g.waiting, 0, 1)
	next.turn <- true
}

// Waiting returns how many calls wait.
func (g *Group[T]) Waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting)
}
