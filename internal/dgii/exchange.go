package dgii

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/trace"
)

// A request is one HTTP request to send.
type request struct {
	service     string
	transport   *http.Transport
	url         string
	token       string
	upload      *upload // makes it a POST
	accept      string
	maxResponse int64 // bytes of the response's body
	timeout     time.Duration
}

// A response is the response to a request.
type response struct {
	status     int
	retryAfter string
	date       time.Time // the Date header, or zero
	receivedAt reading   // when the header arrived
	body       []byte
	bodyErr    error // why the body is incomplete: it broke off or is too long
}

// A noResponseError is the error of an exchange without a response.
type noResponseError struct {
	cause   error
	notSent bool // no byte of the body can have been sent
}

func (e *noResponseError) Error() string { return e.cause.Error() }
func (e *noResponseError) Unwrap() error { return e.cause }

var errTooLong = errors.New("the response is too long")

// exchange sends a request once. It follows no redirect and repeats nothing. The
// error is a *noResponseError.
func (c *Client) exchange(ctx context.Context, r request) (*response, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	req, err := r.build(ctx)
	if err != nil {
		return nil, &noResponseError{errors.New("the address cannot be called"), true} // err would quote the whole address
	}
	start, span := c.now(), trace.Child(ctx, trace.Client)
	res, err := r.transport.RoundTrip(req)
	if err != nil {
		notSent := r.upload == nil || r.upload.cancel()
		c.ended(span, Exchange{Service: r.service, Outcome: outcomeOf(nil, err, notSent && r.upload != nil), Duration: c.now().Sub(start)})
		return nil, &noResponseError{hideInError(err, r.token), notSent}
	}
	defer res.Body.Close()
	out := &response{status: res.StatusCode, retryAfter: res.Header.Get("Retry-After"), receivedAt: c.clock.read()}
	if date, err := http.ParseTime(res.Header.Get("Date")); err == nil && res.Header.Get("Age") == "" {
		out.date = date // a response with an Age comes from a cache, and its Date is old
	}
	out.body, out.bodyErr = io.ReadAll(io.LimitReader(res.Body, r.maxResponse+1))
	if int64(len(out.body)) > r.maxResponse {
		out.body, out.bodyErr = out.body[:r.maxResponse], errTooLong
	}
	out.body = hide(out.body, r.token, out.bodyErr != nil) // responses are stored; a token that one repeats must not be
	c.ended(span, Exchange{Service: r.service, Outcome: outcomeOf(out, nil, false), Status: out.status, Duration: c.now().Sub(start)})
	return out, nil
}

// ended reports a finished exchange and ends its span. The span names no address: that of
// a buyer is the buyer's.
func (c *Client) ended(span *trace.Span, e Exchange) {
	c.onExchange(e)
	if !span.Recording() {
		return
	}
	span.Describe("authority "+e.Service, trace.String("fiscalhub.service", e.Service), trace.String("fiscalhub.outcome", string(e.Outcome)))
	if e.Status != 0 {
		span.Describe("authority "+e.Service, trace.Int("http.response.status_code", int64(e.Status)))
	}
	if e.Outcome != OutcomeOK {
		span.Fail()
	}
	span.End()
}

// build returns the request for net/http. It makes the upload learn which
// connection sends it.
func (r request) build(ctx context.Context) (*http.Request, error) {
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		conn := info.Conn
		if t, ok := conn.(interface{ NetConn() net.Conn }); ok {
			conn = t.NetConn()
		}
		if counting, ok := conn.(*countingConn); ok && r.upload != nil {
			r.upload.setConn(counting)
		}
	}})
	method := http.MethodGet
	if r.upload != nil {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, r.url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", r.accept)
	req.Header.Set("User-Agent", "fiscalhub")
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	if r.upload != nil {
		req.Header.Set("Content-Type", r.upload.contentType)
		req.Body, req.ContentLength = r.upload, r.upload.size
		return req, nil
	}
	// When the server ends a connection without a response, net/http repeats a GET at once,
	// unless it has a body that cannot be read again. This body is empty: a server sees a
	// GET without a body.
	req.Body, req.TransferEncoding = io.NopCloser(strings.NewReader("")), []string{"identity"}
	return req, nil
}
