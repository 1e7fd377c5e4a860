package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/capacity"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/metric"
	"github.com/fiscalhub/fiscalhub/internal/node"
	"github.com/fiscalhub/fiscalhub/internal/otlp"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/trace"
	"github.com/fiscalhub/fiscalhub/internal/wake"
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

// serve opens the listeners and the node, and runs it.
func (c serveCmd) serve(t *terminal, config serveConfig, s *store.Store, keys *seal.Keys, ring *access.Keyring) (err error) {
	log := t.log(c.LogLevel.Level)
	all, err := c.listeners(t.ctx)
	if err != nil {
		return err
	}
	defer all.close()
	if config.baseURL == "" {
		config.baseURL = config.address(c.Listen, all.api)
		if host, _, err := net.SplitHostPort(c.Listen); config.env == fiscal.Production || config.env != fiscal.Sandbox && err == nil && isUnspecified(host) {
			log.Warn("The links in answers and events lead to an address that others may not reach. Name the public address of the service with --base-url.", "address", config.baseURL)
		}
	}
	c.warn(config, log)
	tracer := startTracer(t.ctx, s.Now, log)
	defer tracer.Close() // after the parts that make spans
	of := node.Config{
		Environment: config.env, Store: s, Keys: keys, Keyring: ring, BaseURL: config.baseURL, Log: log, Tracer: tracer, Pace: wake.Pace(c.Pace),
		Metrics: newRegistry(config.env, s.Engine()), Capacity: newCapacity(config.memory, log), Clients: capacity.NewClientFinder(config.proxies, s.Now, log),
		RateLimit: config.rateLimit, SecurityContacts: c.SecurityContact, KeepRequests: config.consoleData,
		CompareRate: c.CompareRate, Console: c.console(t, config, all.console),
	}
	if all.receiver != nil {
		of.ReceiverURL = config.address(c.ReceiverListen, all.receiver)
	}
	if of.Guard, err = c.guard(); err != nil {
		return err
	}
	if err := c.liveConfig(t, &of); err != nil {
		return err
	}
	of.Authority.NoPeerAuthentication = c.neverAuthenticates()
	n, err := node.Open(t.ctx, of)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	if err := c.announce(t, n); err != nil {
		return err
	}
	if config.tls != nil {
		following, stop := context.WithCancel(context.WithoutCancel(t.ctx))
		var follow sync.WaitGroup
		follow.Go(func() { config.tls.run(following, log) })
		defer follow.Wait()
		defer stop()
	}
	return n.Serve(t.ctx, c.servers(all, config, n), c.drain)
}

// warn logs what the flags leave open.
func (c serveCmd) warn(config serveConfig, log *slog.Logger) {
	if config.env == fiscal.Production && slices.Equal(c.SecurityContact, []string{"mailto:security@fiscalhub.example"}) {
		log.Warn("/.well-known/security.txt has an address that does not exist. Name your own with --security-contact.")
	}
	if c.WebhookAllowPrivate {
		log.Warn("Webhooks may go to private addresses (--webhook-allow-private). Any user who can create an endpoint can make this machine call any address.")
	}
	if config.env != fiscal.Sandbox && c.Trust == "" {
		log.Warn("No trusted roots are configured (--trust). The service refuses every acknowledgement and every response of a buyer.")
	}
}

// announce prints the addresses of the service. In an empty sandbox it creates the
// demonstration first.
func (c serveCmd) announce(t *terminal, n *node.Node) (err error) {
	v := startView{Version: version, Environment: n.Environment, Engine: n.Store.Engine(), API: n.BaseURL + "/v1", Docs: n.BaseURL + "/docs"}
	if n.Console != nil {
		v.Console = n.Config.Console.BaseURL + "/console/"
	}
	if n.ReceiverURL != "" {
		v.Receiver = n.ReceiverURL + "/fe"
	}
	if n.Environment == fiscal.Sandbox && !c.NoBootstrap {
		if v.TaxpayerID, v.APIKey, err = t.bootstrap(n.Store, access.NewCredentials(n.Store, n.Keyring, n.Store.Now)); err != nil {
			return err
		}
		if v.APIKey != "" { // the database was empty
			if v.ConsoleLink, err = n.InviteOperator(t.ctx, "demo", "demo@localhost"); err != nil {
				return err
			}
		}
	}
	if err := t.printStart(v, n.BaseURL); err != nil {
		return err
	}
	if c.ready != nil {
		c.ready(n.BaseURL)
	}
	return nil
}

