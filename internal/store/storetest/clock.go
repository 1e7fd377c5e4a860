package storetest

import (
	"sync/atomic"
	"time"
)

// A Clock is a clock that a test sets.
type Clock struct{ micros atomic.Int64 }

// NewClock returns a clock that shows noon UTC of 15 November 2026.
func NewClock() *Clock {
	c := &Clock{}
	c.micros.Store(time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC).UnixMicro())
	return c
}

// Now returns the time of the clock.
func (c *Clock) Now() time.Time { return time.UnixMicro(c.micros.Load()).UTC() }

// Advance moves the clock; a negative d moves it back.
func (c *Clock) Advance(d time.Duration) { c.micros.Add(d.Microseconds()) }

// Set sets the clock to a time.
func (c *Clock) Set(t time.Time) { c.micros.Store(t.UnixMicro()) }
