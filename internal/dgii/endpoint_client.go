package dgii

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/netguard"
)

// An endpointClient calls one address of a buyer's receiver.
type endpointClient struct {
	client    *Client
	base      string
	key       string // of the receiver in the pool
	transport *http.Transport
}

// newEndpointClient checks an address of the directory. It fails when the address
// must not be called: it has to be public, unless it is the allowed origin.
//
// Addresses of one origin share a circuit breaker and slots. Only at the allowed
// origin every address has its own, because all receivers of a simulator are
// there.
func (c *Client) newEndpointClient(base string) (endpointClient, error) {
	if origin, err := originOf(base); err == nil && origin == c.allowedOrigin {
		base = strings.TrimRight(base, "/")
		return endpointClient{c, base, base, c.authorityTransport}, nil
	}
	u, err := c.guard.URL(base)
	if err != nil {
		return endpointClient{}, err
	}
	return endpointClient{c, strings.TrimRight(u.String(), "/"), "https://" + u.Host + ":443", c.endpointTransport}, nil
}

// check returns how long the receiver must not be called, or nil.
func (r endpointClient) check() *RetryAfterError {
	to, leave := r.client.endpoints.join(r.key)
	defer leave()
	return to.breaker.check()
}

// send sends one request. The URL of the request is relative to the base. The time
// of the exchange starts when it has a slot.
func (r endpointClient) send(ctx context.Context, req request) (*response, error) {
	c := r.client
	to, leave := c.endpoints.join(r.key)
	defer leave()
	free, err := to.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer free()
	probe, wait := to.breaker.allow()
	if wait != nil {
		return nil, wait
	}
	result := ignored
	defer func() { to.breaker.record(result, probe) }()
	req.service, req.transport, req.url, req.timeout = endpointService, r.transport, r.base+req.url, c.timeouts.Delivery
	res, err := c.exchange(ctx, req)
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, netguard.ErrAddress) {
			result = failed
		}
		return nil, &networkError{netguard.Class(err), err}
	}
	result = succeeded
	switch res.status {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		result = failed
	}
	return res, nil
}

// A networkError prints the class of a network error instead of its text, which
// may contain our own addresses. The error itself can be unwrapped.
type networkError struct {
	class string
	cause error
}

func (e *networkError) Error() string { return e.class }
func (e *networkError) Unwrap() error { return e.cause }
