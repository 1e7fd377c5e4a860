package access

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig/xmlsigtest"
)

func (d *desk) production() store.Scope {
	return store.Scope{Environment: fiscal.Production, TaxpayerID: d.taxpayer}
}

// identity is a certificate that is valid for a span from the desk's now.
func (d *desk) identity(from, to time.Duration) *xmlsig.Identity {
	d.t.Helper()
	return xmlsigtest.Must(d.t, xmlsigtest.Options{NotBefore: d.Now().Add(from), NotAfter: d.Now().Add(to)}).Identity
}

// signers is the keeper of certificates as a node that starts has it.
func (d *desk) signers() *Certificates {
	return NewCertificates(d.Store, seal.NewKeys(d.master.File()), d.Now)
}

func (d *desk) imported(c *Certificates, id *xmlsig.Identity) store.Certificate {
	d.t.Helper()
	kept, err := c.Import(d.t.Context(), d.production(), id)
	d.must(err)
	return kept
}

// wantSigner fails unless the certificate is the one to sign with.
func (d *desk) wantSigner(when string, c *Certificates, want *xmlsig.Identity) {
	d.t.Helper()
	got, err := c.Identity(d.t.Context(), d.production(), d.Now())
	if err != nil {
		d.t.Errorf("%s: %v", when, err)
		return
	}
	if !got.Certificate.Equal(want.Certificate) {
		d.t.Errorf("%s: signs with %X, want %X", when, got.Certificate.SerialNumber, want.Certificate.SerialNumber)
	}
	a, errA := got.PKCS8()
	b, errB := want.PKCS8()
	if errA != nil || errB != nil || !bytes.Equal(a, b) {
		d.t.Errorf("%s: the key is not the one imported (%v, %v)", when, errA, errB)
	}
}

func TestAnImportedCertificateSigns(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		d := newDesk(t, address)
		c, id := d.signers(), d.identity(-time.Hour, time.Hour)
		if _, err := c.Identity(t.Context(), d.production(), d.Now()); !errors.Is(err, ErrNoCertificate) {
			t.Errorf("before: %v, want ErrNoCertificate", err)
		}
		kept := d.imported(c, id)
		if kept.Person != "00112345678" || !strings.Contains(kept.Subject, xmlsigtest.Subject) || len(kept.Serial)%2 != 0 ||
			!kept.NotAfter.Equal(id.Certificate.NotAfter) || !kept.CreatedAt.Equal(d.Now()) {
			t.Errorf("kept %+v", kept)
		}
		d.wantSigner("at once", c, id)
		d.wantSigner("on another node", d.signers(), id)
		if again := d.imported(d.signers(), id); again.ID != kept.ID || !bytes.Equal(again.Sealed, kept.Sealed) {
			t.Error("the same certificate was imported twice")
		}
		key, err := id.PKCS8()
		d.must(err)
		if bytes.Contains(kept.Sealed, key[:64]) || bytes.Contains(kept.Sealed, key[len(key)-64:]) {
			t.Error("the key is stored in the clear")
		}
		elsewhere := store.Scope{Environment: fiscal.Certification, TaxpayerID: d.taxpayer}
		if _, err := c.Identity(t.Context(), elsewhere, d.Now()); !errors.Is(err, ErrNoCertificate) {
			t.Errorf("another environment: %v, want ErrNoCertificate", err)
		}
	})
}

func TestARenewedCertificateTakesOver(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		d := newDesk(t, address)
		c, old := d.signers(), d.identity(-time.Hour, time.Hour)
		d.imported(c, old)
		d.wantSigner("before", c, old)
		renewed := d.identity(-time.Minute, 30*time.Minute)
		d.imported(c, renewed)
		d.wantSigner("after", c, renewed)
		d.advance(45 * time.Minute)
		d.wantSigner("once the renewed one has ended", c, old)
		d.advance(time.Hour)
		_, err := c.Identity(t.Context(), d.production(), d.Now())
		if !errors.Is(err, ErrCertificateExpired) {
			t.Errorf("at the end: %v, want ErrCertificateExpired", err)
		}
		_, err = c.Identity(t.Context(), d.production(), d.Now().Add(-24*time.Hour))
		if !errors.Is(err, ErrCertificateNotYetValid) {
			t.Errorf("for a day before: %v, want ErrCertificateNotYetValid", err)
		}
	})
}

