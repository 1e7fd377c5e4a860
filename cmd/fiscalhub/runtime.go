package main

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/dgii"
	"github.com/fiscalhub/fiscalhub/internal/fence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/inbox"
	"github.com/fiscalhub/fiscalhub/internal/live"
	"github.com/fiscalhub/fiscalhub/internal/overview"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/trace"
	"github.com/fiscalhub/fiscalhub/internal/wake"
	"github.com/fiscalhub/fiscalhub/internal/watch"
)

// envRuntime processes the documents of one environment. The sandbox has only the
// pipeline and the inbox; the other fields are nil there.
type envRuntime struct {
	pipeline     *pipeline.Pipeline
	inbox        *inbox.Inbox
	roots        *x509.CertPool // roots that other parties' signatures must chain to
	certificates *access.Certificates
	authority    *dgii.Client
}

// runtimeOptions are what newRuntime needs in addition to the flags.
type runtimeOptions struct {
	env      fiscal.Environment
	store    *store.Store
	keys     *seal.Keys
	fence    *fence.Fence      // nil without a witness
	onCommit func(store.Scope) // called after events of a taxpayer were committed
	log      *slog.Logger
	metrics  prometheus.Registerer
	own      []netip.Prefix // public addresses of the service, which no buyer may name as its own
	// noPeerTokens says that the service authenticates to no buyer's receiver.
	noPeerTokens bool
	// compareRate is how many questions per minute compare accepted documents with
	// the authority; 0 for none.
	compareRate int
	tracer      *trace.Tracer // nil: spans are not exported
}

