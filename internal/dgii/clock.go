package dgii

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/wake"
)

const (
	// clockLife is how long a measured offset is valid.
	clockLife = 10 * time.Minute
	// CheckClock measures an offset beyond largeOffset again after remeasureAfter:
	// it may stop the signing of documents, and then no other call measures it.
	largeOffset    = 10 * time.Second
	remeasureAfter = time.Minute
	// clockTolerance is by how much two offsets may differ and still agree. A Date
	// header is cut to the second, and a response is some time under way.
	clockTolerance = 3 * time.Second
	// maxClockStep is by how much the wall clock and the monotonic clock of this
	// machine may disagree. When they disagree by more, the wall clock was set.
	maxClockStep = time.Second
	// clockCheckInterval is the shortest time between two requests of CheckClock.
	clockCheckInterval = time.Second
	// minWait is the shortest wait that a pace leaves.
	minWait = 100 * time.Millisecond
)

// A reading is one instant on both clocks of this machine.
type reading struct {
	wall      time.Time // without a monotonic reading, so that Sub compares wall clocks
	monotonic time.Duration
}

// newReader returns a function that reads both clocks. Without a monotonic source
// it takes the monotonic reading that the times of now carry. When they carry
// none, both clocks are the same one.
func newReader(now func() time.Time, monotonic func() time.Duration) func() reading {
	if monotonic != nil {
		return func() reading { return reading{now().Round(0), monotonic()} }
	}
	start := now()
	return func() reading {
		t := now()
		return reading{t.Round(0), t.Sub(start)}
	}
}

// An authorityClock is the difference between the authority's clock and ours, as
// the Date headers of responses show it.
//
// An offset counts only when two sources agree on it. The first offset
// counts when it agrees with our own clock, that is when it is about zero. Every
// other offset counts when it agrees with the offset that counts already, or with
// that of the preceding response. So one wrong header changes nothing.
type authorityClock struct {
	read      func() reading
	log       *slog.Logger
	remeasure time.Duration // a large offset is measured again after this time

	mu         sync.Mutex
	confirmed  bool          // offset counts
	offset     time.Duration // the authority's clock minus ours
	measuredAt time.Duration // on the monotonic clock: the last response that agreed with offset
	hasLast    bool
	last       time.Duration // the offset of the last response, whether it counts or not
	lastAt     reading
}

func newAuthorityClock(read func() reading, log *slog.Logger, pace wake.Pace) *authorityClock {
	return &authorityClock{read: read, log: log, remeasure: pace.Of(remeasureAfter, minWait)}
}

// observe takes the Date header of a response that arrived at the given instant.
func (c *authorityClock) observe(date time.Time, at reading) {
	if date.IsZero() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgetAfterStep(at)
	offset := date.Sub(at.wall).Round(time.Second)
	agrees := c.hasLast && agree(offset, c.last)
	if c.confirmed {
		agrees = agrees || agree(offset, c.offset)
	} else {
		agrees = agrees || agree(offset, 0)
	}
	c.hasLast, c.last, c.lastAt = true, offset, at
	if agrees {
		c.confirmed, c.offset, c.measuredAt = true, offset, at.monotonic
	}
}

func agree(a, b time.Duration) bool { return (a - b).Abs() <= clockTolerance }

// forgetAfterStep forgets everything when our wall clock was set since the last
// response. The caller holds the lock.
func (c *authorityClock) forgetAfterStep(at reading) {
	if !c.hasLast {
		return
	}
	step := at.wall.Sub(c.lastAt.wall) - (at.monotonic - c.lastAt.monotonic)
	if step.Abs() <= maxClockStep {
		return
	}
	c.log.Warn("The clock of this machine was set. It is compared with the tax authority's clock before anything else is signed.", "step", step.String())
	c.confirmed, c.offset, c.hasLast, c.last = false, 0, false, 0
}

// A clockState is what is known about the offset at one instant.
type clockState struct {
	offset    time.Duration // the one that counts, or zero
	confirmed bool
	valid     bool // confirmed and not expired
	due       bool // to be measured again
}

