package dgii

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// A call is one call to a service of the authority: a look-up or a submission.
type call struct {
	service  *service
	query    string           // of a look-up
	shipment *fiscal.Shipment // of a submission
	// parse reads the response. It returns a *callError when the response is not
	// the expected one.
	parse func(*response) error
}

// do makes a call. When the service refuses the token (401), it gets a new token
// and makes the call a second time: a service that answers 401 has not read the
// document.
func (c *Client) do(ctx context.Context, id *xmlsig.Identity, q call) error {
	s := q.service
	key := tokenKey{"", fingerprint(id)}
	scope := refusalKey{key.signer, "service " + s.name}
	c.retries.countCall()
	if wait := s.breaker.check(); wait != nil {
		return s.openError(wait)
	}
	if refusal, wait := c.refusals.check(scope); wait != nil {
		return c.refusedError(s, refusal, wait)
	}
	for retried := false; ; retried = true {
		tok, err := c.attempt(ctx, id, key, q)
		if !errors.Is(err, errUnauthorised) {
			if err == nil {
				c.refusals.clear(scope)
			}
			return err
		}
		c.tokens.invalidate(key, tok)
		if retried {
			// The service refuses a new token too, so another one would not help.
			c.log.Warn("a service of the tax authority refuses a new token: calls of this signer wait and will be tried again", "service", s.name, "signer", id)
			return c.addRefusal(s, scope, "the service refuses a new token", false)
		}
		if !c.retries.takeRetry() {
			return s.errorf(fiscal.ErrNotReceived, "the service refuses the token, and the retry budget is used up")
		}
	}
}

var errUnauthorised = errors.New("401")

// attempt makes a call once. It checks the token again after it has a slot: many
// calls may wait for slots, and none should use a token that the service has
// refused in the meantime.
func (c *Client) attempt(ctx context.Context, id *xmlsig.Identity, key tokenKey, q call) (token, error) {
	for {
		tok, err := c.token(ctx, id)
		if err != nil {
			return token{}, err
		}
		release, err := c.slots.acquire(ctx, q.service.origin)
		if err != nil {
			return token{}, &callError{kind: fiscal.ErrNotReceived, service: q.service.name, text: "no free slot", cause: err}
		}
		if !c.tokens.isCurrent(key, tok) {
			release()
			continue
		}
		err = c.send(ctx, tok, q)
		release()
		return tok, err
	}
}

// send makes the HTTP exchange of a call if the circuit breaker allows it, and
// reports the result to the circuit breaker.
func (c *Client) send(ctx context.Context, tok token, q call) error {
	s := q.service
	probe, wait := s.breaker.allow()
	if wait != nil {
		return s.openError(wait)
	}
	result := ignored
	defer func() { s.breaker.record(result, probe) }()
	if probe && q.shipment != nil {
		// The probe of a submission requests a seed first: if it fails, the
		// document has not been sent and its outcome is not in doubt.
		if err := c.probeSeed(ctx, s); err != nil {
			if ctx.Err() == nil {
				result = failed
			}
			return &callError{kind: fiscal.ErrNotReceived, service: s.name, text: "the tax authority cannot be reached", cause: err}
		}
	}
	r, err := c.newRequest(tok, q)
	if err != nil {
		return &callError{kind: fiscal.ErrNotReceived, service: s.name, cause: err}
	}
	res, err := c.exchange(ctx, r)
	if err != nil {
		if ctx.Err() == nil {
			result = failed
		}
		kind := fiscal.ErrInconclusive
		if e, ok := errors.AsType[*noResponseError](err); ok && e.notSent {
			kind = fiscal.ErrNotReceived
		}
		return &callError{kind: kind, service: s.name, cause: err}
	}
	c.setClockOffset(res)
	switch res.status {
	case http.StatusUnauthorized:
		result = succeeded
		return errUnauthorised
	case http.StatusTooManyRequests:
		return c.rateLimited(s, res)
	}
	err = q.parse(res)
	result = succeeded
	if e, ok := errors.AsType[*callError](err); ok && e.outage {
		result = failed
	}
	return err
}

// newRequest returns the HTTP request of a call.
func (c *Client) newRequest(tok token, q call) (request, error) {
	r := request{
		service: q.service.name, transport: c.authorityTransport, url: q.service.base, token: tok.value,
		accept: "application/json", maxResponse: maxAnswerResponse, timeout: c.timeouts.Total,
	}
	if q.query != "" {
		r.url += "?" + q.query
	}
	if q.shipment == nil {
		return r, nil
	}
	var err error
	r.upload, err = newUpload(q.shipment.RNC+q.shipment.ENCF+".xml", q.shipment.XML)
	return r, err
}

// probeSeed requests a seed to learn whether the authority can be reached. A seed
// needs no token and changes nothing.
func (c *Client) probeSeed(ctx context.Context, s *service) error {
	if s.origin != c.auth.origin {
		release, err := c.slots.acquire(ctx, c.auth.origin)
		if err != nil {
			return err
		}
		defer release()
	}
	res, err := c.exchange(ctx, request{
		service: c.auth.name, transport: c.authorityTransport, url: c.auth.base + "semilla",
		accept: "application/xml, text/xml", maxResponse: maxSeedResponse, timeout: c.timeouts.Total,
	})
	if err != nil {
		return err
	}
	if res.status != http.StatusOK {
		return fmt.Errorf("HTTP %d", res.status)
	}
	return nil
}

// rateLimited handles HTTP 429: it pauses the service for the time that the
// response asks for.
func (c *Client) rateLimited(s *service, res *response) error {
	wait := c.pace.Scale(probeInterval)
	if n, err := strconv.Atoi(res.retryAfter); err == nil && n >= 0 {
		wait = time.Duration(min(n, int(time.Hour/time.Second))) * time.Second
	} else if at, err := http.ParseTime(res.retryAfter); err == nil {
		from := res.date
		if from.IsZero() {
			from = c.now()
		}
		wait = min(max(at.Sub(from), 0), time.Hour)
	}
	s.breaker.pause(wait)
	return &callError{kind: fiscal.ErrNotReceived, service: s.name, text: "HTTP 429", cause: &RetryAfterError{wait}}
}
