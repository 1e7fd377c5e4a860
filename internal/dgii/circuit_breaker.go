package dgii

import (
	"sync"
	"time"
)

const (
	// failureThreshold is how many failures in a row open a circuit.
	failureThreshold = 5
	// probeInterval is the time between two probes of an open circuit.
	probeInterval = 10 * time.Second
	// maxPause bounds how long one 429 keeps a service from being called: a
	// proxy between the authority and us can send the header too.
	maxPause = 5 * time.Minute
)

// A circuitBreaker stops calls to a service that fails. It is closed at first and
// allows every call. After failureThreshold failures in a row it opens and allows
// none. Every probeEvery it is half-open and allows one call, the probe. A probe
// that succeeds closes it.
//
// Besides, it pauses all calls when the service asks the client to wait.
type circuitBreaker struct {
	now        func() time.Time
	probeEvery time.Duration
	// onChange is called when the circuit opens or closes.
	onChange func(open bool)

	mu          sync.Mutex
	failures    int       // in a row
	openSince   time.Time // zero while closed
	nextProbe   time.Time
	probing     bool      // a probe is under way
	pausedUntil time.Time // the service asked to wait
}

// allow asks for permission to make one call. The caller must report the result
// with record. It returns whether the call is a probe, or how long to wait when
// the call is not allowed.
func (b *circuitBreaker) allow() (probe bool, wait *RetryAfterError) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if wait := b.waitTime(); wait != nil {
		return false, wait
	}
	if b.openSince.IsZero() {
		return false, nil
	}
	b.probing, b.nextProbe = true, b.now().Add(b.probeEvery)
	return true, nil
}

// check returns how long a call would have to wait, or nil. It reserves nothing.
func (b *circuitBreaker) check() *RetryAfterError {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waitTime()
}

// waitTime returns how long calls are not allowed, or nil. The caller holds the
// lock.
func (b *circuitBreaker) waitTime() *RetryAfterError {
	now := b.now()
	if left := b.pausedUntil.Sub(now); left > 0 && left <= maxPause {
		return &RetryAfterError{left}
	}
	if b.openSince.IsZero() {
		return nil
	}
	left := b.nextProbe.Sub(now)
	if left > b.probeEvery { // the clock was set back
		left = 0
	}
	if b.probing || left > 0 {
		return &RetryAfterError{max(left, b.probeEvery/10)}
	}
	return nil
}

// A callResult is the result of a call as the circuit breaker counts it.
type callResult int

const (
	ignored   callResult = iota // says nothing about the service, for example when the caller cancelled
	succeeded                   // the service works
	failed                      // the service does not work
)

// record reports the result of a call that allow permitted.
func (b *circuitBreaker) record(result callResult, probe bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if probe {
		b.probing = false
	}
	switch result {
	case ignored:
		if probe {
			b.nextProbe = b.now() // the next call is the probe instead
		}
	case succeeded:
		b.failures = 0
		if !b.openSince.IsZero() {
			b.openSince = time.Time{}
			b.onChange(false)
		}
	case failed:
		b.failures++
		if b.failures >= failureThreshold && b.openSince.IsZero() {
			b.openSince = b.now()
			b.nextProbe = b.openSince.Add(b.probeEvery)
			b.onChange(true)
		}
	}
}

// pause allows no call for d, at most maxPause.
func (b *circuitBreaker) pause(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pausedUntil = b.now().Add(min(d, maxPause))
}

// isOpen reports whether the circuit is open.
func (b *circuitBreaker) isOpen() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.openSince.IsZero()
}
