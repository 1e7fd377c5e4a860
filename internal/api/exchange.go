package api

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/capacity"
	"github.com/fiscalhub/fiscalhub/internal/envelope"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/trace"
)

// exchange is one request, the state of its checks, and its answer.
type exchange struct {
	w     http.ResponseWriter
	r     *http.Request
	id    string // request id
	start time.Time
	trace trace.Context // of the span, or of the client's traceparent
	span  *trace.Span   // nil: it is not exported

	language lang.Language // of the messages of the answer

	capacity *capacity.Capacity

	held          capacity.Holds // of the capacity of the service
	address       string         // of the client
	route         string         // pattern of the path, for logs and metrics
	params        map[string]string
	credential    store.Credential
	authenticated bool
	checkedAt     time.Time // when the credential was checked last
	scope         store.Scope
	window        window // shown by the RateLimit headers
	counted       bool   // the request has been counted in window

	status    int
	bytes     int
	code      string // error code
	problems  fiscal.Problems
	invoiceID string
	keyDigest string // short digest of the idempotency key
	replayed  bool
	bodyRead  bool // to its end
	shed      bool // refused because there was no capacity for it
	exceeded  bool // refused because its address has used up its window
}

// handlerTime limits the work of a handler after the request has been read.
const handlerTime = 20 * time.Second

// deadline returns the context for the work of a handler.
func (x *exchange) deadline() (context.Context, context.CancelFunc) {
	return context.WithTimeout(x.r.Context(), handlerTime)
}

// unknownRoute is the route of a request that has none.
const unknownRoute = "unknown"

// begin sets the headers that every answer of the API has.
func (a *API) begin(w http.ResponseWriter, r *http.Request) *exchange {
	x := &exchange{
		w: w, r: r, id: requestID(r.Header.Values("X-Request-Id")), start: a.o.Now(), route: unknownRoute,
		capacity: a.o.Capacity, address: a.o.Clients.Address(r),
		language: lang.FromHeader(strings.Join(r.Header.Values("Accept-Language"), ","), lang.English),
	}
	x.trace = traceOf(r.Header)
	if x.span = a.o.Tracer.Start(x.trace, trace.Server); x.span != nil {
		x.trace = x.span.Context()
	}
	a.metrics.inFlight.Inc()
	h := w.Header()
	h.Set("X-Request-Id", x.id)
	h.Set("Cache-Control", "no-store")
	return x
}

// dependsOnLanguage sets the headers of an answer that has texts in the language of
// the client.
func (x *exchange) dependsOnLanguage() {
	h := x.w.Header()
	h.Set("Content-Language", string(x.language))
	h.Set("Vary", "Accept-Language")
}

// recovering serves the request and turns a panic into an error.
func (a *API) recovering(x *exchange, serve func(*exchange) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			// The panic value may contain data of the client; its type and the stack do not.
			a.o.Log.Error("A handler panicked. The request is answered 500.", "request_id", x.id, "type", fmt.Sprintf("%T", r), "stack", string(debug.Stack()))
			err = errPanic
		}
	}()
	return serve(x)
}

// finish logs the request in one line and updates the metrics.
func (a *API) finish(x *exchange) {
	took := a.o.Now().Sub(x.start)
	a.metrics.inFlight.Dec()
	a.metrics.observe(x, took)
	x.endSpan()
	attrs := make([]slog.Attr, 0, 14)
	attrs = append(attrs,
		slog.String("request_id", x.id), slog.String("method", methodLabel(x.r.Method)), slog.String("route", x.route),
		slog.Int("status", x.status), slog.Int64("duration_us", took.Microseconds()), slog.Int("bytes", x.bytes))
	for _, s := range []struct{ name, value string }{
		{"code", x.code}, {"credential", x.credential.Prefix}, {"taxpayer_id", x.scope.TaxpayerID},
		{"invoice_id", x.invoiceID}, {"idempotency_key_sha256", x.keyDigest}, {"trace_id", x.trace.ID()},
	} {
		if s.value != "" {
			attrs = append(attrs, slog.String(s.name, s.value))
		}
	}
	if x.replayed {
		attrs = append(attrs, slog.Bool("replayed", true))
	}
	a.o.Log.LogAttrs(x.r.Context(), slog.LevelInfo, "request", attrs...)
	if a.o.RequestLog != nil && strings.HasPrefix(x.r.URL.Path, "/v1/") {
		a.o.RequestLog.Add(a.logged(x, took))
	}
}

