package dgii

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// An outage records when the authority answered last, and since when it has not.
// All of its services count alike.
type outage struct {
	mu         sync.Mutex
	lastAnswer time.Time // zero before the first answer
	since      time.Time // the first failure after the last answer; zero without one
	probing    bool      // the goroutine that probes is running
}

// record reports the result of a call to the circuit breaker of its service and to
// the outage. While the authority is down, a goroutine probes it.
func (c *Client) record(s *service, result callResult, probe bool) {
	s.breaker.record(result, probe)
	switch result {
	case succeeded:
		c.recordAnswer()
	case failed:
		c.recordFailure()
	case ignored:
	}
}

// recordAnswer ends the outage: a service of the authority has answered.
func (c *Client) recordAnswer() {
	c.outage.mu.Lock()
	defer c.outage.mu.Unlock()
	c.outage.lastAnswer, c.outage.since = c.now(), time.Time{}
}

// recordFailure begins an outage, unless there is one, and starts to probe when the
// authority is down.
func (c *Client) recordFailure() {
	c.outage.mu.Lock()
	defer c.outage.mu.Unlock()
	if c.outage.since.IsZero() {
		c.outage.since = c.now()
	}
	if !c.outage.probing && c.isDown() {
		c.outage.probing = c.background.start(c.probeUntilAnswer)
	}
}

// isDown reports whether a circuit is open and no service has answered since the
// failures began. The caller holds the lock of the outage.
func (c *Client) isDown() bool {
	if c.outage.since.IsZero() {
		return false
	}
	for _, s := range c.services {
		if s.breaker.isOpen() {
			return true
		}
	}
	return false
}

// Down reports whether the authority is out of reach, and since when: a circuit is
// open, and no service has answered since that instant. An open circuit of one
// service is no outage while other services answer. While the authority is down,
// the client requests a seed at intervals, so that Down becomes false without a
// document to send.
func (c *Client) Down() (since time.Time, down bool) {
	c.outage.mu.Lock()
	defer c.outage.mu.Unlock()
	if !c.isDown() {
		return time.Time{}, false
	}
	return c.outage.since, true
}

// Failing reports whether calls fail, and since when: no service has answered since
// that instant. One failed call is enough; Probe finds out whether the authority answers.
func (c *Client) Failing() (since time.Time, failing bool) {
	c.outage.mu.Lock()
	defer c.outage.mu.Unlock()
	return c.outage.since, !c.outage.since.IsZero()
}

// LastAnswer returns when a service of the authority last answered this process.
// An error page and a lost response are no answers. ok is false before the first
// answer.
func (c *Client) LastAnswer() (at time.Time, ok bool) {
	c.outage.mu.Lock()
	defer c.outage.mu.Unlock()
	return c.outage.lastAnswer, !c.outage.lastAnswer.IsZero()
}

// Probe requests a seed, whatever the circuits say, so that Down and LastAnswer say
// whether the authority answers now. It fails when there is no answer.
func (c *Client) Probe(ctx context.Context) error {
	res, err := c.requestSeed(ctx)
	if err != nil {
		return err
	}
	return res.checkSeed()
}

// probeUntilAnswer requests a seed at the interval of the circuit breakers until
// the authority is no longer down or ctx ends. It closes no circuit: a call to the
// service itself does that.
func (c *Client) probeUntilAnswer(ctx context.Context) {
	tick := time.NewTicker(max(c.pace.Scale(probeInterval), time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		_, _ = c.requestSeed(ctx) // an answer ends the outage; after an error the next tick tries again
		if c.stopProbing() {
			return
		}
	}
}

// stopProbing reports whether the goroutine that probes must end.
func (c *Client) stopProbing() bool {
	c.outage.mu.Lock()
	defer c.outage.mu.Unlock()
	c.outage.probing = c.isDown()
	return !c.outage.probing
}

// requestSeed waits for a slot and requests a seed, whatever the circuit says. It
// is the cheapest call to the authority: it needs no token and changes nothing.
// The error says that there is no response; the response may be any.
func (c *Client) requestSeed(ctx context.Context) (*response, error) {
	free, err := c.auth.slots.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer free()
	return c.exchangeSeed(ctx)
}

// exchangeSeed requests a seed. The caller holds a slot of the host. A failure
// counts for the circuit of the authentication: before the first document is
// signed, no other call shows that the authority is down.
func (c *Client) exchangeSeed(ctx context.Context) (*response, error) {
	res, err := c.exchange(ctx, request{
		service: c.auth.name, transport: c.authorityTransport, url: c.auth.base + "semilla",
		accept: "application/xml, text/xml", maxResponse: maxSeedResponse, timeout: c.timeouts.Total,
	})
	if err != nil {
		if ctx.Err() == nil {
			c.record(c.auth, failed, false)
		}
		return nil, err
	}
	c.clock.observe(res.date, res.receivedAt)
	switch {
	case res.checkSeed() == nil:
		c.recordAnswer()
	case res.status != http.StatusTooManyRequests:
		c.record(c.auth, failed, false)
	}
	return res, nil
}

// checkSeed returns an error when a response is not a seed.
func (r *response) checkSeed() error {
	switch {
	case r.status != http.StatusOK:
		return fmt.Errorf("HTTP %d", r.status)
	case r.bodyErr != nil:
		return r.bodyErr
	case !bytes.Contains(r.body, []byte("SemillaModel")):
		return errors.New("the response is not a seed")
	}
	return nil
}

// probeSeed requests a seed to learn whether the authority can be reached. The
// caller holds a slot of the service.
func (c *Client) probeSeed(ctx context.Context, s *service) error {
	request := c.requestSeed
	if s.slots == c.auth.slots {
		request = c.exchangeSeed
	}
	res, err := request(ctx)
	if err != nil {
		return err
	}
	return res.checkSeed()
}
