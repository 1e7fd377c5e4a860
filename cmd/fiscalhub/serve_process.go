package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/api"
	"github.com/fiscalhub/fiscalhub/internal/capacity"
	"github.com/fiscalhub/fiscalhub/internal/export"
	"github.com/fiscalhub/fiscalhub/internal/fence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/wake"
)

const (
	requestGrace = 20 * time.Second // for open requests when the process stops
	workGrace    = 30 * time.Second // for stages of the pipeline when the process stops
)

// Run serves until the process is asked to stop or the storage fails.
func (c serveCmd) Run(t *terminal) error {
	config, err := c.check()
	if err != nil {
		return err
	}
	t.noMigrate, t.mayCreate = c.NoMigrate, true
	return t.withKeys(func(s *store.Store, keys *seal.Keys, ring *access.Keyring) error {
		return c.serve(t, config, s, keys, ring)
	})
}

// serve opens the listeners and the parts of the service in the order in which
// they need each other, and runs them.
func (c serveCmd) serve(t *terminal, config serveConfig, s *store.Store, keys *seal.Keys, ring *access.Keyring) (err error) {
	log := t.log(c.LogLevel.Level)
	warnReplication(t.ctx, s, log)
	if config.env == fiscal.Production && slices.Equal(c.SecurityContact, []string{"mailto:security@fiscalhub.example"}) {
		log.Warn("/.well-known/security.txt has an address that does not exist. Name your own with --security-contact.")
	}
	var all listeners
	defer func() { all.close() }()
	listener, err := all.open(t.ctx, c.Listen)
	if err != nil {
		return err
	}
	if config.baseURL == "" {
		config.baseURL = config.scheme() + "://" + reachable(c.Listen, listener.Addr())
		if host, _, err := net.SplitHostPort(c.Listen); config.env == fiscal.Production || config.env != fiscal.Sandbox && err == nil && isUnspecified(host) {
			log.Warn("The links in answers and events lead to an address that others may not reach. Name the public address of the service with --base-url.", "address", config.baseURL)
		}
	}
	witness, err := c.openFence(t, config.env, s, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, witness.Close()) }()
	registry, err := newRegistry(config.env, s, log)
	if err != nil {
		return err
	}
	tracer := startTracer(t.ctx, s.Now, log)
	defer tracer.Close() // after the parts that make spans
	events, err := c.newEvents(config.env, config.baseURL, s, keys, registry, tracer, log)
	if err != nil {
		return err
	}
	defer events.close()
	runtime, err := c.newRuntime(runtimeOptions{
		env: config.env, store: s, keys: keys, fence: witness, onCommit: events.committed, log: log, metrics: registry,
		own: publicAddresses(t.ctx, config.baseURL), compareRate: c.CompareRate, noPeerTokens: c.neverAuthenticates(), tracer: tracer,
	})
	if err != nil {
		return err
	}
	defer runtime.close()
	console, err := newConsoleData(config, s, registry, log)
	if err != nil {
		return err
	}
	exports, err := t.newExports(config.env, s, runtime.pipeline, wake.Pace(c.Pace), log)
	if err != nil {
		return err
	}
	limits, clients := newCapacity(config.memory, log), capacity.NewClientFinder(config.proxies, s.Now, log)
	a, err := api.New(api.Options{
		Store: s, Pipeline: runtime.pipeline, Keyring: ring, Environment: config.env, BaseURL: config.baseURL, RateLimit: config.rateLimit,
		Capacity: limits, Clients: clients, SecurityContacts: c.SecurityContact, Now: s.Now, Log: log, Metrics: registry, Tracer: tracer,
		Endpoints: events.endpoints, Feed: events.feed, Sources: events.sources, Inbox: runtime.inbox,
		RequestLog: console.requestLog(),
	})
	if err != nil {
		return err
	}
	received, err := newReceiver(receiverParts{
		env: config.env, store: s, ring: ring, runtime: runtime, api: a, capacity: limits, clients: clients, log: log,
	})
	if err != nil {
		return err
	}
	all.limit = func(l net.Listener) net.Listener { return limits.Listen(l, clients) }
	own, err := c.openReceiver(t.ctx, &all, config)
	if err != nil {
		return err
	}
	pages, err := c.newConsole(t.ctx, &all, config, consoleParts{
		store: s, keys: keys, ring: ring, clients: clients, limits: limits, admit: a.AdmitVisitor, log: log,
		endpoints:   events.endpoints,
		trusted:     runtime.roots != nil,
		receiverURL: own.publicURL(config),
		pipeline:    runtime.pipeline,
		circuits:    runtime.circuits(),
		exports:     exports,
		services:    runtime.services(registry), clock: runtime.clock(), release: runtime.release(s, witness),
	})
	if err != nil {
		return err
	}
	if err := c.listen(t.ctx, &all, listener, own, config, a, received, pages, registry, log); err != nil {
		return err
	}
	if err := c.announce(t, config, own.url, pages, s, ring); err != nil {
		return err
	}
	p := process{
		log: log, store: s, keyring: ring, api: a, pipeline: runtime.pipeline, events: events, console: console, fence: witness,
		certificate: config.tls, listeners: all, drainDelay: c.DrainDelay,
		exports: pages.jobs(exports),
	}
	return p.run(t.ctx)
}