// drain gives load balancers time to see that /readyz fails. It waits only after
// SIGTERM: a person who presses Ctrl-C needs no delay.
func (c serveCmd) drain(ctx context.Context) {
	var stop stopSignal
	if errors.As(context.Cause(ctx), &stop) && stop.Signal == syscall.SIGTERM {
		time.Sleep(c.DrainDelay)
	}
}

// newRegistry returns a registry with the metrics of the program.
func newRegistry(env fiscal.Environment, engine string) *prometheus.Registry {
	build := metric.NewGauges(metric.BuildInfo)
	build.WithLabelValues(version, revision(), runtime.Version(), string(env), engine).Set(1)
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), build)
	return registry
}

// memoryLimit returns the memory that the process may use: the value of
// --memory-limit, or what the machine has for it. It returns a usageError when the
// value is not a size or too small.
func memoryLimit(flag string) (capacity.Memory, error) {
	if flag == "" {
		return capacity.MachineMemory(os.DirFS("/")), nil
	}
	bytes, err := capacity.ParseSize(flag)
	if err != nil {
		return capacity.Memory{}, wrongUsage("--memory-limit: %q must be a size such as 512MiB or 2GiB",
			"--memory-limit: %q debe ser un tamaño como 512MiB o 2GiB", flag)
	}
	if bytes < capacity.MinMemory {
		return capacity.Memory{}, wrongUsage("--memory-limit must be at least 128MiB",
			"--memory-limit debe ser 128MiB o más")
	}
	return capacity.Memory{Bytes: bytes, Source: "--memory-limit"}, nil
}

// newCapacity returns the capacity of the process, and limits its heap. The
// variables GOMEMLIMIT and GOGC of the Go runtime win over the limit.
func newCapacity(m capacity.Memory, log *slog.Logger) *capacity.Capacity {
	if m.Bytes == 0 {
		log.Warn("Cannot read the memory of this machine. The process has no memory limit; set one with --memory-limit.")
		return capacity.New(capacity.DefaultLimits(math.MaxInt64, runtime.GOMAXPROCS(0)))
	}
	log.Info("The process has a memory limit.", "bytes", m.Bytes, "source", m.Source)
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(capacity.HeapLimit(m.Bytes))
	}
	if os.Getenv("GOGC") == "" {
		// The service allocates much and keeps little: a rarer garbage collection
		// saves time. The limit bounds what it costs.
		debug.SetGCPercent(400)
	}
	return capacity.New(capacity.DefaultLimits(m.Bytes, runtime.GOMAXPROCS(0)))
}

// startTracer starts the export of traces when the standard environment variables of
// OpenTelemetry ask for it, and returns nil when they do not. The caller closes the
// tracer. A variable that is not valid turns the export off with a warning: invoices are
// worth more than their traces.
func startTracer(ctx context.Context, now func() time.Time, log *slog.Logger) *trace.Tracer {
	tracer, err := newTracer(now, log)
	if err != nil {
		log.Warn("Traces are not exported. Correct the environment variable and restart the service to export them.", "error", err.Error())
	}
	if tracer != nil {
		go tracer.Run(context.WithoutCancel(ctx)) // until Close
	}
	return tracer
}

// newTracer returns a tracer as the environment variables ask for it, or nil when they ask
// for none. It fails when a variable is not valid.
func newTracer(now func() time.Time, log *slog.Logger) (*trace.Tracer, error) {
	config, on, err := trace.ReadConfig(os.Getenv, version)
	if err != nil || !on {
		return nil, err
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConns: 1, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: 10 * time.Second}
	target := config.Target()
	if file := target.CertificateFile; file != "" {
		pem, err := os.ReadFile(file)
		roots := x509.NewCertPool()
		if err == nil && !roots.AppendCertsFromPEM(pem) {
			err = lang.Errorf("the file must contain certificates in PEM", "el archivo debe contener certificados en PEM")
		}
		if err != nil {
			return nil, lang.Errorf("the file of OTEL_EXPORTER_OTLP_CERTIFICATE: %s", "el archivo de OTEL_EXPORTER_OTLP_CERTIFICATE: %s", err)
		}
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	}
	tracer, err := trace.New(trace.Options{Config: config, Sender: otlp.New(target, &http.Client{Transport: transport}), Now: now, Log: log})
	if err != nil {
		return nil, err
	}
	log.Info("Traces are exported.", "endpoint", config.Endpoint())
	return tracer, nil
}
