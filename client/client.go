// Package client is the Go client of the fiscalhub public API, version 1. It needs only
// the standard library.
//
// # Retries
//
// The client repeats a request only where that is safe: when no answer arrived, when the
// service asks for less traffic (429) and when it is unavailable (503). A repeated request
// has the same bytes and the same idempotency key. The client waits at least as long as
// Retry-After says, and not beyond the deadline of the context.
//
// # Idempotency keys
//
// Every creation has an idempotency key. Store the key before the first request: after a
// crash you can send the same request with the same key, and get the first answer without
// a second invoice. Choose the key yourself, or let the client make it with WithNewKey.
//
// # Errors
//
// A refusal of the API is an *Error with a code, the request id and a detail for each
// problem. A lost connection is a *ConnectionError.
//
// # Outcomes
//
// A created invoice is stored, not accepted. WaitForOutcome waits for the verdict of the
// tax authority; FollowEvents reads the events of all invoices; VerifyWebhook checks and
// decodes an event that the service has sent to your server.
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
	defaultTimeout  = 60 * time.Second // of one attempt; the service answers sooner
)

// Client sends requests for one taxpayer with one credential. It is safe for
// concurrent use, and never prints its credential.
type Client struct {
	base     string  // address of the taxpayer, without a slash at its end
	bearer   *string // behind a pointer: fmt prints an address, not the credential
	http     *http.Client
	attempts int
	language string // header Accept-Language
	wait     waitFunc
}

// Option changes how a Client works.
type Option func(*Client)

// WithHTTPClient sends requests through h, whose Timeout bounds one attempt.
// The client does not follow redirects, whatever h says: the API has none, and the
// credential must not reach another host.
func WithHTTPClient(h *http.Client) Option {
	return func(c *Client) { c.http = h }
}

// WithAttempts sets how many times the client sends one request at most; 1 turns
// retries off. The default is 5.
func WithAttempts(n int) Option {
	return func(c *Client) { c.attempts = n }
}

// WithLanguage sets the language of the messages for people: "es" for Spanish, "en" for
// English, which is the default. Codes, fields and statuses do not depend on it.
func WithLanguage(language string) Option {
	return func(c *Client) { c.language = language }
}

// New returns a Client of the service at baseURL for the taxpayer of the credential
// apiKey. It fails when an argument cannot be valid, and sends nothing.
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
		return nil, errors.New("client: the API key is empty or has invalid characters")
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
		return nil, errors.New("client: the HTTP client must not be nil, and the attempts must be 1 or more")
	}
	if strings.ContainsFunc(c.language, func(r rune) bool { return r < ' ' || r > '~' }) {
		return nil, fmt.Errorf("client: the language %q must be a value of Accept-Language, such as es", c.language)
	}
	h := *c.http
	h.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.http = &h
	return c, nil
}

// String returns the address of the service, without the credential.
func (c *Client) String() string { return "client of " + c.base }

// Meta is what an answer says about itself: ids, cursors, and whether it was replayed.
type Meta struct {
	// RequestID identifies this request. Log it: support needs it.
	RequestID string
	// OriginRequestID identifies the answer: answers with the same one have the same
	// body. It differs from RequestID when the answer was replayed.
	OriginRequestID string
	// IdempotencyKey is the key of a creation.
	IdempotencyKey string
	// Location is the path of the created object.
	Location string
	// Replayed reports that the answer is the one of an earlier request with the
	// same idempotency key and body.
	Replayed bool
	// NextCursor is the cursor of the next page. It is empty on the last page of a
	// list. In the feed of events it is never empty: later events follow it.
	NextCursor string
	// HasMore reports that the feed has more events already.
	HasMore bool
}

// Response is an answer of the API.
type Response[T any] struct {
	Data T
	Meta Meta
}

// visible reports whether text is printable ASCII without spaces.
func visible(text string) bool {
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// isUUID reports whether text is a UUID. Other texts could change the path of a
// request.
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
