package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"
	_ "time/tzdata" // the country's clock, on machines that have no zone files

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/api"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/receiver"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

type serveCmd struct {
	Environment    string        `help:"sandbox, certification or production." enum:"sandbox,certification,production" default:"sandbox"`
	Listen         string        `help:"Address to listen on; 127.0.0.1:8080 unless told." default:"127.0.0.1:8080" placeholder:"ADDR"`
	BaseURL        string        `name:"base-url" help:"Public address of the service, used in links; by default that of --listen." placeholder:"URL"`
	RateLimit      *int64        `help:"Requests a minute and credential; 0 turns limits off. By default 600 in the sandbox and 1200 elsewhere." placeholder:"N"`
	TLSCert        string        `name:"tls-cert" help:"Certificate chain file; with --tls-key the API speaks TLS itself." placeholder:"FILE"`
	TLSKey         string        `name:"tls-key" help:"Private key file of the certificate." placeholder:"FILE"`
	ConsoleListen  string        `help:"Address of the operators' console (not part of this version)." placeholder:"ADDR"`
	ReceiverListen string        `help:"Address of a listener for what other taxpayers call under /fe/; without it the API's listener serves it." placeholder:"ADDR"`
	MetricsListen  string        `help:"Address of a listener for /metrics; without it they are served to this machine alone." placeholder:"ADDR"`
	TrustedProxy   []string      `help:"Networks of the proxies whose X-Forwarded-For is believed; may be repeated." placeholder:"CIDR"`
	NoBootstrap    bool          `help:"Make no demonstration taxpayer and key on an empty sandbox database."`
	DrainDelay     time.Duration `help:"After SIGTERM, how long to go on answering while /readyz already says no." default:"5s"`
	LogLevel       slog.Level    `help:"debug, info, warn or error." default:"info"`
	liveFlags
	privateFlag

	ready func(baseURL string) `kong:"-"` // told where it is, when another command runs it
}

const (
	requestGrace = 20 * time.Second
	workGrace    = 30 * time.Second
)

// Run serves until the process is asked to stop or the storage fails.
func (c serveCmd) Run(t *terminal) (err error) {
	config, err := c.check()
	if err != nil {
		return err
	}
	if os.Getenv("GOGC") == "" {
		// What lives is little and what is allocated is much: collecting less
		// often costs a few megabytes.
		debug.SetGCPercent(400)
	}
	log := t.log(c.LogLevel)
	s, err := t.openStore()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	keys := t.masterKeys()
	ring, err := t.keyring(s, keys)
	if err != nil {
		return err
	}
	var all doors
	defer func() { all.close() }()
	listener, err := all.open(t.ctx, c.Listen)
	if err != nil {
		return err
	}
	if config.baseURL == "" {
		config.baseURL = config.scheme() + "://" + address(c.Listen, listener.Addr())
	}

	env := fiscal.Environment(c.Environment)
	fence, err := c.fence(t, env, s, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fence.Close()) }()
	venue, err := c.open(env, s, keys, fence, log)
	if err != nil {
		return err
	}
	defer venue.close()
	events, err := c.events(env, config.baseURL, s, keys, log)
	if err != nil {
		return err
	}
	defer events.close()
	flow := pipeline.New(pipeline.Options{
		Store: s, Plan: venue.plan, Env: env, Now: time.Now, Log: log, Stamp: venue.stamp, Pace: c.Pace, Roots: venue.roots, Told: events.told,
	})
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	a, err := api.New(api.Options{
		Store: s, Pipeline: flow, Keyring: ring, Environment: env, BaseURL: config.baseURL, RateLimit: config.rateLimit,
		Proxies: config.proxies, TLS: config.tls != nil, Now: time.Now, Log: log, Metrics: registry,
		Endpoints: events.endpoints, Feed: events.feed, Sources: events.sources, Relay: flow,
	})
	if err != nil {
		return err
	}
	received, err := newReceiver(env, s, ring, venue, flow, a, log)
	if err != nil {
		return err
	}
	handler, place := a.Handler(registry), ""
	if c.ReceiverListen == "" {
		handler = api.Beside(handler, receiver.Serves, received)
	} else {
		own, err := all.open(t.ctx, c.ReceiverListen)
		if err != nil {
			return err
		}
		place = config.scheme() + "://" + address(c.ReceiverListen, own.Addr())
		all.serve(config.wrap(api.LimitConnections(own)), api.Beside(http.NotFoundHandler(), receiver.Serves, received), log)
	}
	all.serve(config.wrap(api.LimitConnections(listener)), handler, log)
	if c.MetricsListen != "" {
		figures, err := all.open(t.ctx, c.MetricsListen)
		if err != nil {
			return err
		}
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", api.MetricsHandler(registry))
		all.serve(figures, mux, log)
	}
	t.greet(env, config.baseURL, place, s.Engine())
	if c.ready != nil {
		c.ready(config.baseURL)
	}
	if !c.NoBootstrap && env == fiscal.Sandbox {
		demo := demonstration{store: s, credentials: access.Credentials{Store: s, Ring: ring, Now: time.Now}}
		if err := demo.make(t, config.baseURL); err != nil {
			return err
		}
	}
	p := process{log: log, store: s, api: a, flow: flow, events: events, fence: fence, doors: all, drainDelay: c.DrainDelay}
	return p.run(t.ctx)
}

