package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
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
	maxJSON    = 8 << 20  // a full page of invoices is far below
	maxXML     = 16 << 20 // a document of 1000 lines is below 1 MiB
	maxPDF     = 64 << 20
	maxError   = 1 << 20

	firstWait = 200 * time.Millisecond
	lastWait  = 10 * time.Second
	// A service that asks for more is not coming back while a caller waits.
	maxRetryAfter = 2 * time.Minute
)

// waitFunc waits for d, or until ctx is done and then returns its error.
type waitFunc func(ctx context.Context, d time.Duration) error

// call is one request of the API, sent as often as needed.
type call struct {
	method string
	path   string // below the taxpayer
	query  url.Values
	body   []byte
	key    string // idempotency key
	want   int    // status of success
	limit  int64  // bytes of the answer
	prefer string // header Prefer
	once   bool   // it is not the same when it is done twice
}

// answer is an HTTP answer read to its end.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// meta returns what the headers say.
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

// send sends a call until it is answered for good, the attempts are used up or
// ctx is done.
func (c *Client) send(ctx context.Context, l call) (answer, error) {
	for attempt := 1; ; attempt++ {
		a, err := c.try(ctx, l)
		if err == nil {
			return a, nil
		}
		wait, again := retry(err, attempt)
		if l.once && !refused(err) {
			again = false // it may have been done
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
	for name, value := range map[string]string{"Idempotency-Key": l.key, "Prefer": l.prefer} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return answer{}, &transportError{id, err}
	}
	defer resp.Body.Close()
	limit := l.limit
	if resp.StatusCode != l.want {
		limit = maxError
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return answer{}, &transportError{id, err}
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

// transportError says that no whole answer came: the request may have arrived
// or not.
type transportError struct {
	id  string
	err error
}

func (e *transportError) Error() string {
	return fmt.Sprintf("client: no answer [%s]: %v", e.id, e.err)
}
func (e *transportError) Unwrap() error { return e.err }

// retry says whether the same request may be sent again after err, and how
// long to wait first. The wait is partly random, so that clients stopped by
// one outage do not come back at one instant.
func retry(err error, attempt int) (wait time.Duration, again bool) {
	wait = min(firstWait<<min(attempt-1, 16), lastWait)
	wait = wait/2 + jitter(wait/2)
	if e, ok := errors.AsType[*Error](err); ok {
		if e.RetryAfter > 0 {
			wait = e.RetryAfter + jitter(max(e.RetryAfter/10, firstWait))
		}
		return wait, e.temporary() && e.RetryAfter <= maxRetryAfter
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return 0, false
	}
	_, again = errors.AsType[*transportError](err)
	return wait, again
}

// refused says that nothing was done.
func refused(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.HTTPStatus == http.StatusTooManyRequests
}

func jitter(d time.Duration) time.Duration {
	return mathrand.N(d + 1) //nolint:gosec // spreads load, guards nothing
}

// sleep is the waitFunc of every Client but those of tests. It does not begin
// a wait that ctx cannot outlast.
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

func newRequestID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return fmt.Sprintf("req_%x", b)
}
