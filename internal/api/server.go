package api

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/fiscalhub/fiscalhub/internal/capacity"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/openapi/reference"
)

const (
	// maxHeaderBytes makes 16 KiB in total, because net/http adds 4 KiB.
	maxHeaderBytes = 12 << 10

	// How much of the bodies of an HTTP/2 connection and of one of its streams the
	// server keeps before a handler reads it.
	connectionBuffer = 128 << 10
	streamBuffer     = 64 << 10

	readTime  = 30 * time.Second // to read a whole request
	writeTime = 60 * time.Second // from the end of the request header to the end of the answer; waits are added
)

// Handler serves the API, the health probes, the documentation, security.txt, and
// the metrics to clients on the same machine.
func (a *API) Handler(metrics prometheus.Gatherer) http.Handler {
	docs := reference.Handler(a.o.Log)
	metricsHandler := MetricsHandler(metrics)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.EscapedPath(); {
		case path == "/livez":
			a.counted("probe", a.readOnly(func(w http.ResponseWriter, r *http.Request) { a.probe(w, r, nil) })).ServeHTTP(w, r)
		case path == "/readyz":
			a.counted("probe", a.readOnly(func(w http.ResponseWriter, r *http.Request) { a.probe(w, r, a.ready) })).ServeHTTP(w, r)
		case path == "/metrics" && a.o.Clients.Local(r):
			a.readOnly(metricsHandler.ServeHTTP)(w, r)
		case path == "/docs" || strings.HasPrefix(path, "/docs/"):
			a.counted("address", docs.ServeHTTP).ServeHTTP(w, r)
		case path == securityPath && len(a.o.SecurityContacts) > 0:
			a.counted("address", a.readOnly(a.serveSecurity)).ServeHTTP(w, r)
		default:
			a.ServeHTTP(w, r)
		}
	})
}

// counted returns a handler that counts requests by the address of their client and
// refuses those beyond the limit. Probes have a window of their own, so that failed
// requests through a proxy do not make the probes of the same proxy fail.
func (a *API) counted(window string, next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown, ok := a.rateLimiter.countAddress(r.Context(), window+" "+a.o.Clients.Address(r))
		if ok {
			next(w, r)
			return
		}
		a.answer(w, r, func(x *exchange) error {
			x.window, x.counted = shown, true
			return a.addressExceeded(x)
		})
	})
}

// readOnly returns a handler that answers 405 to all methods but GET and HEAD.
func (a *API) readOnly(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			next(w, r)
			return
		}
		a.answer(w, r, func(*exchange) error { return methodNotAllowed("GET, HEAD") })
	}
}

// MetricsHandler serves metrics in the format of Prometheus.
func MetricsHandler(from prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(from, promhttp.HandlerOpts{})
}

// probe answers a health probe: 200, or 503 when check returns a reason.
func (a *API) probe(w http.ResponseWriter, r *http.Request, check func(context.Context) string) {
	status, state := http.StatusOK, "ok"
	if check != nil {
		if reason := check(r.Context()); reason != "" {
			status, state = http.StatusServiceUnavailable, reason
		}
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"status": state}) // if it fails the client has left, and will probe again
}

// ready returns why the service should get no requests, or an empty text: the process
// stops, the database does not answer, or the clock of this node differs from the
// database's. The tax authority does not count: invoices can be registered while it is
// down.
func (a *API) ready(ctx context.Context) string {
	if a.stopping.Load() || a.draining.Load() {
		return "stopping"
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if err := a.o.Store.Ready(ctx); err != nil {
		if a.unready.Swap("database") != "database" { // a balancer asks every few seconds
			a.o.Log.Warn("The database does not answer. /readyz answers 503.", "error", err.Error())
		}
		return "database unavailable"
	}
	if skew, known := a.o.Store.ClockSkew(); known && skew.Abs() > store.MaxClockSkew {
		if a.unready.Swap("clock") != "clock" {
			a.o.Log.Error("The clock of this node differs from the database's. /readyz answers 503: set the clock of this machine.", "ahead", skew.String())
		}
		return "clock skew"
	}
	a.unready.Store("")
	return ""
}

// NewServer returns an HTTP server with the timeouts and limits of the service.
func NewServer(h http.Handler, log *slog.Logger) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	return &http.Server{
		Handler:           capacity.CloseAfterChunks(withSecurityHeaders(h)),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       readTime,
		WriteTimeout:      writeTime,
		IdleTimeout:       120 * time.Second,
		MaxHeaderBytes:    maxHeaderBytes,
		Protocols:         protocols,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 128, MaxReceiveBufferPerConnection: connectionBuffer, MaxReceiveBufferPerStream: streamBuffer,
		},
		ConnContext: capacity.RememberConn,
		ErrorLog:    slog.NewLogLogger(log.Handler(), slog.LevelDebug),

		DisableGeneralOptionsHandler: true, // the API answers OPTIONS * like any unknown path
	}
}

// withSecurityHeaders returns a handler that sets the headers that every answer has, also
// an answer of a page or of a probe.
func withSecurityHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if r.TLS != nil {
			w.Header().Set("Strict-Transport-Security", "max-age=63072000") // two years
		}
		next.ServeHTTP(w, r)
	})
}

// Mount returns a handler that serves the paths for which serves returns true
// with other, and all other paths with next. The path is decoded. Like the API it refuses a request
// that has both Content-Length and Transfer-Encoding.
func Mount(next http.Handler, serves func(path string) bool, other http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !serves(r.URL.Path):
			next.ServeHTTP(w, r)
		case capacity.HasLengthAndChunks(r):
			w.WriteHeader(http.StatusBadRequest)
		default:
			other.ServeHTTP(w, r)
		}
	})
}

// AdmitCaller counts a request of a caller who is no client of the API but has proven its
// identity, as if it had a credential, and reports whether it is within the limit.
func (a *API) AdmitCaller(ctx context.Context, caller string) bool {
	_, ok := a.rateLimiter.countCredential(ctx, "caller "+caller, a.o.RateLimit)
	return ok
}

// Admit counts a request without a credential by the address of its client, and
// reports whether it is within the limit.
func (a *API) Admit(r *http.Request) bool { return a.admit(r, "other ") }

// AdmitVisitor is Admit for a request without a session to the console. Visitors have a
// window of their own.
func (a *API) AdmitVisitor(r *http.Request) bool { return a.admit(r, "visitor ") }

func (a *API) admit(r *http.Request, window string) bool {
	_, ok := a.rateLimiter.countAddress(r.Context(), window+a.o.Clients.Address(r))
	return ok
}
