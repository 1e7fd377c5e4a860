// Package api is the public HTTP API: it reads requests, asks the domain and
// the pipeline, and answers in the contract's envelopes. The checks of a
// request come in one order, told by serve; one table in errors.go turns
// errors into answers.
package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/cursor"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live"
	"github.com/fiscalhub/fiscalhub/internal/notify"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/openapi"
)

// Options are what an API is made of.
type Options struct {
	Store       *store.Store
	Pipeline    *pipeline.Pipeline
	Keyring     *access.Keyring
	Environment fiscal.Environment
	BaseURL     string // of links, without a slash at the end
	RateLimit   int64  // requests a minute and credential; 0: off
	Proxies     []netip.Prefix
	TLS         bool
	Now         func() time.Time
	Log         *slog.Logger
	Metrics     prometheus.Registerer

	// What tells integrators, and hears others. The sandbox has none of it.
	Endpoints *notify.Endpoints
	Feed      *notify.Feed
	Sources   *notify.Sources
	Inbox     Inbox
}

// Inbox takes in the messages that sources pass on.
type Inbox interface {
	Receive(ctx context.Context, in live.Inbound) (live.Received, error)
}

// API answers requests.
type API struct {
	Options
	auth     *access.Authenticator
	cursors  cursor.Keys
	windows  *windows
	gate     *gate // of all requests
	gates    *gates
	waits    waits
	held     atomic.Int64 // connections that wait before they are read again
	metrics  *metrics
	routes   []route
	openapi  []byte
	stopping atomic.Bool // not ready for more, but still answering
	draining atomic.Bool // refusing
}

// New makes an API.
func New(opt Options) (*API, error) {
	document, err := openapi.JSON()
	if err != nil {
		return nil, err
	}
	a := &API{
		openapi: document,
		Options: opt,
		cursors: opt.Keyring.Cursors(),
		windows: newWindows(opt),
		gate:    newGate(maxExecuting, maxWaiting),
		gates:   newGates(),
		metrics: newMetrics(opt.Metrics),
	}
	a.auth = access.NewAuthenticator(opt.Store, opt.Keyring, opt.Now, a.touch)
	a.routes = a.table()
	return a, nil
}

func (a *API) touch(id string, at time.Time) {
	a.Pipeline.Journal().Add(func(ctx context.Context, tx *store.Tx) error {
		return tx.TouchCredential(ctx, id, at)
	})
}

// Stopping tells those who ask that no more requests should be sent here.
func (a *API) Stopping() { a.stopping.Store(true) }

// Drain refuses new requests from now on. Those under way are finished, and
// those that wait for news are answered without.
func (a *API) Drain() {
	a.draining.Store(true)
	a.waits.end()
}

// ServeHTTP answers one request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := a.begin(w, r)
	if err := a.attempt(x); err != nil {
		a.refuse(x, err)
	}
	a.end(x)
	nextHead(r)
	if x.shed {
		a.hold(x)
	}
}

// serve makes the checks in their order. A request with several defects is
// answered for the first of them.
func (a *API) serve(x *exchange) error {
	if ambiguous(x.r) {
		return badRequest("a request has a Content-Length or chunks, not both")
	}
	if err := a.admit(x); err != nil {
		return err
	}
	defer x.places.leave()

	route, params, err := a.match(x)
	if err != nil {
		return err
	}
	x.route, x.params = route.name, params
	if route.ends.announce(x.w.Header(), a.Now()) {
		return notFound() // the closed list of codes has no "gone"
	}
	if route.public != nil {
		return route.public(x)
	}
	if err := a.authenticate(x); err != nil {
		return err
	}
	allowed := a.takePlace(x)
	if x.credential.Environment != a.Environment {
		return forbidden("this credential belongs to the environment %s and this is %s", x.credential.Environment, a.Environment)
	}
	if !allowed {
		return rateLimited(x.window.reset-a.Now().Unix(), "the limit of requests in this window is used up")
	}
	if err := a.slot(x); err != nil {
		return err
	}
	if err := a.authorize(x, route); err != nil {
		return err
	}
	if route.emits && (a.Environment == fiscal.Sandbox || a.Endpoints == nil) {
		return forbidden("the environment %s sends no events", a.Environment)
	}
	return route.handle(x)
}

// admit lets a bounded number of requests in.
func (a *API) admit(x *exchange) (err error) {
	if a.draining.Load() {
		x.w.Header().Set("Connection", "close")
		return unavailable("the service is stopping; send the same request again")
	}
	x.places.service, err = a.gate.enter(x.r.Context())
	if err != nil {
		return a.overloaded()
	}
	return nil
}

// authenticate reads and checks the credential.
func (a *API) authenticate(x *exchange) error {
	key, err := bearer(x.r)
	if err != nil {
		return a.denied(x, err)
	}
	x.credential, err = a.auth.Authenticate(x.r.Context(), key)
	if errors.Is(err, access.ErrDenied) {
		return a.denied(x, errToken)
	}
	if err != nil {
		return err
	}
	x.authenticated = true
	return nil
}

// denied answers 401 while the client's address may still fail.
func (a *API) denied(x *exchange, err error) error {
	if !a.anonymous(x) {
		return rateLimited(x.window.reset-a.Now().Unix(), "too many failed requests from this address")
	}
	return err
}

// authorize checks the scopes of the operation and the taxpayer of the path.
// It looks at nothing stored, so a taxpayer that exists and one that does not
// are answered alike.
func (a *API) authorize(x *exchange, route *route) error {
	var missing []string
	for _, s := range route.scopes {
		if !slices.Contains(x.credential.Scopes, s) {
			missing = append(missing, string(s))
		}
	}
	if len(missing) > 0 {
		return insufficientScope(missing)
	}
	id, ok := parseUUID(x.params["taxpayer_id"])
	switch {
	case !ok && route.named:
		return notFound()
	case !ok:
		return badRequest("the taxpayer_id of the path is not a UUID",
			fiscal.Problem{Field: "taxpayer_id", Code: fiscal.CodeInvalidFormat, Message: "want a UUID"})
	case id != x.credential.TaxpayerID && route.named:
		return notFound()
	case id != x.credential.TaxpayerID:
		return forbidden("this credential is not allowed for this taxpayer")
	}
	x.scope = store.Scope{Environment: a.Environment, TaxpayerID: id}
	return nil
}

var (
	// errNoCredential: nothing was presented, so no error code is told (RFC 6750 §3.1).
	errNoCredential = unauthorized(`Bearer realm="fh"`, "a credential is needed: Authorization: Bearer <API_KEY>")
	errToken        = unauthorized(`Bearer realm="fh", error="invalid_token"`, "the credential is not valid")
)

// maxAuthorization bounds the header that is looked at.
const maxAuthorization = 256

// bearer reads the key of a request. Nothing is looked up for one that is
// malformed.
func bearer(r *http.Request) (apikey.Key, error) {
	lines := r.Header.Values("Authorization")
	if len(lines) > 1 {
		return apikey.Key{}, errToken
	}
	if len(lines) == 0 {
		return apikey.Key{}, errNoCredential
	}
	if len(lines[0]) > maxAuthorization {
		return apikey.Key{}, errToken
	}
	scheme, token, _ := strings.Cut(lines[0], " ")
	token = strings.Trim(token, " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return apikey.Key{}, errNoCredential
	}
	key, err := apikey.Parse(token)
	if err != nil {
		return apikey.Key{}, errToken
	}
	return key, nil
}
