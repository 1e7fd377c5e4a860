// Package api is the public HTTP API. It reads requests, calls the domain and
// the pipeline, and answers with the envelopes of the contract. The method
// serve makes the checks of a request in one fixed order; the function
// toAPIError in errors.go turns every error into an answer.
package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/audit"
	"github.com/fiscalhub/fiscalhub/internal/capacity"
	"github.com/fiscalhub/fiscalhub/internal/cursor"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/inbox"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/notify"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/trace"
	"github.com/fiscalhub/fiscalhub/openapi"
)

// Options configure an API.
type Options struct {
	Store       *store.Store
	Pipeline    *pipeline.Pipeline
	Keyring     *access.Keyring
	Environment fiscal.Environment
	BaseURL     string // start of all links, without a slash at the end
	RateLimit   int64  // requests per minute for each credential; 0 switches all limits off
	Capacity    *capacity.Capacity
	Clients     *capacity.ClientFinder
	Now         func() time.Time
	Log         *slog.Logger
	Metrics     prometheus.Registerer // nil: metrics are not registered
	Tracer      *trace.Tracer         // nil: spans are not exported

	SecurityContacts []string // addresses (URI) for reports of vulnerabilities; empty: no security.txt

	// RequestLog, if set, gets every request under /v1/ after its answer.
	RequestLog RequestLog

	// The services below send and receive events. The sandbox does not use
	// them, and they may be nil.
	Endpoints *notify.Endpoints
	Feed      *notify.Feed
	Sources   *notify.Sources
	Inbox     Inbox
}

// check returns an error for the first option that is missing or not valid.
func (o Options) check() error {
	switch {
	case o.Store == nil:
		return errors.New("api: options: Store is missing")
	case o.Pipeline == nil:
		return errors.New("api: options: Pipeline is missing")
	case o.Keyring == nil:
		return errors.New("api: options: Keyring is missing")
	case o.Capacity == nil:
		return errors.New("api: options: Capacity is missing")
	case o.Clients == nil:
		return errors.New("api: options: Clients is missing")
	case o.Now == nil:
		return errors.New("api: options: Now is missing")
	case o.Log == nil:
		return errors.New("api: options: Log is missing")
	case o.BaseURL == "" || strings.HasSuffix(o.BaseURL, "/"):
		return fmt.Errorf("api: options: BaseURL %q must be an address without a slash at the end", o.BaseURL)
	case o.RateLimit < 0:
		return fmt.Errorf("api: options: RateLimit %d must not be negative", o.RateLimit)
	}
	if _, err := fiscal.ParseEnvironment(string(o.Environment)); err != nil {
		return fmt.Errorf("api: options: Environment: %w", err)
	}
	return nil
}

// Inbox stores and processes the messages that sources forward.
type Inbox interface {
	Receive(ctx context.Context, in inbox.Message) (inbox.Received, error)
}

// RequestLog keeps a log of requests for the console. Add must not block.
type RequestLog interface {
	Add(q store.LoggedRequest)
}

// API is the HTTP handler of the public API.
type API struct {
	o        Options
	basePath string // of o.BaseURL, without a slash at the end; often empty

	auth        *access.Authenticator
	refusals    *refusals
	cursors     func() cursor.Keys
	rateLimiter *rateLimiter
	lookups     lookups
	waits       waits
	delayed     atomic.Int64 // connections that delayNextRead holds now
	metrics     *metrics
	routes      []route
	openapi     []byte
	stopping    atomic.Bool  // /readyz answers 503; requests are still served
	draining    atomic.Bool  // new requests are refused
	unready     atomic.Value // why /readyz last answered 503 and logged it; a string
}

