package main

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/png"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

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