// newRuntime builds the pipeline of an environment. The caller closes the
// runtime.
func (c liveFlags) newRuntime(o runtimeOptions) (*envRuntime, error) {
	r := &envRuntime{}
	if err := c.build(r, o); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// build sets the fields of a runtime. After an error the caller closes what was
// built.
func (c liveFlags) build(r *envRuntime, o runtimeOptions) (err error) {
	pace := wake.Pace(c.Pace)
	engine := pipeline.Options{
		Store: o.store, Plan: pipeline.Sandbox{Pace: pace}, Env: o.env, Now: o.store.Now, Log: o.log, Pace: pace, OnCommit: o.onCommit,
		OnStage: stageMetrics(o.metrics, o.env), Tracer: o.tracer,
	}
	if o.env != fiscal.Sandbox {
		if engine.Plan, err = c.buildPlan(r, o); err != nil {
			return err
		}
		if engine.Watcher, err = buildWatcher(r, o, pace); err != nil {
			return err
		}
		if engine.Stamp, err = c.authorityEnvironment(o.env); err != nil {
			return err
		}
	}
	if r.pipeline, err = pipeline.New(engine); err != nil {
		return err
	}
	r.inbox, err = inbox.New(inbox.Options{
		Store: o.store, Env: o.env, Now: o.store.Now, Log: o.log, Settler: engine.Plan, Roots: r.roots,
		Publish: r.pipeline.Publish, OnResponse: responseMetrics(o.metrics),
	})
	return err
}

// circuits returns a function that says which services of the authority this node does
// not call now. It returns nil in the sandbox.
func (r *envRuntime) circuits() func() map[string]bool {
	if r.authority == nil {
		return nil
	}
	return func() map[string]bool {
		all := map[string]bool{}
		for _, c := range r.authority.Circuits() {
			all[c.Service] = c.Open
		}
		return all
	}
}

// services returns a function that reads what this node has seen of the services of the
// authority. It returns nil in the sandbox.
func (r *envRuntime) services(metrics prometheus.Gatherer) func() ([]overview.ServiceFigures, error) {
	if r.authority == nil {
		return nil
	}
	return func() ([]overview.ServiceFigures, error) { return overview.ServicesOf(metrics) }
}

// clock returns a function that compares the authority's clock with this node's. It
// returns nil in the sandbox.
func (r *envRuntime) clock() func() (ahead time.Duration, known bool) {
	if r.authority == nil {
		return nil
	}
	return r.authority.Clock
}

// release returns a function that releases the fenced number ranges of a taxpayer. It
// returns nil in the sandbox.
func (r *envRuntime) release(s *store.Store, witness *fence.Fence) func(ctx context.Context, scope store.Scope) error {
	if r.authority == nil {
		return nil
	}
	releaser := fence.Releaser{Store: s, Authority: r.authority, Identities: r.certificates, Fence: witness, Now: s.Now}
	return func(ctx context.Context, scope store.Scope) error {
		_, err := releaser.Release(ctx, scope)
		return err
	}
}

// applyWaiting applies messages of buyers that waited: for their document, or for their
// signer to become known.
func (r *envRuntime) applyWaiting(ctx context.Context) error {
	_, err := r.inbox.ApplyConfirmed(ctx)
	return errors.Join(err, r.inbox.ApplyParked(ctx))
}

// buildWatcher builds the background checks of a live environment.
func buildWatcher(r *envRuntime, o runtimeOptions, pace wake.Pace) (*watch.Watcher, error) {
	var comparer *watch.Comparer
	if o.compareRate > 0 {
		var err error
		comparer, err = watch.NewComparer(watch.ComparerOptions{
			Store: o.store, Env: o.env, Authority: r.authority, Lookups: r.authority.Spare(), Identities: r.certificates, PerMinute: o.compareRate,
			Now: o.store.Now, Log: o.log, Pace: pace, Metrics: o.metrics,
			AskAgain: func(ctx context.Context, tx *store.Tx, scope store.Scope, documentID string) error {
				return live.AskAgain(ctx, tx, scope, documentID, o.store.Now())
			},
		})
		if err != nil {
			return nil, err
		}
	}
	return watch.New(watch.Options{
		Store: o.store, Env: o.env, Authority: r.authority, Now: o.store.Now, Log: o.log, Pace: pace,
		ApplyParked: r.applyWaiting, Comparer: comparer, Metrics: o.metrics,
	})
}

// buildPlan builds the plan of a live environment, and sets the fields of r that
// the plan uses.
func (c liveFlags) buildPlan(r *envRuntime, o runtimeOptions) (plan *live.Plan, err error) {
	if c.Trust == "" {
		o.log.Warn("No trusted roots are configured (--trust). The service refuses every acknowledgement and every response of a buyer.")
	}
	if r.roots, err = c.roots(); err != nil {
		return nil, err
	}
	if r.authority, err = c.newClient(o.env, clientOptions{
		roots: r.roots, now: o.store.Now, onExchange: exchangeMetrics(o.metrics), own: o.own, log: o.log,
		noPeerTokens: o.noPeerTokens, onPeer: peerMetrics(o.metrics),
	}); err != nil {
		return nil, err
	}
	o.metrics.MustRegister(newCircuitCollector(r.authority))
	r.certificates = access.NewCertificates(o.store, o.keys, o.store.Now)
	return live.New(live.Options{
		Store: o.store, Env: o.env, Authority: r.authority, Identities: r.certificates, Now: o.store.Now, Log: o.log,
		Pace: wake.Pace(c.Pace), Fence: o.fence,
	})
}

// close closes the connections to the authority.
func (r *envRuntime) close() {
	if r.authority != nil {
		r.authority.Close()
	}
}

// publicAddresses returns the public addresses of the host of a URL. A buyer must not
// make the service call itself. A host that does not resolve has none.
func publicAddresses(ctx context.Context, baseURL string) []netip.Prefix {
	u, err := url.Parse(baseURL)
	if err != nil {
		return nil
	}
	found, err := net.DefaultResolver.LookupHost(ctx, u.Hostname())
	if err != nil {
		return nil
	}
	var all []netip.Prefix
	for _, text := range found {
		a, err := netip.ParseAddr(text)
		if err != nil || a.IsLoopback() || a.IsPrivate() || a.IsUnspecified() {
			continue // never called anyway
		}
		all = append(all, netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()))
	}
	return all
}
