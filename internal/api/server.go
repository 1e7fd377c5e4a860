package api

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/fiscalhub/fiscalhub/openapi"
)

const (
	// maxHeaderBytes makes 16 KiB in all: the server allows 4 KiB more than told.
	maxHeaderBytes = 12 << 10

	readTime  = 30 * time.Second // of a whole request
	writeTime = 60 * time.Second // from the end of its head to that of its answer; waits come on top
)

// Handler serves the API and the pages beside it: probes, metrics for the
// machine itself, and the documentation.
func (a *API) Handler(metrics prometheus.Gatherer) http.Handler {
	docs := openapi.Docs("/v1/openapi.json")
	figures := MetricsHandler(metrics)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.EscapedPath(); {
		case path == "/livez":
			a.probe(w, r, nil)
		case path == "/readyz":
			a.probe(w, r, a.ready)
		case path == "/metrics" && loopback(r):
			figures.ServeHTTP(w, r)
		case path == "/docs" || strings.HasPrefix(path, "/docs/"):
			docs.ServeHTTP(w, r)
		default:
			a.ServeHTTP(w, r)
		}
	})
}

// MetricsHandler serves the figures for Prometheus.
func MetricsHandler(from prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(from, promhttp.HandlerOpts{})
}

func loopback(r *http.Request) bool {
	address, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && address.Addr().Unmap().IsLoopback() && r.Header.Get("X-Forwarded-For") == ""
}

// probe answers whether the process lives, or whether it may be sent requests.
func (a *API) probe(w http.ResponseWriter, r *http.Request, check func(context.Context) string) {
	status, state := http.StatusOK, "ok"
	if check != nil {
		if why := check(r.Context()); why != "" {
			status, state = http.StatusServiceUnavailable, why
		}
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"status": state}) // a prober that is gone asks again
}

// ready looks at the database alone: an authority that is down keeps nobody
// from registering invoices.
func (a *API) ready(ctx context.Context) string {
	if a.stopping.Load() || a.draining.Load() {
		return "stopping"
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if err := a.Store.Ready(ctx); err != nil {
		a.Log.Warn("not ready", "error", err.Error())
		return "database unavailable"
	}
	return ""
}

// NewServer makes an HTTP server with the limits of the service.
func NewServer(h http.Handler, log *slog.Logger) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       readTime,
		WriteTimeout:      writeTime,
		IdleTimeout:       120 * time.Second,
		MaxHeaderBytes:    maxHeaderBytes,
		Protocols:         protocols,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: 128},
		ConnContext:       rememberConn,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),

		DisableGeneralOptionsHandler: true, // OPTIONS * is an unknown path as any other
	}
}
