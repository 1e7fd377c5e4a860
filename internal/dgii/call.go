package dgii

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// A call is one call to a service of the authority: a look-up or a submission.
type call struct {
	query    string           // of a look-up
	shipment *fiscal.Shipment // of a submission
	// parse reads the response. It returns a *callError when the response is not
	// the expected one.
	parse func(*response) error
}

// do makes a call to a service. It waits for a slot first.
func (c *Client) do(ctx context.Context, id *xmlsig.Identity, s *service, q call) error {
	p, err := c.newPermit(ctx, id, s, q.shipment != nil)
	if err != nil {
		return err
	}
	return c.doWithPermit(ctx, id, p, q)
}

var errUnauthorised = errors.New("401")

// doWithPermit makes a call and ends its permit. When the service refuses the
// token (401), it gets a new token and makes the call a second time: a service
// that answers 401 has not read the document.
func (c *Client) doWithPermit(ctx context.Context, id *xmlsig.Identity, p *permit, q call) error {
	s, key := p.service, tokenKey{signer: fingerprint(id)}
	scope := serviceScope(key.signer, s)
	for retried := false; ; retried = true {
		err := c.send(ctx, p, q)
		if !errors.Is(err, errUnauthorised) {
			if err == nil {
				c.refusals.clear(scope)
			}
			return err
		}
		c.tokens.invalidate(key, p.token)
		if retried {
			// The service refuses a new token too, so another one would not help.
			return c.addRefusal(s, scope, "the service refuses a new token", false,
				"A service of the tax authority refuses a new token. Calls of this signer wait and are tried again.", "service", s.name, "signer", id)
		}
		if !c.retries.takeRetry() {
			return s.errorf(fiscal.ErrNotReceived, "the service refuses the token, and the retry budget is used up")
		}
		if p, err = c.waitForPermit(ctx, id, s, q.shipment != nil); err != nil {
			return err
		}
	}
}

// send makes the HTTP exchange of a call and ends the permit.
func (c *Client) send(ctx context.Context, p *permit, q call) error {
	s := p.service
	result := ignored
	defer func() { p.end(result) }()
	r, err := c.newRequest(p, q)
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
		return &callError{kind: kind, service: s.name, cause: err, outage: result == failed}
	}
	c.clock.observe(res.date, res.receivedAt)
	switch res.status {
	case http.StatusUnauthorized:
		result = succeeded
		return errUnauthorised
	case http.StatusTooManyRequests:
		return c.rateLimited(s, res)
	}
	err = q.parse(res)
	result = resultOf(err)
	return err
}

// newRequest returns the HTTP request of a call.
func (c *Client) newRequest(p *permit, q call) (request, error) {
	r := request{
		service: p.service.name, transport: c.authorityTransport, url: p.service.base, token: p.token.value,
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
	return &callError{kind: fiscal.ErrNotReceived, service: s.name, text: "HTTP 429", cause: &RetryAfterError{wait}, neutral: true, uncalled: true}
}