// announce prints the addresses of the service. In an empty sandbox it creates the
// demonstration first.
func (c serveCmd) announce(t *terminal, config serveConfig, receiverURL string, pages *servedConsole, s *store.Store, ring *access.Keyring) (err error) {
	v := startView{Version: version, Environment: config.env, Engine: s.Engine(), API: config.baseURL + "/v1", Docs: config.baseURL + "/docs", Console: pages.address()}
	if receiverURL != "" {
		v.Receiver = receiverURL + "/fe"
	}
	if config.env == fiscal.Sandbox && !c.NoBootstrap {
		if v.TaxpayerID, v.APIKey, err = t.bootstrap(s, access.NewCredentials(s, ring, s.Now)); err != nil {
			return err
		}
		if v.APIKey != "" { // the database was empty
			if v.ConsoleLink, err = pages.bootstrap(t.ctx, s); err != nil {
				return err
			}
		}
	}
	if err := t.printStart(v, config.baseURL); err != nil {
		return err
	}
	if c.ready != nil {
		c.ready(config.baseURL)
	}
	return nil
}

// process is the running parts of the service, and the order in which they stop.
type process struct {
	log         *slog.Logger
	store       *store.Store
	keyring     *access.Keyring
	api         *api.API
	pipeline    *pipeline.Pipeline
	events      *events
	console     *consoleData
	fence       *fence.Fence
	certificate *servedCertificate // nil: no TLS
	listeners   listeners
	drainDelay  time.Duration
	exports     *export.Jobs // nil: the process serves no console
}

// run serves until the process is asked to stop or a disk fails. It stops in this
// order: /readyz fails, the listeners close, open requests finish, stages of the
// pipeline finish.
func (p process) run(ctx context.Context) error {
	uncancelled := context.WithoutCancel(ctx)
	working, stopWork := context.WithCancel(uncancelled)
	defer stopWork()
	worked := p.startWork(working)
	served := p.listeners.start()

	var failure error
	select {
	case err := <-served:
		failure = lang.Errorf("server: %s",
			"servidor: %s", err)
	case <-p.store.Broken():
		failure = lang.Errorf("the database failed: the process stops, because it cannot acknowledge anything more",
			"la base de datos falló: el proceso se detiene, porque ya no puede confirmar nada más")
	case <-p.fence.Broken():
		failure = lang.Errorf("the witness could not be written: the process stops, because it cannot send anything more",
			"no se pudo escribir el testigo: el proceso se detiene, porque ya no puede enviar nada más")
	case <-ctx.Done():
		p.log.Info("Stopping.", "reason", context.Cause(ctx).Error())
		p.api.Stopping()
		p.drain(ctx)
	}
	p.api.Drain()
	stopWork() // nothing more is claimed; running stages and requests finish at the same time
	grace, cancel := context.WithTimeout(uncancelled, requestGrace)
	defer cancel()
	if err := p.listeners.shutdown(grace); err != nil {
		p.log.Warn("Some requests did not finish in time and were cut off.", "error", err.Error())
	}
	p.pipeline.Journal().Flush(uncancelled) // entries of the last requests
	select {
	case <-worked:
		p.console.flush(uncancelled)
	case <-time.After(workGrace):
		p.log.Warn("Some stages did not finish in time. When their leases expire, another process or the next start claims the jobs.")
	}
	return failure
}

// startWork starts the background work. The channel is closed when all of it has
// ended, after ctx.
func (p process) startWork(ctx context.Context) <-chan struct{} {
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		var all sync.WaitGroup
		all.Go(func() { p.fence.Run(ctx) })
		all.Go(func() { p.keyring.Run(ctx, p.log) })
		all.Go(func() { p.keyring.RunCheckpoints(ctx, p.log) })
		all.Go(func() { p.events.run(ctx) })
		all.Go(func() { p.console.run(ctx) })
		all.Go(func() { p.pipeline.Run(ctx) })
		if p.exports != nil {
			all.Go(func() { p.exports.Run(ctx) })
		}
		if p.certificate != nil {
			all.Go(func() { p.certificate.run(ctx, p.log) })
		}
		all.Wait()
	}()
	return worked
}

// drain gives load balancers time to see that /readyz fails. It waits only after
// SIGTERM: a person who presses Ctrl-C needs no delay.
func (p process) drain(ctx context.Context) {
	var stop stopSignal
	if errors.As(context.Cause(ctx), &stop) && stop.Signal == syscall.SIGTERM {
		time.Sleep(p.drainDelay)
	}
}

// warnReplication warns when a failover of the database server could lose commits.
func warnReplication(ctx context.Context, s *store.Store, log *slog.Logger) {
	r, err := s.Replication(ctx)
	switch {
	case err != nil:
		log.Warn("Cannot read the replication of the database.", "error", err.Error())
	case r.Standbys > 0 && !r.Known:
		log.Warn("The database has standbys, and this role may not see whether commits wait for them. A failover fences every number range. Grant pg_read_all_stats to the role.",
			"standbys", r.Standbys)
	case r.Standbys > 0 && !r.Lossless():
		log.Warn("The database has standbys that commits do not wait for. A failover may lose commits, and fences every number range. Name all standbys in synchronous_standby_names.",
			"standbys", r.Standbys, "synchronous", r.Synchronous)
	}
}
