// Package client is the Go client of the fiscalhub public API, version 1. It
// repeats what may be repeated, with the same idempotency key and the same
// body, and tells a refusal from an outage.
package client

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	defaultAttempts = 5
	defaultTimeout  = 60 * time.Second // of one attempt; the service answers well before
)

// Client speaks for one taxpayer with one credential. It is safe for use by
// several goroutines, and never prints its credential.
type Client struct {
	base     string  // address of the taxpayer, without a slash at its end
	bearer   *string // behind a pointer: fmt prints an address, not the credential
	http     *http.Client
	attempts int
	wait     waitFunc
}

// Option changes how a Client works.
type Option func(*Client)

// WithHTTPClient sends requests through h, whose Timeout bounds one attempt.
// Redirects are not followed whatever h says: the API makes none, and a
// credential should not travel.
func WithHTTPClient(h *http.Client) Option {
	return func(c *Client) { c.http = h }
}

// WithAttempts sets how often one request is sent at most; 1 turns retries
// off. The default is 5.
func WithAttempts(n int) Option {
	return func(c *Client) { c.attempts = n }
}

// New returns a Client of the service at baseURL, for the taxpayer to which
// the credential apiKey is bound.
func New(baseURL, apiKey, taxpayerID string, opts ...Option) (*Client, error) {
	u, err := url.Parse(baseURL)
	if err != nil {
		return nil, fmt.Errorf("client: base URL: %w", err)
	}
	if (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" ||
		u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("client: the base URL must be http or https, with a host and no user, query or fragment")
	}
	if apiKey == "" || !visible(apiKey) {
		return nil, errors.New("client: the API key is empty or has characters that no key has")
	}
	if !isUUID(taxpayerID) {
		return nil, fmt.Errorf("client: taxpayer id %q is not a UUID", taxpayerID)
	}
	bearer := "Bearer " + apiKey
	c := &Client{
		base:     strings.TrimRight(u.String(), "/") + "/v1/taxpayers/" + taxpayerID,
		bearer:   &bearer,
		http:     &http.Client{Timeout: defaultTimeout},
		attempts: defaultAttempts,
		wait:     sleep,
	}
	for _, opt := range opts {
		opt(c)
	}
	if c.http == nil || c.attempts < 1 {
		return nil, errors.New("client: an HTTP client and at least one attempt are needed")
	}
	h := *c.http
	h.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.http = &h
	return c, nil
}

// String names the address the client speaks to, and not its credential.
func (c *Client) String() string { return "client of " + c.base }

// Meta is what an answer says beside its data.
type Meta struct {
	// RequestID names this exchange. Keep it: support asks for it.
	RequestID string
	// OriginRequestID names the exchange that made the answer. It differs from
	// RequestID when the answer was replayed.
	OriginRequestID string
	// Location is the path of what was created.
	Location string
	// Replayed says that the answer is that of an earlier request with the
	// same idempotency key and body.
	Replayed bool
	// NextCursor leads to the next page of a list; it is empty on the last. That
	// of events is never empty: it leads to those to come.
	NextCursor string
	// HasMore says that there are more events already.
	HasMore bool
}

// Response is an answer of the API with its data.
type Response[T any] struct {
	Data T
	Meta Meta
}

// visible says whether text is printable ASCII without blanks.
func visible(text string) bool {
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// isUUID keeps an id from meaning another path.
func isUUID(text string) bool {
	if len(text) != 36 {
		return false
	}
	for i := range len(text) {
		c := text[i]
		switch {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return false
			}
		case c >= '0' && c <= '9', c >= 'a' && c <= 'f', c >= 'A' && c <= 'F':
		default:
			return false
		}
	}
	return true
}
