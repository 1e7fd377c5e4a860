// Package receiver serves the HTTP services that every electronic taxpayer must offer to
// the others: seed and token, the reception of documents, and commercial responses. The
// tax authority defines their paths, formats and language. One receiver serves all
// taxpayers of an environment: the signed document names the taxpayer it belongs to.
package receiver

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/capacity"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/reply"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// Seeds stores the seeds that were used.
type Seeds interface {
	// UseSeed stores a seed until it expires. fresh reports whether this is its first
	// use.
	UseSeed(ctx context.Context, digest []byte, expires, now time.Time) (fresh bool, err error)
}

// Taxpayers finds the taxpayers of the service.
type Taxpayers interface {
	// ByRNC returns the taxpayer of the environment with this RNC, and whether there is
	// one.
	ByRNC(ctx context.Context, rnc string) (store.Scope, bool, error)
}

// Identities returns the identity that signs for a taxpayer.
type Identities interface {
	Identity(ctx context.Context, scope store.Scope, at time.Time) (*xmlsig.Identity, error)
}

// Responses stores the commercial responses of buyers.
type Responses interface {
	// Commercial stores a response. It fails with reply.ErrNoDocument or
	// reply.ErrMismatch when no document belongs to the response, and with
	// reply.ErrTooMany when the document has enough responses. After any other error the
	// sender retries.
	Commercial(ctx context.Context, r reply.Response) error
}

// Options configure a Receiver. Environment and Now are required. Outside the sandbox, in
// which the receiver answers 404 to everything, Keys, Seeds, Taxpayers, Identities,
// Responses, Capacity and Clients are required too.
type Options struct {
	Environment fiscal.Environment
	// Roots are the certificate authorities of other taxpayers. Without roots no
	// signature is trusted.
	Roots *x509.CertPool
	// Keys returns the keys that authenticate seeds and tokens, so that the service need not
	// store the ones that it has issued. The first one makes new ones; all of them are
	// accepted. A key has 32 bytes, and every process has the same ones.
	Keys       func() [][]byte
	Seeds      Seeds
	Taxpayers  Taxpayers
	Identities Identities
	Responses  Responses
	// Capacity limits what senders may hold. Clients finds their addresses.
	Capacity *capacity.Capacity
	Clients  *capacity.ClientFinder
	// Limit reports whether a request without a valid token may be served. Without
	// Limit all are served.
	Limit func(*http.Request) bool
	// LimitCaller reports whether a request of a caller may be served. A caller is the
	// certificate of a token, and the person who signed a document. Without LimitCaller
	// all are served.
	LimitCaller func(ctx context.Context, caller string) bool
	// OnWrongToken and OnWrongSeed are called when the token or the signed seed of a request
	// is refused. They may be nil.
	OnWrongToken, OnWrongSeed func(*http.Request)

	Now func() time.Time
	Log *slog.Logger // may be nil
}

// A Receiver is the HTTP handler of the services.
type Receiver struct {
	o Options
}

