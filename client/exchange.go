package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"time"
)

const (
	maxRequest = 1 << 20  // the API's own limit
	maxJSON    = 8 << 20  // a full page of invoices is much smaller
	maxXML     = 16 << 20 // a document of 1000 lines is under 1 MiB
	maxPDF     = 64 << 20
	maxError   = 1 << 20

	firstWait = 200 * time.Millisecond
	lastWait  = 10 * time.Second
	// A service that asks for a longer wait will not be back in time for the caller.
	maxRetryAfter = 2 * time.Minute
)

// waitFunc waits for d. It returns the error of ctx when ctx ends first.
type waitFunc func(ctx context.Context, d time.Duration) error

// call is one request of the API. The client may send it several times.
type call struct {
	method string
	path   string // relative to the taxpayer
	query  url.Values
	body   []byte
	key    string // idempotency key
	want   int    // status of success
	limit  int64  // of the answer, in bytes
	prefer string // header Prefer
	once   bool   // the request has another effect when it is repeated

	scenario Scenario               // header Sandbox-Scenario
	onKey    func(key string) error // gets the key that the client makes
}

// answer is a complete HTTP answer.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// meta returns the metadata in the headers.
func (a answer) meta() Meta {
	id := a.header.Get("X-Request-Id")
	return Meta{
		RequestID:       id,
		OriginRequestID: id,
		Location:        a.header.Get("Location"),
		Replayed:        a.header.Get("Idempotency-Replayed") == "true",
	}
}

// fetch sends a call and decodes the data of its envelope.
func fetch[T any](ctx context.Context, c *Client, l call) (Response[T], error) {
	l.limit = maxJSON
	a, err := c.send(ctx, l)
	if err != nil {
		return Response[T]{}, err
	}
	var envelope struct {
		Data T `json:"data"`
		Meta struct {
			RequestID  string `json:"request_id"`
			NextCursor string `json:"next_cursor"`
			HasMore    bool   `json:"has_more"`
		} `json:"meta"`
	}
	meta := a.meta()
	if err := json.Unmarshal(a.body, &envelope); err != nil {
		return Response[T]{Meta: meta}, fmt.Errorf("client: read answer [%s]: %w", meta.RequestID, err)
	}
	meta.NextCursor, meta.HasMore = envelope.Meta.NextCursor, envelope.Meta.HasMore
	if envelope.Meta.RequestID != "" {
		meta.OriginRequestID = envelope.Meta.RequestID
	}
	return Response[T]{Data: envelope.Data, Meta: meta}, nil
}

// send sends a call until it succeeds or fails for good, no attempt is left, or ctx
// ends.
func (c *Client) send(ctx context.Context, l call) (answer, error) {
	for attempt := 1; ; attempt++ {
		a, err := c.try(ctx, l)
		if err == nil {
			return a, nil
		}
		wait, again := retry(err, attempt)
		if l.once && !refused(err) {
			again = false // the service may have executed it
		}
		if !again || attempt == c.attempts || ctx.Err() != nil {
			return answer{}, err
		}
		if waitErr := c.wait(ctx, wait); waitErr != nil {
			return answer{}, fmt.Errorf("%w, after: %w", waitErr, err)
		}
	}
}

// try sends a call once.
func (c *Client) try(ctx context.Context, l call) (answer, error) {
	address := c.base + l.path
	if len(l.query) > 0 {
		address += "?" + l.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, l.method, address, bytes.NewReader(l.body))
	if err != nil {
		return answer{}, fmt.Errorf("client: %w", err)
	}
	id := newRequestID()
	req.Header.Set("Authorization", *c.bearer)
	req.Header.Set("X-Request-Id", id)
	if l.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range map[string]string{
		"Idempotency-Key": l.key, "Prefer": l.prefer, "Sandbox-Scenario": string(l.scenario), "Accept-Language": c.language,
	} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return answer{}, &ConnectionError{id, err}
	}
	defer resp.Body.Close()
	limit := l.limit
	if resp.StatusCode != l.want {
		limit = maxError
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return answer{}, &ConnectionError{id, err}
	}
	a := answer{status: resp.StatusCode, header: resp.Header, body: body}
	if a.status != l.want {
		return answer{}, newError(a)
	}
	if int64(len(body)) > limit {
		return answer{}, fmt.Errorf("%w: answer over %d bytes [%s]", ErrTooLarge, limit, id)
	}
	return a, nil
}

// retry reports whether to send the same request again after err, and how long to
// wait before. Half of the wait is random, so that the clients do not all return at
// the same time after an outage.
func retry(err error, attempt int) (wait time.Duration, again bool) {
	wait = min(firstWait<<min(attempt-1, 16), lastWait)
	wait = wait/2 + jitter(wait/2)
	var e *Error
	if errors.As(err, &e) {
		if e.RetryAfter > 0 {
			wait = e.RetryAfter + jitter(max(e.RetryAfter/10, firstWait))
		}
		return wait, e.temporary() && e.RetryAfter <= maxRetryAfter
	}
	var untrusted *tls.CertificateVerificationError
	if errors.As(err, &untrusted) {
		return 0, false
	}
	var lost *ConnectionError
	return wait, errors.As(err, &lost)
}

// refused reports whether the service certainly did not execute the request.
func refused(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.HTTPStatus == http.StatusTooManyRequests
}

func jitter(d time.Duration) time.Duration {
	return mathrand.N(d + 1) //nolint:gosec // spreads load, protects nothing
}

// sleep is the waitFunc of every Client outside of tests. It fails at once when the
// deadline of ctx is before the end of the wait.
func sleep(ctx context.Context, d time.Duration) error {
	ctx2, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	if at, ok := ctx.Deadline(); ok {
		if own, _ := ctx2.Deadline(); !own.Before(at) {
			return context.DeadlineExceeded
		}
	}
	<-ctx2.Done()
	return ctx.Err()
}

func newRequestID() string { return randomHex("req_") }

// randomHex returns a prefix and 128 random bits. It panics when the system has no
// random numbers, which Go releases from 1.24 on do themselves.
func randomHex(prefix string) string {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic("client: the system has no random numbers: " + err.Error())
	}
	return prefix + hex.EncodeToString(b[:])
}
