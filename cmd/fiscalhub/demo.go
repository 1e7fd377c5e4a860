package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/client"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

type demoCmd struct {
	Exit bool   `help:"Exit when every invoice has its final status. --json does so too."`
	Out  string `help:"Folder to write the XML and PDF files to. The demo does not remove them." placeholder:"DIR"`
}

// The taxpayers and the signer of the demo. None of them exists.
const (
	demoIssuer   = "199000102"
	demoReceiver = "199000021"
	demoOther    = "199000031"
	demoPerson   = "00112345678"
	demoNumbers  = 1000

	demoPace    = 20               // divides every background wait
	demoTimeout = 60 * time.Second // for each step; a few seconds are usual

	demoCompareRate = 30 // as serve has it by default
)

// demo is a running demonstration: a simulated authority, the service with a
// temporary data folder, a client of its API, and a server that receives its
// webhooks.
type demo struct {
	t       *terminal // prints to the user
	service *terminal // of the service; its data folder is temporary
	sim     *simulator.Simulator
	scope   store.Scope
	key     string
	baseURL string
	api     *client.Client
	samples []*sample

	listener *demoListener // receives the webhooks
	hook     string        // address of listener
}

// Run runs the demo. Without --exit it then serves until the process is asked to
// stop.
func (c demoCmd) Run(t *terminal) (err error) {
	dir, err := os.MkdirTemp("", "fiscalhub-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, stop := context.WithCancel(t.ctx)
	defer stop()
	t = &terminal{ctx: t.ctx, cli: t.cli, out: t.out, errOut: &lockedWriter{w: t.errOut}, language: t.language}
	d := &demo{
		t:       t,
		service: &terminal{ctx: ctx, cli: &cli{Data: dir}, out: io.Discard, errOut: t.errOut, language: t.language},
		scope:   store.Scope{Environment: fiscal.Certification, TaxpayerID: store.NewID()},
		samples: demoSamples(),
	}
	address, closeAuthority, err := d.openAuthority()
	if err != nil {
		return err
	}
	defer closeAuthority()
	t.progress(lang.Messagef("A simulator of the tax authority runs at %s, with a taxpayer, a certificate and ranges of numbers.",
		"Un simulador de la DGII funciona en %s, con un contribuyente, un certificado y rangos de secuencias.", address))
	closeListener, err := d.openListener()
	if err != nil {
		return err
	}
	defer closeListener()
	if err := d.prepare(); err != nil {
		return err
	}
	served, err := d.serve(address)
	if err != nil {
		return err
	}
	err = d.tour(ctx, c, served)
	if t.ctx.Err() != nil {
		err = nil // the user stopped the demo, which is no failure
	}
	stop()
	return errors.Join(err, <-served)
}

// tour creates the invoices, waits until each has its final status and prints the
// result.
func (d *demo) tour(ctx context.Context, c demoCmd, served chan error) (err error) {
	if d.api, err = client.New(d.baseURL, d.key, d.scope.TaxpayerID); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{d.createInvoices, d.awaitStatuses, d.awaitEvents, d.fetchFiles} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if c.Out != "" {
		if err := d.writeFiles(c.Out); err != nil {
			return err
		}
	}
	if c.Exit || d.t.cli.JSON {
		return d.printResult()
	}
	page, closePage, err := d.openPage(ctx)
	if err != nil {
		return err
	}
	defer closePage()
	for _, s := range d.samples {
		s.link(page + "/")
	}
	if err := d.printResult(); err != nil {
		return err
	}
	_, _ = io.WriteString(d.t.out, lang.Messagef(`
All invoices, with links to open:  %s

The service is still running. Try it:
  API       %s/v1, described at %s/docs
  taxpayer  %s
  api key   %s
  events    %s/v1/taxpayers/%s/events, and by webhook to %s
  operator  fiscalhub work list --data %s
Ctrl-C stops it and removes its data.
`, `
Todas las facturas, con enlaces para abrir:  %s

El servicio sigue en marcha. Pruébelo:
  API            %s/v1, descrita en %s/docs
  contribuyente  %s
  clave de API   %s
  eventos        %s/v1/taxpayers/%s/events, y por webhook a %s
  operador       fiscalhub work list --data %s
Ctrl-C lo detiene y borra sus datos.
`, page, d.baseURL, d.baseURL, d.scope.TaxpayerID, d.key, d.baseURL, d.scope.TaxpayerID, d.hook, d.service.cli.Data).In(d.t.language))
	select {
	case <-ctx.Done():
		return nil
	case err := <-served:
		served <- nil // Run receives once more
		return err
	}
}

// serve runs the service in this process, and returns when it listens. The channel
// receives its error when it ends.
func (d *demo) serve(authority string) (chan error, error) {
	roots := filepath.Join(d.service.cli.Data, "roots.pem")
	if err := os.WriteFile(roots, d.sim.RootsPEM(), 0o600); err != nil {
		return nil, err
	}
	ready := make(chan string, 1)
	command := serveCmd{
		Environment: string(d.scope.Environment), Listen: "127.0.0.1:0", LogLevel: logLevel{slog.LevelError}, CompareRate: demoCompareRate,
		liveFlags:   liveFlags{Authority: authority, Trust: roots, Pace: demoPace},
		privateFlag: demoPrivate,
		ready:       func(baseURL string) { ready <- baseURL },
	}
	served := make(chan error, 1)
	go func() { served <- command.Run(d.service) }()
	select {
	case d.baseURL = <-ready:
	case err := <-served:
		return nil, err
	}
	return served, nil
}

// lockedWriter is a writer that several goroutines may use.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

// Write writes p as a whole.
func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