// doors are the listeners of the process, and what is served at them.
type doors struct {
	opened    []net.Listener
	listeners []net.Listener // as they are served
	servers   []*http.Server
}

func (d *doors) open(ctx context.Context, address string) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err == nil {
		d.opened = append(d.opened, listener)
	}
	return listener, err
}

func (d *doors) serve(at net.Listener, h http.Handler, log *slog.Logger) {
	d.listeners, d.servers = append(d.listeners, at), append(d.servers, api.NewServer(h, log))
}

func (d *doors) close() {
	for _, l := range d.opened {
		_ = l.Close() // those that were served are closed already
	}
}

// serveConfig is the command line, understood.
type serveConfig struct {
	baseURL   string
	rateLimit int64
	tls       *tls.Config
	proxies   []netip.Prefix
}

func (c serveCmd) check() (serveConfig, error) {
	config := serveConfig{baseURL: strings.TrimRight(c.BaseURL, "/"), rateLimit: api.DefaultRateLimit(fiscal.Environment(c.Environment))}
	if c.ConsoleListen != "" {
		return config, errors.New("--console-listen: this version has no console")
	}
	if config.baseURL != "" {
		if err := checkBase(config.baseURL); err != nil {
			return config, err
		}
	}
	env := fiscal.Environment(c.Environment)
	if err := errors.Join(c.liveFlags.check(env), c.privateFlag.check(env)); err != nil {
		return config, err
	}
	if c.RateLimit != nil {
		if config.rateLimit = *c.RateLimit; config.rateLimit < 0 {
			return config, usageError("--rate-limit: want 0 or a positive number")
		}
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return config, usageError("--tls-cert and --tls-key go together")
	}
	if c.TLSCert != "" {
		pair, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
		if err != nil {
			return config, fmt.Errorf("--tls-cert, --tls-key: %w", err)
		}
		config.tls = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	}
	for _, text := range c.TrustedProxy {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return config, usageError("--trusted-proxy: want a network like 10.0.0.0/8")
		}
		config.proxies = append(config.proxies, network)
	}
	return config, checkZone()
}

// address is what was asked to listen on, with the port that it got.
func address(asked string, got net.Addr) string {
	host, _, err := net.SplitHostPort(asked)
	_, port, errGot := net.SplitHostPort(got.String())
	if err != nil || errGot != nil {
		return got.String()
	}
	if host == "" {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

func (c serveConfig) scheme() string {
	if c.tls != nil {
		return "https"
	}
	return "http"
}

func (c serveConfig) wrap(l net.Listener) net.Listener {
	if c.tls == nil {
		return l
	}
	return tls.NewListener(l, c.tls)
}

// checkZone asserts what the domain takes for granted: the country is four
// hours behind UTC the whole year.
func checkZone() error {
	zone, err := time.LoadLocation("America/Santo_Domingo")
	if err != nil {
		return err
	}
	for _, month := range []time.Month{time.January, time.July} {
		if _, offset := time.Date(time.Now().Year(), month, 1, 0, 0, 0, 0, zone).Zone(); offset != -4*60*60 {
			return errors.New("the zone data give America/Santo_Domingo another offset than UTC-4: this version does not know that rule")
		}
	}
	return nil
}

// process is everything that runs, and how it stops.
type process struct {
	log        *slog.Logger
	store      *store.Store
	api        *api.API
	flow       *pipeline.Pipeline
	events     *events
	fence      *pipeline.Fence
	doors      doors
	drainDelay time.Duration
}

// run serves until told to stop, then finishes what is under way: first no
// longer ready, then no longer listening, then gone.
func (p process) run(ctx context.Context) error {
	life := context.WithoutCancel(ctx)
	working, stopWork := context.WithCancel(life)
	defer stopWork()
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		var others sync.WaitGroup
		others.Go(func() { p.fence.Run(working) })
		others.Go(func() { p.events.run(working) })
		p.flow.Run(working)
		others.Wait()
	}()
	served := make(chan error, len(p.doors.servers))
	for i, server := range p.doors.servers {
		go func() { served <- server.Serve(p.doors.listeners[i]) }()
	}

	var failure error
	select {
	case err := <-served:
		failure = fmt.Errorf("server: %w", err)
	case <-p.store.Broken():
		failure = errors.New("storage failed; nothing more can be acknowledged")
	case <-p.fence.Broken():
		failure = errors.New("the disk of the witness failed; nothing more can be sent")
	case <-ctx.Done():
		p.log.Info("stopping", "reason", context.Cause(ctx).Error())
		p.api.Stopping()
		p.pause(ctx)
	}
	p.api.Drain()
	grace, cancel := context.WithTimeout(life, requestGrace)
	defer cancel()
	for _, server := range p.doors.servers {
		if err := server.Shutdown(grace); err != nil {
			p.log.Warn("requests were cut off", "error", err.Error())
		}
	}
	stopWork()
	select {
	case <-worked:
	case <-time.After(workGrace):
		p.log.Warn("work was cut off; its leases run out by themselves")
	}
	return failure
}

// pause lets those who send requests see that they should go elsewhere. A
// person at a terminal is not kept waiting.
func (p process) pause(ctx context.Context) {
	var stop stopSignal
	if errors.As(context.Cause(ctx), &stop) && stop.Signal == syscall.SIGTERM {
		time.Sleep(p.drainDelay)
	}
}
