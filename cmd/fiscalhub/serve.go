package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"runtime/debug"
	"strings"
	"time"
	_ "time/tzdata" // the country's clock, on machines that have no zone files

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/api"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

type serveCmd struct {
	Environment    string        `help:"sandbox, certification or production." enum:"sandbox,certification,production" default:"sandbox"`
	Listen         string        `help:"Address to listen on; 127.0.0.1:8080 unless told." default:"127.0.0.1:8080" placeholder:"ADDR"`
	BaseURL        string        `name:"base-url" help:"Public address of the service, used in links; by default that of --listen." placeholder:"URL"`
	RateLimit      *int64        `help:"Requests per minute for each credential; 0 turns the limit off. By default 600 in the sandbox and 1200 elsewhere." placeholder:"N"`
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

// Run serves until the process is asked to stop or the storage fails.
func (c serveCmd) Run(t *terminal) (err error) {
	config, err := c.check()
	if err != nil {
		return err
	}
	if os.Getenv("GOGC") == "" {
		// The service allocates much and keeps little: collecting less often costs
		// a few megabytes.
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
	var all listeners
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
	events, err := c.events(env, config.baseURL, s, keys, log)
	if err != nil {
		return err
	}
	defer events.close()
	opened, err := c.open(env, s, keys, fence, events, log)
	if err != nil {
		return err
	}
	defer opened.close()
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	a, err := api.New(api.Options{
		Store: s, Pipeline: opened.pipeline, Keyring: ring, Environment: env, BaseURL: config.baseURL, RateLimit: config.rateLimit,
		Proxies: config.proxies, TLS: config.tls != nil, Now: time.Now, Log: log, Metrics: registry,
		Endpoints: events.endpoints, Feed: events.feed, Sources: events.sources, Inbox: opened.inbox,
	})
	if err != nil {
		return err
	}
	received, err := newReceiver(env, s, ring, opened, a, log)
	if err != nil {
		return err
	}
	receiverURL, err := c.listen(t.ctx, &all, listener, config, a, received, registry, log)
	if err != nil {
		return err
	}
	t.greet(env, config.baseURL, receiverURL, s.Engine())
	if c.ready != nil {
		c.ready(config.baseURL)
	}
	if !c.NoBootstrap && env == fiscal.Sandbox {
		demo := demonstration{store: s, credentials: access.NewCredentials(s, ring, time.Now)}
		if err := demo.make(t, config.baseURL); err != nil {
			return err
		}
	}
	p := process{log: log, store: s, api: a, pipeline: opened.pipeline, events: events, fence: fence, listeners: all, drainDelay: c.DrainDelay}
	return p.run(t.ctx)
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

func (c serveConfig) scheme() string {
	if c.tls != nil {
		return "https"
	}
	return "http"
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