// New returns an API. It fails when an option is missing or not valid, or when
// the embedded OpenAPI document cannot be read.
func New(opt Options) (*API, error) {
	if err := opt.check(); err != nil {
		return nil, err
	}
	base, err := url.Parse(opt.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("api: options: BaseURL: %w", err)
	}
	document, err := openapi.JSONAt(base.EscapedPath())
	if err != nil {
		return nil, err
	}
	a := &API{
		o: opt, basePath: base.EscapedPath(),
		cursors:     func() cursor.Keys { return opt.Keyring.Cursors() },
		rateLimiter: newRateLimiter(opt.RateLimit, opt.Now, opt.Store),
		refusals:    newRefusals(opt.Log, opt.Now),
		metrics:     newMetrics(opt.Metrics, opt.Capacity),
		openapi:     document,
	}
	a.auth = access.NewAuthenticator(opt.Store, opt.Keyring, opt.Now, a.recordUse)
	a.routes = a.table()
	return a, nil
}

// recordUse stores when a credential was last used, after the request.
func (a *API) recordUse(credentialID string, at time.Time) {
	a.o.Pipeline.Journal().Add(func(ctx context.Context, tx *store.Tx) error {
		return tx.TouchCredential(ctx, credentialID, at)
	})
}

// Stopping makes /readyz answer 503, so that load balancers send no more
// requests here. Requests that arrive are still served.
func (a *API) Stopping() { a.stopping.Store(true) }

// Drain refuses new requests from now on. Requests that are executing finish;
// requests that wait for an event or a verdict are answered without it.
func (a *API) Drain() {
	a.draining.Store(true)
	a.waits.end()
}

// ServeHTTP answers one request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.answer(w, r, a.serve)
}

// answer answers one request with a function, and logs it.
func (a *API) answer(w http.ResponseWriter, r *http.Request, serve func(*exchange) error) {
	x := a.begin(w, r)
	defer x.held.Release()
	if err := a.recovering(x, serve); err != nil {
		a.respondError(x, err)
	}
	a.finish(x)
	x.linger()
	if x.shed {
		a.delayNextRead(x)
	}
}

// serve makes the checks in their order. A request with several problems is
// answered for the first one. No slot is held before the request has passed the
// checks of its header.
func (a *API) serve(x *exchange) error {
	if capacity.HasLengthAndChunks(x.r) {
		return badRequest(lang.Messagef("the request has both Content-Length and Transfer-Encoding; send only one of them",
			"la solicitud tiene Content-Length y Transfer-Encoding; envíe solo uno de ellos"))
	}
	if a.draining.Load() {
		x.w.Header().Set("Connection", "close")
		return stopping()
	}
	route, params, err := a.match(x)
	if err != nil {
		return err
	}
	x.route, x.params = route.name, params
	if route.retirement.announce(x.w.Header(), a.o.Now()) {
		return notFound() // the closed list of codes has no "gone"
	}
	if route.public != nil {
		return route.public(x)
	}
	if err := a.authenticate(x); err != nil {
		return err
	}
	if err := a.checkClient(x); err != nil {
		return err
	}
	allowed := a.countRequest(x)
	if x.credential.Environment != a.o.Environment {
		a.refuse(x, reasonWrongEnvironment, x.credential.Prefix, x.credential)
		return forbidden(lang.Messagef("this credential belongs to the environment %s, but this service is %s",
			"esta credencial pertenece al ambiente %s, pero este servicio es %s", x.credential.Environment, a.o.Environment))
	}
	if err := a.checkSuspension(x); err != nil {
		return err
	}
	if !allowed {
		return a.rateLimitExceeded(x)
	}
	if err := a.authorize(x, route); err != nil {
		return err
	}
	if route.webhooks && (a.o.Environment == fiscal.Sandbox || a.o.Endpoints == nil) {
		return forbidden(lang.Messagef("the environment %s does not send events", "el ambiente %s no envía eventos", a.o.Environment))
	}
	if route.webhooks {
		x.r = x.r.WithContext(audit.WithCaller(x.r.Context(), audit.Caller{
			Actor: "credential:" + x.credential.ID, From: x.address, RequestID: x.id,
		}))
	}
	if !route.bodyFirst {
		if err := a.takeSlot(x); err != nil {
			return err
		}
	}
	return route.handle(x)
}
