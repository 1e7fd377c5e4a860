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

// The classes of failed attempts. The classes of netguard and status_NNN complete
// them.
const (
	ClassClosed    = "closed"           // the receiver closed the connection before it answered
	ClassMalformed = "malformed_answer" // the answer is not HTTP, or its header is too long
	ClassStopped   = "stopped"          // the caller cancelled the attempt: the receiver is not at fault
	ClassMessage   = "invalid_message"  // the message cannot be sent: it has no valid id or no secret
)

const (
	userAgent     = "fh-webhooks/1"
	readLimit     = 16 << 10
	keepLimit     = 1 << 10
	maxRetryAfter = 24 * time.Hour
)

// Options configure a Sender. Now is required; other zero fields mean the defaults.
type Options struct {
	Now   func() time.Time
	Guard netguard.Guard
	// Network configures the connections.
	Network netguard.Options
	// Total is the time limit of one attempt. Default: 15 s.
	Total time.Duration
}

// A Sender posts events. It is safe for concurrent use.
type Sender struct {
	o         Options
	transport *http.Transport
}

// New returns a sender. It fails when Now is nil. Call Close when you no longer need
// the sender.
func New(o Options) (*Sender, error) {
	if o.Now == nil {
		return nil, errors.New("webhook: Options.Now is required")
	}
	if o.Total <= 0 {
		o.Total = 15 * time.Second
	}
	return &Sender{o: o, transport: netguard.Transport(o.Guard, o.Network)}, nil
}

// Close closes idle connections. Call it after all attempts have returned.
func (s *Sender) Close() { s.transport.CloseIdleConnections() }

// CheckURL checks the text of an endpoint's URL. It fails with netguard.ErrAddress; the
// error text may be shown to the integrator. The sender checks the IP address again at
// every connection.
func CheckURL(raw string, guard netguard.Guard) error {
	_, err := guard.URLWithQuery(raw)
	return err
}

// A Message is one event for one receiver.
type Message struct {
	URL string
	// ID is the id of the event, the same in every attempt.
	ID   string
	Body []byte
	// Secrets are the secrets that are valid now. The sender signs with each.
	Secrets []Secret
	// RequestID identifies the attempt in support requests. It may be empty.
	RequestID string
}

// A Result is the outcome of one attempt.
type Result struct {
	// Status is the HTTP status, 0 without an answer.
	Status int
	// Error is the class of the failure, empty after a 2xx answer. It may be shown to
	// the integrator.
	Error string
	// Answer is the first KiB of the body of the answer.
	Answer []byte
	// RetryAfter is the wait that the receiver asks for with 429 or 503. A wait of more
	// than 24 hours is ignored.
	RetryAfter time.Duration
	// Gone is true after 410: the receiver wants no more events.
	Gone bool
	// Slow is true after 429, 502 and 504: the receiver is overloaded.
	Slow bool
	Took time.Duration
}

// OK reports whether the receiver has accepted the event.
func (r Result) OK() bool { return r.Error == "" }

// Post makes one attempt and returns its outcome. It signs the message with the time
// of the attempt. It follows no redirects: a redirect is a failure.
func (s *Sender) Post(ctx context.Context, m Message) Result {
	begin := s.o.Now()
	r := s.post(ctx, m, begin)
	r.Took = s.o.Now().Sub(begin)
	return r
}

func (s *Sender) post(ctx context.Context, m Message, at time.Time) Result {
	u, err := s.o.Guard.URLWithQuery(m.URL)
	if err != nil {
		return Result{Error: netguard.ClassRefused}
	}
	signature := Sign(m.ID, at, m.Body, m.Secrets...)
	if signature == "" || !isToken(m.ID) || m.RequestID != "" && !isToken(m.RequestID) {
		return Result{Error: ClassMessage}
	}
	limited, cancel := context.WithTimeout(ctx, s.o.Total)
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
	// RoundTrip, unlike a client, follows no redirects and keeps no cookies.
	res, err := s.transport.RoundTrip(req)
	if err != nil {
		if ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return Result{Error: ClassStopped}
		}
		return Result{Error: phase.class(err)}
	}
	defer res.Body.Close()
	// Only the status decides. A body that is incomplete or never ends does not change
	// the outcome.
	answer, _ := io.ReadAll(io.LimitReader(res.Body, readLimit))
	answer = m.hideSecrets(answer, signature)
	r := Result{Status: res.StatusCode, Answer: bytes.Clone(answer[:min(len(answer), keepLimit)])}
	r.judge(res.Header, s.o.Now())
	return r
}

// hideSecrets replaces the secrets and the signature of a message in an answer, which is
// kept. A receiver may answer with what it got and what it expected.
func (m Message) hideSecrets(answer []byte, signature string) []byte {
	pairs := []string{signature, redacted}
	for part := range strings.FieldsSeq(signature) {
		pairs = append(pairs, part, redacted, strings.TrimPrefix(part, version), redacted)
	}
	for _, secret := range m.Secrets {
		if text := secret.Reveal(); text != "" {
			pairs = append(pairs, text, redacted, strings.TrimPrefix(text, secretLead), redacted)
		}
	}
	return []byte(strings.NewReplacer(pairs...).Replace(string(answer)))
}

// judge sets the members of a result that follow from its status.
func (r *Result) judge(header http.Header, now time.Time) {
	switch code := r.Status; {
	case code >= 200 && code <= 299:
		return
	case code == http.StatusGone:
		r.Gone = true
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable:
		r.RetryAfter = retryAfter(header, now)
		r.Slow = code == http.StatusTooManyRequests
	case code == http.StatusBadGateway, code == http.StatusGatewayTimeout:
		r.Slow = true
	}
	r.Error = fmt.Sprintf("status_%d", r.Status)
}

// isToken reports whether a text is a short, visible ASCII text, which a header can
// carry.
func isToken(text string) bool {
	return text != "" && len(text) <= maxID && strings.IndexFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

// retryAfter returns the wait of the header Retry-After, which holds seconds or a time.
// It compares a time with the header Date, if there is one, because the clock of the
// receiver may be wrong.
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

// A phase records the progress of an attempt. Goroutines of the transport write it.
type phase struct{ connected, handshaking atomic.Bool }

func (p *phase) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		TLSHandshakeStart: func() { p.handshaking.Store(true) },
		TLSHandshakeDone:  func(_ tls.ConnectionState, err error) { p.handshaking.Store(err != nil) },
		GotConn:           func(httptrace.GotConnInfo) { p.connected.Store(true) },
	})
}

// class returns the class of a failure. A closed connection has another class before
// the handshake ends than after it.
func (p *phase) class(err error) string {
	class := netguard.Class(err)
	switch {
	case class != netguard.ClassConnect:
		return class
	case p.handshaking.Load():
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
