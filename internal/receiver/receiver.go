// Package receiver owns the services that every electronic taxpayer has to
// offer to the others: seed and token, the reception of documents, and
// commercial responses. Their paths, formats and language are the authority's.
// One receiver serves all taxpayers of an environment: whose a request is stands
// in the signed document and nowhere else.
package receiver

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/reply"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// maxReceptions is how many documents are received at once. They may be large,
// and whoever sends many of them keeps nobody from responding.
const maxReceptions = 16

// Seeds remember which seeds were used.
type Seeds interface {
	// UseSeed remembers a seed until it expires, and tells whether this is its
	// first use.
	UseSeed(ctx context.Context, digest []byte, expires, now time.Time) (fresh bool, err error)
}

// Taxpayers are those we receive for.
type Taxpayers interface {
	// ByRNC finds a taxpayer of the environment, and tells whether there is one.
	ByRNC(ctx context.Context, rnc string) (store.Scope, bool, error)
}

// Identities are who signs for a taxpayer.
type Identities interface {
	Identity(ctx context.Context, scope store.Scope, at time.Time) (*xmlsig.Identity, error)
}

// Responses take what buyers respond.
type Responses interface {
	// Commercial keeps a response. The error is reply.ErrNoDocument or
	// reply.ErrMismatch for one that has no effect here and never will; any other
	// has the sender try again.
	Commercial(ctx context.Context, r reply.Response) error
}

// Options are what a receiver works with. In the sandbox, where nothing is
// served, the environment is enough.
type Options struct {
	Environment fiscal.Environment
	// Roots vouch for the signatures of others; without any nobody is trusted.
	Roots *x509.CertPool
	// Key authenticates seeds and tokens, so that those that were given need not
	// be kept: 32 bytes, the same for every process of a service.
	Key        []byte
	Seeds      Seeds
	Taxpayers  Taxpayers
	Identities Identities
	Responses  Responses
	// Limit tells whether a request that comes without a token may be served;
	// without it all are.
	Limit func(*http.Request) bool
	Now   func() time.Time
	Log   *slog.Logger
}

// A Receiver serves the services.
type Receiver struct {
	Options
	places chan struct{} // one for every reception under way
}

// New makes a receiver.
func New(o Options) (*Receiver, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if _, err := fiscal.ParseEnvironment(string(o.Environment)); err != nil {
		return nil, fmt.Errorf("receiver: %w", err)
	}
	switch {
	case o.Now == nil:
		return nil, errors.New("receiver: it needs a clock")
	case o.Environment == fiscal.Sandbox:
	case len(o.Key) != keySize:
		return nil, fmt.Errorf("receiver: the key has %d bytes and needs %d", len(o.Key), keySize)
	case o.Seeds == nil || o.Taxpayers == nil || o.Identities == nil || o.Responses == nil:
		return nil, errors.New("receiver: it needs seeds, taxpayers, identities and responses")
	}
	return &Receiver{Options: o, places: make(chan struct{}, maxReceptions)}, nil
}

// An exchange is one request, and what is told about it in the log.
type exchange struct {
	w   http.ResponseWriter
	r   *http.Request
	now time.Time
	// attrs are added to the log: of the document once its format is known, never
	// its content.
	attrs []slog.Attr
}

func (x *exchange) note(name, value string) { x.attrs = append(x.attrs, slog.String(name, value)) }

// ServeHTTP answers one request.
func (rc *Receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{w: w, r: r, now: rc.Now()}
	s := serviceOf(r.URL.Path)
	a := rc.answer(x, s)
	a.write(w)
	attrs := []slog.Attr{
		slog.String("service", s.String()), slog.Int("status", a.status),
		slog.Int64("duration_us", rc.Now().Sub(x.now).Microseconds()),
	}
	if a.cause != nil {
		attrs = append(attrs, slog.String("error", a.cause.Error()))
	}
	level := slog.LevelInfo
	if a.status >= http.StatusInternalServerError {
		level = slog.LevelWarn
	}
	rc.Log.LogAttrs(r.Context(), level, "received", append(attrs, x.attrs...)...)
}

// answer makes the checks that all services share, and asks the one.
func (rc *Receiver) answer(x *exchange, s service) (a answer) {
	defer func() {
		if r := recover(); r != nil {
			// The value may hold what was sent; its type and the stack do not.
			rc.Log.Error("panic", "type", fmt.Sprintf("%T", r), "stack", string(debug.Stack()))
			a = later(errors.New("panic"))
		}
	}()
	if s == none || rc.Environment == fiscal.Sandbox {
		return refuse(http.StatusNotFound, "El servicio no existe.", nil)
	}
	if !s.takes(x.r.Method) {
		a := refuse(http.StatusMethodNotAllowed, "El método no está permitido.", nil)
		a.allow = s.allow()
		return a
	}
	if refused := rc.admit(x, s); refused != nil {
		return *refused
	}
	switch s {
	case seedService:
		return rc.giveSeed(x)
	case tokenService:
		return rc.giveToken(x)
	case reception:
		return rc.receive(x)
	default:
		return rc.approve(x)
	}
}

// admit looks at the token, where one may come, and at the limit of those who
// have none. The document's own signature is the proof, so that no token is
// needed; a bad one is a mistake that its sender should hear of.
func (rc *Receiver) admit(x *exchange, s service) *answer {
	lines := x.r.Header.Values("Authorization")
	if (s == reception || s == approval) && len(lines) > 0 {
		caller, err := rc.readToken(lines, x.now)
		if err == nil {
			x.note("caller", caller.String())
			return nil
		}
		if rc.Limit == nil || rc.Limit(x.r) {
			a := refuse(http.StatusBadRequest, "El token no es válido o ha expirado.", err)
			return &a
		}
	} else if rc.Limit == nil || rc.Limit(x.r) {
		return nil
	}
	// Senders know 503 and come back; what else is not 200 they take for an
	// answer.
	a := later(errors.New("too many requests without a token"))
	return &a
}
