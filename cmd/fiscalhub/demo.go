package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/fiscalhub/fiscalhub/client"
	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

type demoCmd struct {
	Exit bool   `help:"End once every invoice has come to its end; --json does too."`
	Out  string `help:"Folder to write the XML and PDF files to; they stay." placeholder:"DIR"`
}

// The people of the tour. None of them exists.
const (
	demoIssuer   = "199000102"
	demoReceiver = "199000021"
	demoOther    = "199000031"
	demoPerson   = "00112345678"
	demoNumbers  = 1000

	demoPace = 20               // of the background work
	demoTime = 60 * time.Second // for all invoices; a few seconds are usual
)

// demo is the tour: a folder that ends with it, the authority, the service, and
// a client of its public API.
type demo struct {
	t       *terminal // the person's
	service *terminal // of the service, which has the folder
	sim     *simulator.Simulator
	scope   store.Scope
	key     string
	baseURL string
	api     *client.Client
	samples []*sample

	listener *demoListener // the integrator's
	hook     string        // where it is
}

// Run shows the tour and stays until the process is asked to stop.
func (c demoCmd) Run(t *terminal) (err error) {
	dir, err := os.MkdirTemp("", "fiscalhub-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, stop := context.WithCancel(t.ctx)
	defer stop()
	t = &terminal{ctx: t.ctx, cli: t.cli, out: t.out, errOut: &shared{w: t.errOut}}
	d := &demo{
		t:       t,
		service: &terminal{ctx: ctx, cli: &cli{Data: dir}, out: io.Discard, errOut: t.errOut},
		scope:   store.Scope{Environment: fiscal.Certification, TaxpayerID: store.NewID()},
		samples: demoSamples(),
	}
	address, closeAuthority, err := d.openAuthority()
	if err != nil {
		return err
	}
	defer closeAuthority()
	t.say("A simulator of the tax authority is at %s, with a taxpayer, a certificate and ranges of numbers.", address)
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
		err = nil // whoever asked it to stop has seen enough
	}
	stop()
	return errors.Join(err, <-served)
}

// tour creates the invoices, follows them to their end and shows what came out.
func (d *demo) tour(ctx context.Context, c demoCmd, served chan error) (err error) {
	if d.api, err = client.New(d.baseURL, d.key, d.scope.TaxpayerID); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{d.create, d.follow, d.hear, d.fetch} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if c.Out != "" {
		if err := d.write(c.Out); err != nil {
			return err
		}
	}
	if c.Exit || d.t.cli.JSON {
		return d.show()
	}
	page, closePage, err := d.openPage(ctx)
	if err != nil {
		return err
	}
	defer closePage()
	for _, s := range d.samples {
		s.link(page + "/")
	}
	if err := d.show(); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(d.t.out, `
All of them, with links to open:  %s

The service goes on. To try it yourself:
  API       %s/v1, described at %s/docs
  taxpayer  %s
  api key   %s
  events    %s/v1/taxpayers/%s/events, and by webhook to %s
  operator  fiscalhub work list --data %s
Ctrl-C ends it, and removes all that it made.
`, page, d.baseURL, d.baseURL, d.scope.TaxpayerID, d.key, d.baseURL, d.scope.TaxpayerID, d.hook, d.service.cli.Data)
	select {
	case <-ctx.Done():
		return nil
	case err := <-served:
		served <- nil // for whoever waits for its end
		return err
	}
}

// openAuthority starts the simulator and lets it know the people of the tour.
func (d *demo) openAuthority() (address string, closeIt func(), err error) {
	d.sim, err = simulator.New(simulator.Options{Now: time.Now, Seed: 1, Config: simulator.Config{
		CertECFFull: true, ValidationDelay: simulator.Between(200*time.Millisecond, 900*time.Millisecond),
	}})
	if err != nil {
		return "", nil, err
	}
	expires := demoExpiry().String()
	receiver := simulator.Baseline(demoReceiver, "00199000019", expires)
	receiver.Receiver = &simulator.Receiver{}
	for _, taxpayer := range []simulator.Taxpayer{simulator.Baseline(demoIssuer, demoPerson, expires), receiver, simulator.Baseline(demoOther, "00199000027", expires)} {
		if err := d.sim.AddTaxpayer(taxpayer); err != nil {
			return "", nil, err
		}
	}
	next := map[fiscal.Type]int{}
	for _, s := range d.samples {
		next[s.kind]++
		s.encf = fmt.Sprintf("E%s%010d", s.kind, next[s.kind])
		if s.fault == nil {
			continue
		}
		rule := simulator.Rule{Match: simulator.Match{Service: simulator.Reception, ENCF: s.encf}, Action: *s.fault, Count: 1}
		if _, err := d.sim.AddRule(rule); err != nil {
			return "", nil, err
		}
	}
	address, shut, err := listen(d.t.ctx, d.sim.Handler())
	return address, func() {
		d.sim.Close() // first: the server waits for what it keeps waiting
		shut()
	}, err
}