// New returns a receiver. It fails when a required option is missing.
func New(o Options) (*Receiver, error) {
	if _, err := fiscal.ParseEnvironment(string(o.Environment)); err != nil {
		return nil, fmt.Errorf("receiver: %w", err)
	}
	switch {
	case o.Now == nil:
		return nil, errors.New("receiver: Now is required")
	case o.Environment == fiscal.Sandbox:
	case o.Keys == nil || len(o.Keys()) == 0:
		return nil, errors.New("receiver: Keys is required")
	case slices.ContainsFunc(o.Keys(), func(key []byte) bool { return len(key) != keySize }):
		return nil, fmt.Errorf("receiver: a key must have %d bytes", keySize)
	case o.Seeds == nil || o.Taxpayers == nil || o.Identities == nil || o.Responses == nil:
		return nil, errors.New("receiver: Seeds, Taxpayers, Identities and Responses are required")
	case o.Capacity == nil || o.Clients == nil:
		return nil, errors.New("receiver: Capacity and Clients are required")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Limit == nil {
		o.Limit = func(*http.Request) bool { return true }
	}
	if o.LimitCaller == nil {
		o.LimitCaller = func(context.Context, string) bool { return true }
	}
	if o.OnWrongToken == nil {
		o.OnWrongToken = func(*http.Request) {}
	}
	if o.OnWrongSeed == nil {
		o.OnWrongSeed = func(*http.Request) {}
	}
	return &Receiver{o: o}, nil
}

// An exchange is one request with its log attributes.
type exchange struct {
	w   http.ResponseWriter
	r   *http.Request
	now time.Time
	// attrs are added to the log line. They identify the document and never contain its
	// content.
	attrs []slog.Attr
	held  capacity.Holds // of the capacity of the service
}

// addToLog adds an attribute to the log line of the request.
func (x *exchange) addToLog(name, value string) {
	x.attrs = append(x.attrs, slog.String(name, value))
}

// ServeHTTP answers one request and logs it.
func (rc *Receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{w: w, r: r, now: rc.o.Now()}
	s := serviceOf(r.URL.Path)
	a := rc.answer(x, s)
	x.held.Release() // before the answer is written: a sender may read slowly
	a.write(w)
	attrs := []slog.Attr{
		slog.String("service", s.String()), slog.Int("status", a.status),
		slog.Int64("duration_us", rc.o.Now().Sub(x.now).Microseconds()),
	}
	if a.cause != nil {
		attrs = append(attrs, slog.String("error", a.cause.Error()))
	}
	level := slog.LevelInfo
	if a.status >= http.StatusInternalServerError {
		level = slog.LevelWarn
	}
	rc.o.Log.LogAttrs(r.Context(), level, "Answered a request.", append(attrs, x.attrs...)...)
}

// answer makes the checks that all services share and calls the service.
func (rc *Receiver) answer(x *exchange, s service) (a answer) {
	defer func() {
		if r := recover(); r != nil {
			// The value may contain the document; its type and the stack do not.
			rc.o.Log.Error("A panic has stopped a request. The sender gets 503 and retries.", "type", fmt.Sprintf("%T", r), "stack", string(debug.Stack()))
			a = unavailable(errors.New("panic"))
		}
	}()
	if s == none || rc.o.Environment == fiscal.Sandbox {
		return refuse(http.StatusNotFound, "El servicio no existe.", nil)
	}
	x.addToLog("client", rc.o.Clients.Address(x.r))
	if !s.accepts(x.r.Method) {
		a := refuse(http.StatusMethodNotAllowed, "El método no está permitido.", nil)
		a.allow = s.allow()
		return a
	}
	if refused := rc.admit(x, s); refused != nil {
		return *refused
	}
	switch s {
	case seedService:
		return rc.issueSeed(x)
	case tokenService:
		return rc.issueToken(x)
	case reception:
		return rc.receive(x)
	default:
		return rc.approve(x)
	}
}

// admit checks the token of a request, if it has one, and the limit of the token or, for
// a request without a valid one, of the address. It returns the answer to a refused
// request, and nil otherwise. A token is not required, because the document itself is
// signed. An invalid token is refused, so that its sender notices the mistake.
func (rc *Receiver) admit(x *exchange, s service) *answer {
	lines := x.r.Header.Values("Authorization")
	if (s == reception || s == approval) && len(lines) > 0 {
		caller, err := rc.readToken(lines, x.now)
		if err == nil {
			x.addToLog("caller", caller.String())
			return rc.limitCaller(x, "token "+caller.String())
		}
		rc.o.OnWrongToken(x.r)
		if rc.o.Limit(x.r) {
			a := refuse(http.StatusBadRequest, "El token no es válido o ha expirado.", err)
			return &a
		}
	} else if rc.o.Limit(x.r) {
		return nil
	}
	// Senders retry after 503, but take any other error for a final answer.
	a := unavailable(errors.New("too many requests without a token"))
	return &a
}

// limitCaller counts a request of a caller. It returns the answer to a request beyond the
// limit, and nil otherwise.
func (rc *Receiver) limitCaller(x *exchange, caller string) *answer {
	if rc.o.LimitCaller(x.r.Context(), caller) {
		return nil
	}
	a := unavailable(errors.New("too many requests of one " + strings.SplitN(caller, " ", 2)[0]))
	return &a
}

// limitSigner adds what a signed document says to the log line, and counts the request
// for the signer. It returns the answer to a request beyond the limit, and nil otherwise.
func (rc *Receiver) limitSigner(x *exchange, issuer, buyer, encf, signer string) *answer {
	x.addToLog("issuer", issuer)
	x.addToLog("buyer", buyer)
	x.addToLog("encf", encf)
	x.addToLog("signer", signer)
	return rc.limitCaller(x, "signer "+signer)
}
