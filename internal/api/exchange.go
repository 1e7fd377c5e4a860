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
	"time"

	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// exchange is one request and what is known of it so far.
type exchange struct {
	w     http.ResponseWriter
	r     *http.Request
	id    string // request id
	start time.Time

	places        places
	route         string // the pattern, for logs and metrics
	params        map[string]string
	credential    store.Credential
	authenticated bool
	scope         store.Scope
	window        window // what the rate-limit headers show
	counted       bool   // the window has been counted

	status    int
	bytes     int
	code      string // error code
	invoiceID string
	keyDigest string // a short print of the idempotency key
	replayed  bool
	shed      bool // refused for want of room
}

// handlerTime bounds what a handler does once the request has been read.
const handlerTime = 20 * time.Second

// deadline is the context of a handler's work.
func (x *exchange) deadline() (context.Context, context.CancelFunc) {
	return context.WithTimeout(x.r.Context(), handlerTime)
}

func (a *API) begin(w http.ResponseWriter, r *http.Request) *exchange {
	x := &exchange{w: w, r: r, id: requestID(r.Header.Values("X-Request-Id")), start: a.Now(), route: "unknown"}
	a.metrics.inFlight.Inc()
	h := w.Header()
	h.Set("X-Request-Id", x.id)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	if a.TLS {
		h.Set("Strict-Transport-Security", "max-age=63072000")
	}
	if len(r.TransferEncoding) > 0 {
		// A length may have stood beside the chunks, unseen, and a proxy may
		// have gone by it: nothing more is read from the connection.
		h.Set("Connection", "close")
	}
	return x
}

// attempt serves the request, and turns a panic into an error.
func (a *API) attempt(x *exchange) (err error) {
	defer func() {
		if r := recover(); r != nil {
			// The value may hold what a client sent; its type and the stack do not.
			a.Log.Error("panic", "request_id", x.id, "type", fmt.Sprintf("%T", r), "stack", string(debug.Stack()))
			err = errPanic
		}
	}()
	return a.serve(x)
}

// end tells the request in one line.
func (a *API) end(x *exchange) {
	took := a.Now().Sub(x.start)
	a.metrics.inFlight.Dec()
	a.metrics.observe(x, took)
	attrs := make([]slog.Attr, 0, 13)
	attrs = append(attrs,
		slog.String("request_id", x.id), slog.String("method", methodLabel(x.r.Method)), slog.String("route", x.route),
		slog.Int("status", x.status), slog.Int64("duration_us", took.Microseconds()), slog.Int("bytes", x.bytes))
	for _, s := range []struct{ name, value string }{
		{"code", x.code}, {"credential", x.credential.Prefix}, {"taxpayer_id", x.scope.TaxpayerID},
		{"invoice_id", x.invoiceID}, {"idempotency_key_sha256", x.keyDigest},
	} {
		if s.value != "" {
			attrs = append(attrs, slog.String(s.name, s.value))
		}
	}
	if x.replayed {
		attrs = append(attrs, slog.Bool("replayed", true))
	}
	a.Log.LogAttrs(x.r.Context(), slog.LevelInfo, "request", attrs...)
}

// methodLabel keeps what a client may invent out of logs and labels.
func methodLabel(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodOptions, http.MethodTrace, http.MethodConnect:
		return m
	}
	return "OTHER"
}

// requestID takes a well-formed id over and makes one otherwise.
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

type pageMeta struct {
	RequestID  string  `json:"request_id"`
	NextCursor *string `json:"next_cursor"`
}

// respond writes a resource, or several.
func (x *exchange) respond(data any) error {
	return x.respondWith(data, pipeline.Meta{RequestID: x.id})
}

func (x *exchange) respondWith(data, meta any) error {
	return x.respondAs(http.StatusOK, data, meta)
}

func (x *exchange) respondAs(status int, data, meta any) error {
	body, err := pipeline.EncodeAnswer(data, meta)
	if err != nil {
		return err
	}
	x.write(status, body)
	return nil
}

// write sends a JSON body with the headers that every answer carries. The
// server leaves the body of a HEAD out by itself.
func (x *exchange) write(status int, body []byte) {
	h := x.w.Header()
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "application/json; charset=utf-8")
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	x.head(status, len(body))
	_, _ = x.w.Write(body) // a client that is gone asks again
}

// writeNothing sends an answer that has no body, nor a length of one.
func (x *exchange) writeNothing(status int) { x.head(status, 0) }

func (x *exchange) head(status, size int) {
	h := x.w.Header()
	// Not through Set, which would spell them Ratelimit-….
	h["RateLimit-Limit"] = []string{strconv.FormatInt(x.window.limit, 10)}
	h["RateLimit-Remaining"] = []string{strconv.FormatInt(x.window.remaining, 10)}
	h["RateLimit-Reset"] = []string{strconv.FormatInt(x.window.reset, 10)}
	x.status, x.bytes = status, size
	x.w.WriteHeader(status)
}
