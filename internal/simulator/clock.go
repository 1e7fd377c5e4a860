package simulator

import (
	"context"
	"errors"
	"sync"
	"time"
)

// How the authority writes instants and dates in documents, in the time zone of the
// country, and instants in the answer with a token, in UTC.
const (
	timeLayout  = "02-01-2006 15:04:05"
	dateLayout  = "02-01-2006"
	tokenLayout = "2006-01-02T15:04:05Z"
)

// zone is the time zone of the Dominican Republic, which has no daylight saving time.
// The simulator defines it itself, see the package comment.
var zone = time.FixedZone("AST", -4*60*60)

// errClosed is the error of waits when the simulator is closed.
var errClosed = errors.New("simulator: closed")

// A clock follows the clock in Options, and can be frozen and moved.
type clock struct {
	base   func() time.Time
	pause  func(context.Context, time.Duration) error
	closed chan struct{}

	mu      sync.Mutex
	frozen  bool
	at      time.Time // the time while frozen
	offset  time.Duration
	changed chan struct{} // closed when the clock is moved
}

func newClock(base func() time.Time, pause func(context.Context, time.Duration) error) *clock {
	c := &clock{base: base, pause: pause, closed: make(chan struct{}), changed: make(chan struct{})}
	if c.pause == nil {
		c.pause = c.sleepReal
	}
	return c
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current()
}

func (c *clock) current() time.Time {
	if c.frozen {
		return c.at
	}
	return c.base().Add(c.offset)
}

// move changes the clock and wakes all calls that wait for it.
func (c *clock) move(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *clock) freeze(frozen bool) {
	c.move(func() {
		at := c.current()
		if c.frozen && !frozen {
			c.offset = at.Sub(c.base())
		}
		c.frozen, c.at = frozen, at
	})
}

func (c *clock) set(t time.Time) {
	c.move(func() {
		c.at = t
		if !c.frozen {
			c.offset = t.Sub(c.base())
		}
	})
}

func (c *clock) advance(d time.Duration) {
	c.move(func() {
		c.at = c.at.Add(d)
		if !c.frozen {
			c.offset += d
		}
	})
}

func (c *clock) isFrozen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.frozen
}

// sleep waits until d has passed on this clock. While the clock is frozen, it waits until
// the clock is moved. It fails when ctx ends or the simulator is closed.
func (c *clock) sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	c.mu.Lock()
	until := c.current().Add(d)
	c.mu.Unlock()
	for {
		c.mu.Lock()
		left, frozen, changed := until.Sub(c.current()), c.frozen, c.changed
		c.mu.Unlock()
		if left <= 0 {
			return nil
		}
		if !frozen {
			return c.pause(ctx, left)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-c.closed:
			return errClosed
		}
	}
}

// waitForClient waits until the client gives up or the simulator is closed.
func (c *clock) waitForClient(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-c.closed:
	}
}

func (c *clock) sleepReal(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.closed:
		return errClosed
	}
}