// listen serves on a free port of this machine until it is closed.
func listen(ctx context.Context, h http.Handler) (address string, closeIt func(), err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // it ends when it is closed
	}()
	return "http://" + listener.Addr().String(), func() {
		_ = server.Close() // nothing of it is worth waiting for
		<-done
	}, nil
}

// demoExpiry is when the ranges end: the last day of next year, as the
// authority's do.
func demoExpiry() fiscal.Date {
	return fiscal.DateOf(time.Date(fiscal.DateOf(time.Now()).Year()+1, time.December, 31, 12, 0, 0, 0, time.UTC))
}

// prepare gives the taxpayer all that it needs to issue, as an operator would.
func (d *demo) prepare() error {
	ctx, now := d.service.ctx, time.Now()
	logo, err := demoLogo()
	if err != nil {
		return err
	}
	certificate, err := d.sim.IssueCertificate(simulator.CertificateRequest{Holder: demoPerson, Name: "Persona de Demostración"})
	if err != nil {
		return err
	}
	id, err := xmlsig.OpenP12(certificate.P12, certificate.Password)
	if err != nil {
		return err
	}
	return d.service.withStore(func(s *store.Store) error {
		keys := d.service.masterKeys()
		ring, err := d.service.keyring(s, keys)
		if err != nil {
			return err
		}
		err = s.Update(ctx, func(tx *store.Tx) error {
			err := tx.CreateTaxpayer(ctx, store.Taxpayer{
				ID: d.scope.TaxpayerID, RNC: demoIssuer, LegalName: "Comercial Demostración, SRL", TradeName: "La Demostración", IncomeType: "01",
				Address: "Calle Ficticia 1, Santo Domingo", Phones: []string{"809-555-0100"}, Logo: logo, CreatedAt: now, UpdatedAt: now,
			})
			if err != nil {
				return err
			}
			for _, kind := range []fiscal.Type{fiscal.FiscalCredit, fiscal.Consumer} {
				q := store.NumberRange{Scope: d.scope, ID: store.NewID(), Type: kind, First: 1, Last: demoNumbers, Next: 1, CreatedAt: now}
				if kind == fiscal.FiscalCredit {
					q.Expires = demoExpiry()
				}
				if err := tx.AddNumberRange(ctx, q); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if _, err := access.NewCertificates(s, keys, time.Now).Import(ctx, d.scope, id); err != nil {
			return err
		}
		key, _, err := access.NewCredentials(s, ring, time.Now).Issue(ctx, access.Terms{
			TaxpayerID: d.scope.TaxpayerID, Environment: d.scope.Environment, Scopes: apikey.AllScopes(),
		})
		if err != nil {
			return err
		}
		d.key = key.Reveal()
		return d.subscribe(ctx, s, keys)
	})
}

// demoLogo draws a small picture: a palm's worth of green on sand.
func demoLogo() ([]byte, error) {
	const width, height = 240, 80
	picture := image.NewRGBA(image.Rect(0, 0, width, height))
	for x := range width {
		for y := range height {
			c := color.RGBA{R: 0xF2, G: 0xE6, B: 0xC9, A: 0xFF}
			if dx, dy := x-height/2, y-height/2; dx*dx+dy*dy < 30*30 || x > height && (y/10)%2 == 1 && x < width-10 {
				c = color.RGBA{R: 0x1B, G: 0x7A, B: 0x4B, A: 0xFF}
			}
			picture.SetRGBA(x, y, c)
		}
	}
	var b bytes.Buffer
	err := png.Encode(&b, picture)
	return b.Bytes(), err
}

// serve runs the service in this process, and returns once it can be called. How
// it ended is on the channel.
func (d *demo) serve(authority string) (chan error, error) {
	roots := filepath.Join(d.service.cli.Data, "roots.pem")
	if err := os.WriteFile(roots, d.sim.RootsPEM(), 0o600); err != nil {
		return nil, err
	}
	ready := make(chan string, 1)
	command := serveCmd{
		Environment: string(d.scope.Environment), Listen: "127.0.0.1:0", LogLevel: slog.LevelError,
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
