package dgii

import (
	"sync"
	"time"
)

const (
	breakerFailures = 5
	breakerWait     = 10 * time.Second
	// holdMost bounds how long one answer may keep a service from being
	// called: the header may come from anybody between the authority and us.
	holdMost = 5 * time.Minute
)

// A breaker is the circuit of one service. It opens after a row of failures and
// then lets one call through per wait, until one succeeds.
type breaker struct {
	now  func() time.Time
	wait time.Duration
	// turned is told when the circuit opens or closes.
	turned func(open bool)

	mu       sync.Mutex
	failures int
	opened   time.Time // zero while closed
	next     time.Time // of the next probe
	probing  bool
	held     time.Time // until when the authority asked to wait
}

// enter asks for one call, which must be reported. It returns whether the call
// is a probe, or how long to wait instead.
func (b *breaker) enter() (probe bool, wait *RetryAfter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if wait := b.closedFor(); wait != nil {
		return false, wait
	}
	if b.opened.IsZero() {
		return false, nil
	}
	b.probing, b.next = true, b.now().Add(b.wait)
	return true, nil
}

// peek tells whether a call would have to wait, and asks for none.
func (b *breaker) peek() *RetryAfter {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closedFor()
}

func (b *breaker) closedFor() *RetryAfter {
	now := b.now()
	if left := b.held.Sub(now); left > 0 && left <= holdMost {
		return &RetryAfter{left}
	}
	if b.opened.IsZero() {
		return nil
	}
	left := b.next.Sub(now)
	if left > b.wait { // the clock was set back
		left = 0
	}
	if b.probing || left > 0 {
		return &RetryAfter{max(left, b.wait/10)}
	}
	return nil
}

// Outcomes of a call as its circuit sees them.
type outcome int

const (
	neutral outcome = iota // nothing was learnt, such as when the caller left
	worked
	failed
)

// report ends a call.
func (b *breaker) report(o outcome, probe bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if probe {
		b.probing = false
	}
	switch o {
	case neutral:
		if probe {
			b.next = b.now() // the probe has not been made
		}
	case worked:
		b.failures = 0
		if !b.opened.IsZero() {
			b.opened = time.Time{}
			b.turned(false)
		}
	case failed:
		b.failures++
		if b.failures >= breakerFailures && b.opened.IsZero() {
			b.opened = b.now()
			b.next = b.opened.Add(b.wait)
			b.turned(true)
		}
	}
}

// hold keeps everybody from calling for a while.
func (b *breaker) hold(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = b.now().Add(min(d, holdMost))
}

func (b *breaker) since() (time.Time, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.opened, !b.opened.IsZero()
}
