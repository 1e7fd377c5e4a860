// Package nodetest opens nodes for tests, and simulators of the authority that they speak
// to.
package nodetest

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/dgii"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/node"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// Open opens a node on a database, which other nodes may use, with the clock of the test. It
// is a node of the sandbox that logs nothing, unless the configuration says otherwise. The
// test closes it.
func Open(t testing.TB, address string, now func() time.Time, c node.Config) *node.Node {
	t.Helper()
	c.Store = storetest.Open(t, address, now)
	if c.Environment == "" {
		c.Environment = fiscal.Sandbox
	}
	if c.Keys == nil {
		c.Keys = seal.NewKeys(filepath.Join(t.TempDir(), "master.key"))
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.BaseURL == "" {
		c.BaseURL = "https://invoices.example"
	}
	if c.Authority.Hosts == (dgii.Hosts{}) { // an authority that nobody reaches
		c.Authority.Hosts = must(dgii.SimulatorHosts("https://authority.invalid", "ecf"))(t)
	}
	c.Keyring = must(access.LoadKeyring(t.Context(), c.Store, c.Keys))(t)
	n := must(node.Open(t.Context(), c))(t)
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// The taxpayers of an Authority, and the persons who sign for them.
const (
	IssuerRNC   = "199000013"
	Holder      = "00112345678"
	BuyerRNC    = "199000021"
	BuyerSigner = "00199000019"
	Expires     = "2027-12-31" // of number ranges
)

// An Authority is a simulator of the authority that knows an issuer and a buyer.
type Authority struct {
	*simulator.Simulator
	Identity *xmlsig.Identity // of Holder
	url      string
	roots    *x509.CertPool
}

// NewAuthority starts an authority with the clock of the test. The buyer receives electronic
// documents if receives says so.
func NewAuthority(t testing.TB, now func() time.Time, receives bool) *Authority {
	t.Helper()
	a := &Authority{Simulator: must(simulator.New(simulator.Options{Now: now, Seed: 1, Config: simulator.Quick()}))(t), roots: x509.NewCertPool()}
	t.Cleanup(a.Close)
	buyer := simulator.Baseline(BuyerRNC, BuyerSigner, Expires)
	if receives {
		buyer.Receiver = &simulator.Receiver{}
	}
	if err := errors.Join(a.AddTaxpayer(simulator.Baseline(IssuerRNC, Holder, Expires)), a.AddTaxpayer(buyer)); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(a.Handler())
	t.Cleanup(server.Close)
	a.url = server.URL
	a.roots.AppendCertsFromPEM(a.RootsPEM())
	a.Identity = must(a.Simulator.Identity(Holder))(t)
	return a
}

// Config returns the configuration of a node of production that speaks to the authority.
// Holder signs for every taxpayer.
func (a *Authority) Config(t testing.TB) node.Config {
	t.Helper()
	return node.Config{
		Environment: fiscal.Production, Roots: a.roots, Identities: signing{a.Identity},
		Authority: dgii.Options{Hosts: must(dgii.SimulatorHosts(a.url, "ecf"))(t), AllowOrigin: a.url},
	}
}

// signing is an identity that every taxpayer has.
type signing struct{ id *xmlsig.Identity }

func (s signing) Identity(context.Context, store.Scope, time.Time) (*xmlsig.Identity, error) {
	return s.id, nil
}

// AddIssuer stores the issuer of an authority with all that it needs to issue so many
// documents of each type.
func AddIssuer(t testing.TB, s *store.Store, id *xmlsig.Identity, numbers int64) store.Scope {
	t.Helper()
	scope, now, ctx := store.Scope{Environment: fiscal.Production, TaxpayerID: store.NewID()}, s.Now(), t.Context()
	expires := must(fiscal.ParseDate(Expires))(t)
	err := s.Update(ctx, func(tx *store.Tx) error {
		err := tx.CreateTaxpayer(ctx, store.Taxpayer{
			ID: scope.TaxpayerID, RNC: IssuerRNC, LegalName: "Palma Clara, SRL", Address: "Calle Duarte 12", Phones: []string{}, IncomeType: "01", CreatedAt: now, UpdatedAt: now,
		})
		if err != nil {
			return err
		}
		_, err = tx.AddCertificate(ctx, store.Certificate{
			Scope: scope, ID: store.NewID(), DER: id.Certificate.Raw, Sealed: []byte("elsewhere"),
			NotBefore: id.Certificate.NotBefore, NotAfter: id.Certificate.NotAfter, CreatedAt: now,
		})
		for _, kind := range []fiscal.Type{fiscal.FiscalCredit, fiscal.Consumer} {
			r := store.NumberRange{Scope: scope, ID: store.NewID(), Type: kind, First: 1, Last: numbers, Next: 1, CreatedAt: now}
			if kind == fiscal.FiscalCredit {
				r.Expires = expires
			}
			err = errors.Join(err, tx.AddNumberRange(ctx, r))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return scope
}

// must returns a function that ends the test when there is an error, and returns the value
// otherwise.
func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}