func TestACertificateThatCannotSignIsNotImported(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		d := newDesk(t, address)
		c := d.signers()
		nobody := xmlsigtest.Must(t, xmlsigtest.Options{Subject: "Nadie", NotBefore: d.Now().Add(-time.Hour)}).Identity
		for _, tt := range []struct {
			name string
			id   *xmlsig.Identity
			want error
		}{
			{"expired", d.identity(-2*time.Hour, -time.Hour), ErrCertificateExpired},
			{"not yet valid", d.identity(time.Hour, 2*time.Hour), ErrCertificateNotYetValid},
			{"of nobody", nobody, ErrNoPerson},
		} {
			if _, err := c.Import(t.Context(), d.production(), tt.id); !errors.Is(err, tt.want) {
				t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
			}
		}
		unknown := store.Scope{Environment: fiscal.Production, TaxpayerID: store.NewID()}
		if _, err := c.Import(t.Context(), unknown, d.identity(-time.Hour, time.Hour)); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("of an unknown taxpayer: %v, want ErrNotFound", err)
		}
		if all, err := d.Store.Certificates(t.Context()); err != nil || len(all) != 0 {
			t.Errorf("stored %v, %v", all, err)
		}
	})
}

// A row is of no use anywhere but where it was written.
func TestACopiedCertificateDoesNotOpen(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		d := newDesk(t, address)
		c := d.signers()
		kept := d.imported(c, d.identity(-time.Hour, time.Hour))
		thief := store.Taxpayer{ID: store.NewID(), RNC: "199000021", LegalName: "Otra, SRL", Phones: []string{}, CreatedAt: d.Now(), UpdatedAt: d.Now()}
		d.must(d.Store.Update(t.Context(), func(tx *store.Tx) error { return tx.CreateTaxpayer(t.Context(), thief) }))
		for name, change := range map[string]func(*store.Certificate){
			"to another taxpayer":    func(c *store.Certificate) { c.TaxpayerID = thief.ID },
			"to another environment": func(c *store.Certificate) { c.Environment = fiscal.Certification },
			"to another certificate of its own": func(c *store.Certificate) {
				c.ID, c.DER = store.NewID(), d.identity(-time.Hour, time.Hour).Certificate.Raw
			},
			"to a later version of what is sealed": func(c *store.Certificate) {
				c.SealedVersion++
				c.TaxpayerID, c.Environment = thief.ID, fiscal.Certification
			},
		} {
			moved := kept
			change(&moved)
			d.must(d.Store.Update(t.Context(), func(tx *store.Tx) error {
				_, err := tx.AddCertificate(t.Context(), moved)
				return err
			}))
			if _, err := d.signers().Identity(t.Context(), moved.Scope, d.Now()); !errors.Is(err, seal.ErrTampered) {
				t.Errorf("copied %s: %v, want ErrTampered", name, err)
			}
		}
	})
}

// A sealed key beside a certificate that is not its own is no signer.
func TestAnExchangedCertificateDoesNotSign(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		d := newDesk(t, address)
		mine := d.identity(-time.Hour, time.Hour)
		other := xmlsigtest.Must(t, xmlsigtest.Options{Bits: 3072, NotBefore: d.Now().Add(-time.Hour)}).Certificate
		key, err := mine.PKCS8()
		d.must(err)
		master, err := d.master.InUse()
		d.must(err)
		forged := store.Certificate{
			Scope: d.production(), ID: store.NewID(), DER: other.Raw, NotBefore: other.NotBefore, NotAfter: other.NotAfter,
			SealedVersion: sealedVersion, CreatedAt: d.Now(),
		}
		forged.Sealed, err = master.Seal(key, certificateAAD(forged))
		d.must(err)
		d.must(d.Store.Update(t.Context(), func(tx *store.Tx) error {
			_, err := tx.AddCertificate(t.Context(), forged)
			return err
		}))
		if _, err := d.signers().Identity(t.Context(), d.production(), d.Now()); !errors.Is(err, xmlsig.ErrKeyMismatch) {
			t.Errorf("%v, want ErrKeyMismatch", err)
		}
	})
}

func TestAnOpenedKeyIsLetGoOfAfterFiveMinutes(t *testing.T) {
	t.Parallel()
	d := newDesk(t, storetest.Address(t, "sqlite"))
	c := d.signers()
	d.imported(c, d.identity(-time.Hour, time.Hour))
	get := func() *xmlsig.Identity {
		id, err := c.Identity(t.Context(), d.production(), d.Now())
		d.must(err)
		return id
	}
	first := get()
	d.advance(openFor - time.Microsecond)
	if get() != first {
		t.Error("opened again within the time")
	}
	d.advance(time.Microsecond)
	if get() == first {
		t.Error("kept for longer than the time")
	}
	if len(c.open) != 1 {
		t.Errorf("%d are kept", len(c.open))
	}
}
