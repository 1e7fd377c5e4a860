package main

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// openAuthority starts the simulator with the taxpayers of the demo, and sets the
// expected number of each sample. The caller calls closeIt.
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
		d.sim.Close() // first: it ends the requests that the server would wait for
		shut()
	}, err
}

// listen serves on a free port of this machine until closeIt is called.
func listen(ctx context.Context, h http.Handler) (address string, closeIt func(), err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // returns when the server is closed
	}()
	return "http://" + listener.Addr().String(), func() {
		_ = server.Close() // the demo needs no open request any more
		<-done
	}, nil
}

// demoExpiry returns the last day of next year, when a range that the authority
// authorizes today expires.
func demoExpiry() fiscal.Date {
	return fiscal.DateOf(time.Date(fiscal.DateOf(time.Now()).Year()+1, time.December, 31, 12, 0, 0, 0, time.UTC))
}

// prepare stores a taxpayer with everything that it needs to issue, an API key
// and a webhook endpoint.
func (d *demo) prepare() error {
	ctx := d.service.ctx
	certificate, err := d.sim.IssueCertificate(simulator.CertificateRequest{Holder: demoPerson, Name: "Persona de Demostración"})
	if err != nil {
		return err
	}
	id, err := xmlsig.OpenP12(certificate.P12, certificate.Password)
	if err != nil {
		return err
	}
	d.service.mayCreate = true
	return d.service.withKeys(func(s *store.Store, keys *seal.Keys, ring *access.Keyring) error {
		if err := d.storeTaxpayer(ctx, s); err != nil {
			return err
		}
		if _, err := access.NewCertificates(s, keys, s.Now).Import(ctx, d.scope, id); err != nil {
			return err
		}
		key, _, err := access.NewCredentials(s, ring, s.Now).Issue(ctx, access.Terms{
			TaxpayerID: d.scope.TaxpayerID, Environment: d.scope.Environment, Scopes: apikey.AllScopes(),
		})
		if err != nil {
			return err
		}
		d.key = key.Reveal()
		return d.subscribe(ctx, s, keys)
	})
}

// storeTaxpayer stores the taxpayer and its ranges of numbers.
func (d *demo) storeTaxpayer(ctx context.Context, s *store.Store) error {
	logo, err := demoLogo()
	if err != nil {
		return err
	}
	now := s.Now()
	return s.Update(ctx, func(tx *store.Tx) error {
		err := tx.CreateTaxpayer(ctx, store.Taxpayer{
			ID: d.scope.TaxpayerID, RNC: demoIssuer, LegalName: "Comercial Demostración, SRL", TradeName: "La Demostración", IncomeType: "01",
			Address: "Calle Ficticia 1, Santo Domingo", Phones: []string{"809-555-0100"}, Logo: logo, CreatedAt: now, UpdatedAt: now,
		})
		if err != nil {
			return err
		}
		for _, kind := range []fiscal.Type{fiscal.FiscalCredit, fiscal.Consumer} {
			r := store.NumberRange{Scope: d.scope, ID: store.NewID(), Type: kind, First: 1, Last: demoNumbers, Next: 1, CreatedAt: now}
			if kind == fiscal.FiscalCredit {
				r.Expires = demoExpiry()
			}
			if err := tx.AddNumberRange(ctx, r); err != nil {
				return err
			}
		}
		return nil
	})
}

// demoLogo draws the taxpayer's logo: a green circle and green stripes.
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
