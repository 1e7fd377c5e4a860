package node

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/api"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

const (
	requestGrace = 20 * time.Second // for open requests when the process stops
	workGrace    = 30 * time.Second // for stages of the pipeline when the process stops
)

// A Server is a listener and what answers on it.
type Server struct {
	net.Listener
	http.Handler
}

// Limit adds the limits of connections to a listener.
func (n *Node) Limit(l net.Listener) net.Listener { return n.Capacity.Listen(l, n.Clients) }

// Serve works and answers on all servers until ctx ends or a disk fails. When ctx ends,
// /readyz fails, drain gives load balancers time to see it, the listeners close, open
// requests finish, and stages of the pipeline finish.
func (n *Node) Serve(ctx context.Context, all []Server, drain func(context.Context)) error {
	uncancelled := context.WithoutCancel(ctx)
	working, stopWork := context.WithCancel(uncancelled)
	defer stopWork()
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		n.Work(working)
	}()
	servers, served := make([]*http.Server, len(all)), make(chan error, len(all))
	for i, s := range all {
		servers[i] = api.NewServer(s.Handler, n.Log)
		go func() { served <- servers[i].Serve(s.Listener) }()
	}

	var failure error
	select {
	case err := <-served:
		failure = lang.Errorf("server: %s",
			"servidor: %s", err)
	case <-n.Store.Broken():
		failure = lang.Errorf("the database failed: the process stops, because it cannot acknowledge anything more",
			"la base de datos falló: el proceso se detiene, porque ya no puede confirmar nada más")
	case <-n.Fence.Broken():
		failure = lang.Errorf("the witness could not be written: the process stops, because it cannot send anything more",
			"no se pudo escribir el testigo: el proceso se detiene, porque ya no puede enviar nada más")
	case <-ctx.Done():
		n.Log.Info("Stopping.", "reason", context.Cause(ctx).Error())
		n.API.Stopping()
		drain(ctx)
	}
	n.API.Drain()
	stopWork() // nothing more is claimed; running stages and requests finish at the same time
	grace, cancel := context.WithTimeout(uncancelled, requestGrace)
	defer cancel()
	var late error
	for _, s := range servers {
		late = errors.Join(late, s.Shutdown(grace))
	}
	if late != nil {
		n.Log.Warn("Some requests did not finish in time and were cut off.", "error", late.Error())
	}
	n.Pipeline.Journal().Flush(uncancelled) // entries of the last requests
	select {
	case <-worked:
		n.requests.Flush(uncancelled)
	case <-time.After(workGrace):
		n.Log.Warn("Some stages did not finish in time. When their leases expire, another process or the next start claims the jobs.")
	}
	return failure
}

// warnReplication warns when a failover of the database server could lose commits.
func (n *Node) warnReplication(ctx context.Context) {
	r, err := n.Store.Replication(ctx)
	switch {
	case err != nil:
		n.Log.Warn("Cannot read the replication of the database.", "error", err.Error())
	case r.Standbys > 0 && !r.Known:
		n.Log.Warn("The database has standbys, and this role may not see whether commits wait for them. A failover fences every number range. Grant pg_read_all_stats to the role.",
			"standbys", r.Standbys)
	case r.Standbys > 0 && !r.Lossless():
		n.Log.Warn("The database has standbys that commits do not wait for. A failover may lose commits, and fences every number range. Name all standbys in synchronous_standby_names.",
			"standbys", r.Standbys, "synchronous", r.Synchronous)
	}
}

// below returns a handler that serves the API, its reference, the console and the receiver
// also below the path of the public address, for a proxy that passes the path on. The path
// itself is then what / is otherwise.
func below(baseURL string, next http.Handler) http.Handler {
	u, err := url.Parse(baseURL)
	if err != nil || u.Path == "" {
		return next
	}
	stripped := http.StripPrefix(u.Path, next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rest, ok := strings.CutPrefix(r.URL.Path, u.Path)
		if ok && (rest == "" || rest == "/") {
			home, address := *r, *r.URL
			home.URL, address.Path, address.RawPath = &address, "/", ""
			next.ServeHTTP(w, &home)
			return
		}
		if ok && slices.ContainsFunc([]string{"/v1/", "/docs", "/console", "/fe/"}, func(known string) bool { return strings.HasPrefix(rest, known) }) {
			stripped.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// recipients finds the taxpayers of an environment by RNC.
type recipients struct {
	store *store.Store
	env   fiscal.Environment
}

// ByRNC returns the scope of the taxpayer with an RNC, and false when there is
// none.
func (r recipients) ByRNC(ctx context.Context, rnc string) (store.Scope, bool, error) {
	found, err := r.store.TaxpayerByRNC(ctx, r.env, rnc)
	if errors.Is(err, store.ErrNotFound) {
		return store.Scope{}, false, nil
	}
	return store.Scope{Environment: r.env, TaxpayerID: found.ID}, err == nil, err
}

// MetricsHandler serves the metrics alone.
func (n *Node) MetricsHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", api.MetricsHandler(n.Metrics))
	return mux
}
