package dgii

import (
	"context"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// A permit allows one call to a service: it holds a slot of the host, a token, and
// the permission of the circuit breaker. It must be ended.
type permit struct {
	client   *Client
	service  *service
	token    token
	probe    bool // the call is the probe of an open circuit
	freeSlot func()
}

// end reports the result of the call and gives the slot back.
func (p *permit) end(result callResult) {
	p.client.record(p.service, result, p.probe)
	p.freeSlot()
}

// serviceScope is the scope of refusals of a signer by one service.
func serviceScope(signer string, s *service) refusalKey {
	return refusalKey{signer, "service " + s.name}
}

// newPermit asks for permission to make a call. It fails at once when the circuit
// is open or the service refuses the signer. Otherwise it waits.
func (c *Client) newPermit(ctx context.Context, id *xmlsig.Identity, s *service, submission bool) (*permit, error) {
	c.retries.countCall()
	if wait := s.breaker.check(); wait != nil {
		return nil, s.openError(wait)
	}
	if refusal, wait := c.refusals.check(serviceScope(fingerprint(id), s)); wait != nil {
		return nil, c.refusedError(s, refusal, wait)
	}
	return c.waitForPermit(ctx, id, s, submission)
}

// waitForPermit waits for a token and a slot until ctx ends, and asks the circuit
// breaker. The token comes first: fetching one needs a slot too.
func (c *Client) waitForPermit(ctx context.Context, id *xmlsig.Identity, s *service, submission bool) (*permit, error) {
	key := tokenKey{signer: fingerprint(id)}
	for {
		tok, err := c.token(ctx, id)
		if err != nil {
			return nil, err
		}
		free, err := s.acquireSlot(ctx)
		if err != nil {
			return nil, err
		}
		// Many calls may wait for slots, and none should use a token that the
		// service has refused in the meantime.
		if !c.tokens.isCurrent(key, tok) {
			free()
			continue
		}
		probe, wait := s.breaker.allow()
		if wait != nil {
			free()
			return nil, s.openError(wait)
		}
		p := &permit{c, s, tok, probe, free}
		if probe && submission {
			if err := c.checkReachable(ctx, p); err != nil {
				return nil, err
			}
		}
		return p, nil
	}
}

// checkReachable requests a seed before a submission probes a service. If it fails,
// it ends the permit: the document has not been sent and its outcome is not in
// doubt.
func (c *Client) checkReachable(ctx context.Context, p *permit) error {
	err := c.probeSeed(ctx, p.service)
	if err == nil {
		return nil
	}
	result := failed
	if ctx.Err() != nil {
		result = ignored
	}
	p.end(result)
	wait := p.service.breaker.check()
	if wait == nil {
		wait = &RetryAfterError{p.service.breaker.probeEvery}
	}
	return &callError{kind: fiscal.ErrNotReceived, service: p.service.name, text: "the tax authority cannot be reached: " + err.Error(), cause: wait}
}
