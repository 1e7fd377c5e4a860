package dgii

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/netguard"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// A receiverClient calls one buyer's receiver.
type receiverClient struct {
	client    *Client
	base      string
	origin    string
	transport *http.Transport
}

// newReceiverClient checks an address of the directory. It fails when the address
// must not be called: it has to be public, unless it is the allowed origin.
func (c *Client) newReceiverClient(base string) (receiverClient, error) {
	if origin, err := originOf(base); err == nil && origin == c.allowedOrigin {
		return receiverClient{c, strings.TrimRight(base, "/"), origin, c.authorityTransport}, nil
	}
	u, err := c.guard.URL(base)
	if err != nil {
		return receiverClient{}, err
	}
	return receiverClient{c, strings.TrimRight(u.String(), "/"), "https://" + u.Host + ":443", c.receiverTransport}, nil
}

// send sends one request. The URL of the request is relative to the base.
func (r receiverClient) send(ctx context.Context, req request) (*response, error) {
	c := r.client
	ctx, cancel := context.WithTimeout(ctx, c.timeouts.Delivery)
	defer cancel()
	release, err := c.slots.acquire(ctx, r.origin)
	if err != nil {
		return nil, err
	}
	defer release()
	req.service, req.transport, req.url, req.timeout = receiverService, r.transport, r.base+req.url, c.timeouts.Delivery
	res, err := c.exchange(ctx, req)
	if err != nil {
		return nil, &networkError{netguard.Class(err), err}
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

// receiverToken returns a token for a receiver, or an empty one when the receiver
// lists no authentication service.
func (c *Client) receiverToken(ctx context.Context, id *xmlsig.Identity, key tokenKey) (token, error) {
	if key.url == "" {
		return token{}, nil
	}
	client, err := c.newReceiverClient(key.url)
	if err != nil {
		return token{}, err
	}
	return c.tokens.get(ctx, key, 2*c.timeouts.Delivery, func(ctx context.Context) (token, error) {
		a := authenticator{
			seedURL: "/fe/autenticacion/api/semilla", validationURL: "/fe/autenticacion/api/validacioncertificado",
			send: func(r request) (*response, error) { return client.send(ctx, r) },
		}
		tok, res, err := a.authenticate(id, c.now)
		if err != nil && res != nil {
			err = fmt.Errorf("status_%d: %w", res.status, err)
		}
		return tok, err
	})
}
