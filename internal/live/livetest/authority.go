package livetest

import (
	"context"
	"crypto/x509"
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/dgii"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

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
	Client   dgii.Options     // of a client that speaks to it
}

// NewAuthority starts an authority with the clock of the test.
func NewAuthority(t testing.TB, now func() time.Time, o Options) *Authority {
	t.Helper()
	sim, err := simulator.New(simulator.Options{Now: now, Seed: max(o.Seed, 1), Config: simulator.Quick()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Close)
	if o.Amb == "" {
		o.Amb = "ecf"
	}
	buyer := simulator.Baseline(BuyerRNC, BuyerSigner, Expires)
	if o.Receiver {
		buyer.Receiver = &simulator.Receiver{}
	}
	server, roots := httptest.NewServer(sim.Handler()), x509.NewCertPool()
	t.Cleanup(server.Close)
	roots.AppendCertsFromPEM(sim.RootsPEM())
	err = errors.Join(sim.AddTaxpayer(simulator.Baseline(IssuerRNC, Holder, Expires)), sim.AddTaxpayer(buyer))
	id, errID := sim.Identity(Holder)
	hosts, errHosts := dgii.SimulatorHosts(server.URL, o.Amb)
	if err := errors.Join(err, errID, errHosts); err != nil {
		t.Fatal(err)
	}
	return &Authority{sim, id, dgii.Options{Hosts: hosts, Now: now, Roots: roots, AllowOrigin: server.URL}}
}

// Identities is an identity that every taxpayer has.
type Identities struct{ ID *xmlsig.Identity }

// Identity returns the identity.
func (s Identities) Identity(context.Context, store.Scope, time.Time) (*xmlsig.Identity, error) {
	return s.ID, nil
}

// AddIssuer stores the issuer of an authority with all that it needs to issue so many
// documents of each type.
func AddIssuer(t testing.TB, s *store.Store, scope store.Scope, id *xmlsig.Identity, numbers int64) {
	t.Helper()
	now, ctx := s.Now(), t.Context()
	expires, err := fiscal.ParseDate(Expires)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Update(ctx, func(tx *store.Tx) error {
		err := tx.CreateTaxpayer(ctx, store.Taxpayer{
			ID: scope.TaxpayerID, RNC: IssuerRNC, LegalName: "Prueba, SRL", Address: "Calle 1", Phones: []string{}, IncomeType: "01", CreatedAt: now, UpdatedAt: now,
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
}
