package database

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// Now returns the time of the database's clock, which all nodes share. On PostgreSQL it
// is an estimate: the server is asked at the start and every few seconds. On
// SQLite it is the clock of this node.
//
// Everything that nodes compare with each other takes its time from here: leases,
// heartbeats, rate windows, and the moments at which work is due. A wrong clock of a
// node, or a step of it, then has no effect on them.
//
// A new estimate does not move the time back, unless the clock of the server itself was
// set back by more than maxSlew.
func (db *DB) Now() time.Time { return db.clock.now() }

// ClockSkew returns how far the clock of this node is ahead of the database's clock;
// it is negative when the node is behind. It returns false while there is no exact
// measurement. On SQLite both are the same clock.
func (db *DB) ClockSkew() (time.Duration, bool) { return db.clock.skew() }

// clockSource connects to the clock of a database and calls fn, which may read the clock
// several times.
type clockSource func(ctx context.Context, fn func(read func(context.Context) (time.Time, error)) error) error

const (
	// clockInterval is the time between two measurements.
	clockInterval = 5 * time.Second
	// clockSamples is how often a measurement reads the database's clock. The sample
	// with the shortest round trip is the most exact one.
	clockSamples = 5
	// maxRoundTrip is the longest round trip of a sample that replaces an earlier
	// estimate. Half of it limits the error.
	maxRoundTrip = time.Second
	// maxSlew is the largest correction that the clock makes by running slower. The
	// error of a measurement is smaller. A larger correction means that the clock of
	// the server was changed, or that another server answers: the estimate then follows
	// at once, because all nodes must have the same time.
	maxSlew = 2 * time.Second
	// clockStep is the difference between the wall clock and the monotonic clock of
	// this node that makes it measure again at once. Such a difference comes
	// from a change of the node's clock, or from a suspended machine.
	clockStep = time.Second
)

// clock estimates the clock of a database.
type clock struct {
	node   func() time.Time
	local  func() clockReading
	source clockSource // nil: the database's clock is the local one
	log    *slog.Logger
	wake   chan struct{} // asks for a measurement
	stop   context.CancelFunc
	loop   sync.WaitGroup

	mu       sync.Mutex // held while the local clock is read, so that a new estimate follows the last time that was read
	estimate *clockEstimate
}

// clockReading is a moment by the local clocks. The time between two moments comes from
// steady, so a step of the wall clock does not change it.
type clockReading struct {
	wall   time.Time // without a monotonic reading
	steady time.Time // by the monotonic clock of the machine
}

// newClockReader returns a function that reads the local clocks. Without a monotonic source
// it takes the monotonic reading that the times of now carry.
func newClockReader(now func() time.Time, monotonic func() time.Duration) func() clockReading {
	if monotonic == nil {
		return func() clockReading {
			at := now()
			return clockReading{at.Round(0), at}
		}
	}
	start := now().Round(0)
	return func() clockReading { return clockReading{now().Round(0), start.Add(monotonic())} }
}

// clockEstimate is what one measurement found.
type clockEstimate struct {
	local    clockReading
	database time.Time // the same moment by the database's clock
	ahead    time.Duration
	exact    bool // the round trip was short enough
}

// at returns the time of the database at a moment of the local clock. An earlier estimate
// was ahead by e.ahead; the clock runs at half speed until it has lost that.
func (e *clockEstimate) at(local clockReading) time.Time {
	passed := local.steady.Sub(e.local.steady)
	return e.database.Add(passed + max(0, e.ahead-max(0, passed)/2))
}

// newClock measures the clock of the database, and measures it again in the background
// until close. It fails when the database does not answer.
func newClock(ctx context.Context, opt Options, source clockSource) (*clock, error) {
	if read := opt.DatabaseNow; read != nil {
		source = func(_ context.Context, fn func(func(context.Context) (time.Time, error)) error) error {
			return fn(read)
		}
	}
	c := &clock{node: opt.Now, local: newClockReader(opt.Now, opt.Monotonic), source: source, log: opt.Log, wake: make(chan struct{}, 1), stop: func() {}}
	if source == nil {
		return c, nil
	}
	if err := c.measure(ctx); err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stop = stop
	c.loop.Go(func() { c.run(running) })
	return c, nil
}

func (c *clock) close() {
	c.stop()
	c.loop.Wait()
}

// read returns the estimate and the time of the local clocks.
func (c *clock) read() (*clockEstimate, clockReading) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.estimate, c.local()
}

func (c *clock) now() time.Time {
	if c.source == nil {
		return c.node()
	}
	e, local := c.read()
	if step := local.wall.Sub(e.local.wall) - local.steady.Sub(e.local.steady); step.Abs() > clockStep {
		select {
		case c.wake <- struct{}{}:
		default: // it was asked already
		}
	}
	return e.at(local)
}

func (c *clock) skew() (time.Duration, bool) {
	if c.source == nil {
		return 0, true
	}
	e, local := c.read()
	return local.wall.Sub(e.at(local)), e.exact
}

// run measures at intervals. After a measurement that failed, the last estimate remains.
func (c *clock) run(ctx context.Context) {
	tick := time.NewTicker(clockInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-c.wake:
		}
		if err := c.measure(ctx); err != nil && ctx.Err() == nil {
			c.log.Debug("The store could not read the clock of the database. It uses the last estimate and tries again.", "error", err.Error())
			c.pause(ctx)
		}
	}
}

// pause keeps requests for a measurement from repeating a failed one without end.
func (c *clock) pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(clockInterval / 5):
	}
}

// measure reads the clock of the database several times, and takes the sample with the
// shortest round trip. It assumes that the server read its clock in the middle of it.
func (c *clock) measure(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connectionWait)
	defer cancel()
	var best *clockEstimate
	shortest := time.Duration(-1)
	err := c.source(ctx, func(read func(context.Context) (time.Time, error)) error {
		for range clockSamples {
			before := c.local()
			database, err := read(ctx)
			if err != nil {
				return err
			}
			after := c.local()
			trip := after.steady.Sub(before.steady)
			if trip < 0 || (shortest >= 0 && trip >= shortest) {
				continue // a negative one: the local clock of a test was set back
			}
			best, shortest = &clockEstimate{local: after, database: database.Add(trip / 2).Round(0), exact: trip <= maxRoundTrip}, trip
		}
		return nil
	})
	if err != nil {
		return err
	}
	if best == nil {
		return errors.New("database: the local clock went back during each reading of the database's clock")
	}
	c.adopt(best)
	return nil
}

// adopt replaces the estimate.
func (c *clock) adopt(next *clockEstimate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.estimate
	if last != nil && last.exact && !next.exact {
		return // the last estimate is better than a slow answer
	}
	if last != nil {
		local := c.local()
		next.local, next.database = local, next.at(local)
		switch back := last.at(local).Sub(next.database); {
		case back > maxSlew:
			c.log.Warn("The clock of the database went back. The service follows it.", "seconds", back.Seconds())
		case back > 0:
			next.ahead = back
		}
	}
	c.estimate = next
}
