package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/netguard"
)

// The classes of attempts that failed, beside those of netguard and status_NNN.
const (
	ClassClosed    = "closed"           // the connection ended before an answer
	ClassMalformed = "malformed_answer" // what came is no HTTP, or its header is too long
	ClassStopped   = "stopped"          // the caller ended the attempt: it says nothing of the receiver
	ClassMessage   = "invalid_message"  // there was nothing that could be sent: no id, no secret
)

const (
	userAgent     = "fh-webhooks/1"
	readLimit     = 16 << 10
	keepLimit     = 1 << 10
	maxRetryAfter = 24 * time.Hour
)

// Options say how a Sender sends. Zero fields have the defaults that are named;
// Now is needed.
type Options struct {
	Now   func() time.Time
	Guard netguard.Guard
	// Network says how connections are made.
	Network netguard.Options
	// Total bounds an attempt: 15 s.
	Total time.Duration
}

// A Sender posts events. Many goroutines may use it at once.
type Sender struct {
	now       func() time.Time
	guard     netguard.Guard
	total     time.Duration
	transport *http.Transport
}

// New makes a sender. Close ends it.
func New(o Options) (*Sender, error) {
	if o.Now == nil {
		return nil, errors.New("webhook: a clock is needed")
	}
	if o.Total <= 0 {
		o.Total = 15 * time.Second
	}
	return &Sender{now: o.Now, guard: o.Guard, total: o.Total, transport: netguard.Transport(o.Guard, o.Network)}, nil
}

// Close closes idle connections. Attempts must have ended.
func (s *Sender) Close() { s.transport.CloseIdleConnections() }

// CheckURL tells whether events may be sent to an address as far as its text
// shows; where its name leads is checked at every connection. The error wraps
// netguard.ErrAddress, and its text is fit for whoever named the address.
func CheckURL(raw string, guard netguard.Guard) error {
	_, err := guard.URLWithQuery(raw)
	return err
}

// A Message is one event for one receiver.
type Message struct {
	URL string
	// ID is the event's, the same in every attempt.
	ID   string
	Body []byte
	// Secrets are those that are valid now; each signs.
	Secrets []Secret
	// RequestID names the attempt, for whoever asks about it; it may be empty.
	RequestID string
}

// A Result is what became of an attempt.
type Result struct {
	// Status is that of HTTP, 0 without an answer.
	Status int
	// Error is the class of the failure, empty after an answer of 2xx. It may be
	// shown to anybody.
	Error string
	// Answer is the beginning of the answer's body, at most 1 KiB, as it came.
	Answer []byte
	// RetryAfter is how long the receiver asks to be left alone: with 429 and
	// 503, and for at most 24 hours.
	RetryAfter time.Duration
	// Gone tells that the receiver wants no more events: 410.
	Gone bool
	// Slow tells that the receiver gets too much at once: 429, 502, 504.
	Slow bool
	Took time.Duration
}

// OK tells whether the event was taken.
func (r Result) OK() bool { return r.Error == "" }

// Post makes one attempt. It is signed anew, with the time of the attempt. No
// redirect is followed: the answer is the failure.
func (s *Sender) Post(ctx context.Context, m Message) Result {
	begin := s.now()
	r := s.post(ctx, m, begin)
	r.Took = s.now().Sub(begin)
	return r
}

func (s *Sender) post(ctx context.Context, m Message, at time.Time) Result {
	u, err := s.guard.URLWithQuery(m.URL)
	if err != nil {
		return Result{Error: netguard.ClassRefused}
	}
	signature := Sign(m.ID, at, m.Body, m.Secrets...)
	if signature == "" || !isToken(m.ID) || m.RequestID != "" && !isToken(m.RequestID) {
		return Result{Error: ClassMessage}
	}
	limited, cancel := context.WithTimeout(ctx, s.total)
	defer cancel()
	var phase phase
	req, err := http.NewRequestWithContext(phase.trace(limited), http.MethodPost, u.String(), bytes.NewReader(m.Body))
	if err != nil {
		return Result{Error: netguard.ClassRefused}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set(HeaderID, m.ID)
	req.Header.Set(HeaderTimestamp, strconv.FormatInt(at.Unix(), 10))
	req.Header.Set(HeaderSignature, signature)
	if m.RequestID != "" {
		req.Header.Set("X-Request-Id", m.RequestID)
	}
	// The transport alone: it follows nothing and keeps no cookies.
	res, err := s.transport.RoundTrip(req)
	if err != nil {
		if ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return Result{Error: ClassStopped}
		}
		return Result{Error: phase.class(err)}
	}
	defer res.Body.Close()
	// The status is the answer; a body that breaks off, or never ends, changes
	// nothing about it.
	answer, _ := io.ReadAll(io.LimitReader(res.Body, readLimit))
	r := Result{Status: res.StatusCode, Answer: bytes.Clone(answer[:min(len(answer), keepLimit)])}
	switch code := res.StatusCode; {
	case code >= 200 && code <= 299:
		return r
	case code == http.StatusGone:
		r.Gone = true
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable:
		r.RetryAfter = retryAfter(res.Header, s.now())
		r.Slow = code == http.StatusTooManyRequests
	case code == http.StatusBadGateway, code == http.StatusGatewayTimeout:
		r.Slow = true
	}
	r.Error = fmt.Sprintf("status_%d", res.StatusCode)
	return r
}

// isToken tells whether a text may be the value of a header as it is.
func isToken(text string) bool {
	return text != "" && len(text) <= maxID && strings.IndexFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

// retryAfter is how long an answer asks to wait, in seconds or until a time. The
// time is by the clock of who says it, where that is told.
func retryAfter(header http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(header.Get("Retry-After"))
	var wait time.Duration
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		wait = time.Duration(n) * time.Second
	} else if until, err := http.ParseTime(text); err == nil {
		if at, err := http.ParseTime(header.Get("Date")); err == nil {
			now = at
		}
		wait = until.Sub(now)
	}
	if wait < 0 || wait > maxRetryAfter {
		return 0
	}
	return wait
}

// A phase is how far an attempt has come. The network reports it from
// goroutines of its own.
type phase struct{ connected, shaking atomic.Bool }

func (p *phase) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		TLSHandshakeStart: func() { p.shaking.Store(true) },
		TLSHandshakeDone:  func(_ tls.ConnectionState, err error) { p.shaking.Store(err != nil) },
		GotConn:           func(httptrace.GotConnInfo) { p.connected.Store(true) },
	})
}

// class tells of which class a failure is: the same end of a connection means
// one thing before it stands and another after.
func (p *phase) class(err error) string {
	class := netguard.Class(err)
	switch {
	case class != netguard.ClassConnect:
		return class
	case p.shaking.Load():
		return netguard.ClassTLS
	case !p.connected.Load():
		return netguard.ClassConnect
	}
	var op *net.OpError
	if errors.As(err, &op) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return ClassClosed
	}
	return ClassMalformed
}