func (c *authorityClock) state() clockState {
	at := c.read()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgetAfterStep(at)
	age := at.monotonic - c.measuredAt
	valid := c.confirmed && age <= clockLife
	return clockState{
		offset: c.offset, confirmed: c.confirmed, valid: valid,
		due: !valid || c.offset.Abs() > largeOffset && age > c.remeasure,
	}
}

// Clock returns by how much the authority's clock is ahead of ours, to the second.
// known is true while the offset is measured, confirmed and not expired. It
// expires ten minutes after the last response that agrees with it, and at once
// when the clock of this machine is set. When only the time is over, Clock still
// returns the last offset; see ClockConfirmed.
func (c *Client) Clock() (ahead time.Duration, known bool) {
	s := c.clock.state()
	return s.offset, s.valid
}

// ClockConfirmed reports whether an offset was confirmed in this process and the
// clock of this machine has not been set since. Then the offset that Clock returns
// may be used while the authority cannot be reached.
func (c *Client) ClockConfirmed() bool { return c.clock.state().confirmed }

// CheckClock makes sure that Clock knows the offset; the caller calls it before
// each signature. It requests a seed, whatever the circuits say, when the offset
// is not known, or is more than ten seconds and was measured more than a minute
// ago. Every response with a Date header counts, also an error page. Concurrent
// callers share one request, and there is at most one request a second.
//
// It fails with ErrUnavailable when there is no response. It fails with
// ErrUnavailable and a RetryAfterError when the response differs from our clock
// and a second one has to confirm it, and when the last request was less than a
// second ago. It does not fail because of the size of a known offset.
func (c *Client) CheckClock(ctx context.Context) error {
	if !c.clock.state().due {
		return nil
	}
	check, wait := c.joinClockCheck()
	if wait > 0 {
		return c.clockError("the time was requested less than a second ago", &RetryAfterError{wait})
	}
	select {
	case <-check.done:
	case <-ctx.Done():
		return c.clockError("", ctx.Err())
	}
	if check.err != nil {
		return c.clockError("", check.err)
	}
	if c.clock.state().due {
		return c.clockError("the response and our clock differ, and a second response has to confirm it", &RetryAfterError{c.clockCheckEvery()})
	}
	return nil
}

// clockCheckEvery returns the shortest time between two requests of CheckClock.
func (c *Client) clockCheckEvery() time.Duration { return c.pace.Of(clockCheckInterval, minWait) }

func (c *Client) clockError(text string, cause error) error {
	return &callError{kind: fiscal.ErrUnavailable, service: c.auth.name, text: text, cause: cause}
}

// A clockCheck is a request of CheckClock. It does not end when one of the callers
// that wait for it is cancelled.
type clockCheck struct {
	startedAt time.Duration // on the monotonic clock
	done      chan struct{}
	err       error
}

func (k *clockCheck) isRunning() bool {
	select {
	case <-k.done:
		return false
	default:
		return true
	}
}

// joinClockCheck returns the check that is under way, or starts one. It returns
// how long to wait instead when the last check started less than a second ago.
func (c *Client) joinClockCheck() (*clockCheck, time.Duration) {
	at := c.clock.read().monotonic
	c.checkMu.Lock()
	defer c.checkMu.Unlock()
	if last := c.lastCheck; last != nil {
		if last.isRunning() {
			return last, 0
		}
		if left := last.startedAt + c.clockCheckEvery() - at; left > 0 {
			return nil, left
		}
	}
	check := &clockCheck{startedAt: at, done: make(chan struct{}), err: context.Canceled}
	c.lastCheck = check
	started := c.background.start(func(ctx context.Context) {
		defer close(check.done)
		res, err := c.requestSeed(ctx)
		if err == nil && res.date.IsZero() {
			err = errors.New("the response has no Date header")
		}
		check.err = err
	})
	if !started {
		close(check.done)
	}
	return check, 0
}