// logged returns the entry of a request for the log of requests. A path that does not belong to
// a route with ids is left out: a client may have sent anything in it, even its key.
func (a *API) logged(x *exchange, took time.Duration) store.LoggedRequest {
	q := store.LoggedRequest{
		Scope: store.Scope{Environment: a.o.Environment}, RequestID: x.id, At: x.start, Method: methodLabel(x.r.Method), Route: x.route,
		Status: x.status, Code: x.code, Took: took, Replayed: x.replayed,
	}
	if x.authenticated {
		q.TaxpayerID, q.Credential = x.credential.TaxpayerID, x.credential.Prefix
	}
	if path := x.r.URL.EscapedPath(); namesIDs(path, x.route) {
		q.Path = path
	}
	for _, p := range x.problems {
		q.Details = append(q.Details, store.RequestDetail{Code: p.Code, Field: p.Field})
	}
	return q
}

// methodLabel returns a known method, or OTHER: a client must not choose the
// text of logs and labels.
func methodLabel(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodOptions, http.MethodTrace, http.MethodConnect:
		return m
	}
	return "OTHER"
}

// requestID returns the id of the client if it is well-formed, or a new one.
func requestID(lines []string) string {
	if len(lines) == 1 && validRequestID(lines[0]) {
		return lines[0]
	}
	var b [16]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails
	return "req_" + hex.EncodeToString(b[:])
}

func validRequestID(s string) bool {
	if len(s) != 36 || s[:4] != "req_" {
		return false
	}
	for _, c := range []byte(s[4:]) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// respond answers 200 with a resource or a list.
func (x *exchange) respond(data any) error {
	return x.respondWith(data, envelope.Meta{RequestID: x.id})
}

// respondWith answers 200 with a meta member of its own.
func (x *exchange) respondWith(data, meta any) error {
	return x.respondAs(http.StatusOK, data, meta)
}

// respondAs answers with a status, data and meta. JSON answers have no ETag, so only
// "*" in If-Match matches them.
func (x *exchange) respondAs(status int, data, meta any) error {
	if x.reads() && !x.ifMatch("") {
		return preconditionFailed()
	}
	body, err := envelope.Encode(data, meta)
	if err != nil {
		return err
	}
	return x.write(status, body)
}

// write sends a body that was made for this request. It gives back what the request
// holds first: a client may read slowly. It fails, and sends nothing, when clients
// of the same credential are reading too many large answers.
func (x *exchange) write(status int, body []byte) error {
	x.held.Release()
	memory, err := x.capacity.HoldAnswer(x.holder(), len(body))
	if err != nil {
		return err
	}
	defer memory.Release()
	x.send(status, body)
	return nil
}

// send sends a body, as JSON unless the handler has set another Content-Type.
// net/http does not send the body when the method is HEAD.
func (x *exchange) send(status int, body []byte) {
	x.held.Release()
	h := x.w.Header()
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "application/json; charset=utf-8")
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	x.writeHeader(status, len(body))
	_, _ = x.w.Write(body) // if it fails the client has left, and will retry
}

// writeEmpty sends an answer without body and Content-Length.
func (x *exchange) writeEmpty(status int) {
	x.held.Release()
	x.writeHeader(status, 0)
}

func (x *exchange) writeHeader(status, size int) {
	h := x.w.Header()
	if x.r.ProtoMajor > 1 {
		// HTTP/2 has no such header. net/http would close the connection for it while the
		// client is still sending, and some clients then lose the body of the answer.
		h.Del("Connection")
	}
	// Header.Set would write these names as Ratelimit-….
	h["RateLimit-Limit"] = []string{strconv.FormatInt(x.window.limit, 10)}
	h["RateLimit-Remaining"] = []string{strconv.FormatInt(x.window.remaining, 10)}
	h["RateLimit-Reset"] = []string{strconv.FormatInt(x.window.reset, 10)}
	x.status, x.bytes = status, size
	x.w.WriteHeader(status)
}

// traceOf reads the header traceparent. A request with several or with a malformed one
// has none, as the standard says.
func traceOf(h http.Header) trace.Context {
	lines := h["Traceparent"]
	if len(lines) != 1 {
		return trace.Context{}
	}
	c, _ := trace.Parse(lines[0])
	return c
}

// endSpan ends the span of a request. It has ids and the route, and nothing else of the
// request.
func (x *exchange) endSpan() {
	if !x.span.Recording() {
		return
	}
	method := methodLabel(x.r.Method)
	x.span.Describe(method+" "+x.route,
		trace.String("http.request.method", method), trace.String("http.route", x.route), trace.Int("http.response.status_code", int64(x.status)),
		trace.String("fiscalhub.request_id", x.id))
	for key, value := range map[string]string{
		"fiscalhub.taxpayer_id": x.scope.TaxpayerID, "fiscalhub.invoice_id": x.invoiceID, "error.type": x.code,
	} {
		if value != "" {
			x.span.Describe(method+" "+x.route, trace.String(key, value))
		}
	}
	if x.status >= http.StatusInternalServerError {
		x.span.Fail()
	}
	x.span.End()
}
