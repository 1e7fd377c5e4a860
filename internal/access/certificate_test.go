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

// identity returns an identity whose certificate is valid from one time to another,
// both relative to now.
func (e *env) identity(from, to time.Duration) *xmlsig.Identity {
	e.t.Helper()
	return xmlsigtest.Must(e.t, xmlsigtest.Options{NotBefore: e.now().Add(from), NotAfter: e.now().Add(to)}).Identity
}

// certificates returns the certificates as a starting node has them.
func (e *env) certificates() *Certificates {
	return NewCertificates(e.store, seal.NewKeys(e.master.File()), e.now)
}

// importCertificate imports a certificate and returns its row.
func (e *env) importCertificate(c *Certificates, id *xmlsig.Identity) store.Certificate {
	e.t.Helper()
	kept, err := c.Import(e.t.Context(), e.production(), id)
	e.must(err)
	return kept
}

// wantSigner fails unless the identity is the one that signs now.
func (e *env) wantSigner(when string, c *Certificates, want *xmlsig.Identity) {
	e.t.Helper()
	got, err := c.Identity(e.t.Context(), e.production(), e.now())
	if err != nil {
		e.t.Errorf("%s: %v", when, err)
		return
	}
	if !got.Certificate.Equal(want.Certificate) {
		e.t.Errorf("%s: signs with %X, want %X", when, got.Certificate.SerialNumber, want.Certificate.SerialNumber)
	}
	a, errA := got.PKCS8()
	b, errB := want.PKCS8()
	if errA != nil || errB != nil || !bytes.Equal(a, b) {
		e.t.Errorf("%s: the key is not the one imported (%v, %v)", when, errA, errB)
	}
}

func TestAnImportedCertificateSigns(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		c, id := e.certificates(), e.identity(-time.Hour, time.Hour)
		if _, err := c.Identity(t.Context(), e.production(), e.now()); !errors.Is(err, ErrNoCertificate) {
			t.Errorf("before: %v, want ErrNoCertificate", err)
		}
		kept := e.importCertificate(c, id)
		if kept.Person != "00112345678" || !strings.Contains(kept.Subject, xmlsigtest.Subject) || len(kept.Serial)%2 != 0 ||
			!kept.NotAfter.Equal(id.Certificate.NotAfter) || !kept.CreatedAt.Equal(e.now()) {
			t.Errorf("kept %+v", kept)
		}
		e.wantSigner("at once", c, id)
		e.wantSigner("on another node", e.certificates(), id)
		if again := e.importCertificate(e.certificates(), id); again.ID != kept.ID || !bytes.Equal(again.Sealed, kept.Sealed) {
			t.Error("a second import of the same certificate stored another row")
		}
		key, err := id.PKCS8()
		e.must(err)
		if bytes.Contains(kept.Sealed, key[:64]) || bytes.Contains(kept.Sealed, key[len(key)-64:]) {
			t.Error("the key is stored in the clear")
		}
		elsewhere := store.Scope{Environment: fiscal.Certification, TaxpayerID: e.taxpayer}
		if _, err := c.Identity(t.Context(), elsewhere, e.now()); !errors.Is(err, ErrNoCertificate) {
			t.Errorf("another environment: %v, want ErrNoCertificate", err)
		}
	})
}

func TestTheNewestValidCertificateSigns(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		c, old := e.certificates(), e.identity(-time.Hour, time.Hour)
		e.importCertificate(c, old)
		e.wantSigner("before", c, old)
		renewed := e.identity(-time.Minute, 30*time.Minute)
		e.importCertificate(c, renewed)
		e.wantSigner("after", c, renewed)
		e.advance(45 * time.Minute)
		e.wantSigner("after the renewed one has expired", c, old)
		e.advance(time.Hour)
		_, err := c.Identity(t.Context(), e.production(), e.now())
		if !errors.Is(err, ErrCertificateExpired) {
			t.Errorf("at the end: %v, want ErrCertificateExpired", err)
		}
		_, err = c.Identity(t.Context(), e.production(), e.now().Add(-24*time.Hour))
		if !errors.Is(err, ErrCertificateNotYetValid) {
			t.Errorf("for a day before: %v, want ErrCertificateNotYetValid", err)
		}
	})
}

// A revoked certificate signs nothing any more, on any node, although its key is still
// decrypted in memory.
func TestARevokedCertificateDoesNotSign(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		c, node, id := e.certificates(), e.certificates(), e.identity(-time.Hour, time.Hour)
		kept := e.importCertificate(c, id)
		e.wantSigner("before", c, id)
		e.wantSigner("before, on another node", node, id)
		for range 2 { // a second call changes nothing
			revoked, err := c.Revoke(t.Context(), kept.ID)
			if err != nil || revoked.ID != kept.ID || revoked.State(e.now()) != store.CertificateRevoked {
				t.Errorf("revoked: %+v, %v", revoked, err)
			}
		}
		for _, one := range []*Certificates{c, node} {
			if _, err := one.Identity(t.Context(), e.production(), e.now()); !errors.Is(err, ErrCertificateRevoked) {
				t.Errorf("after: %v, want ErrCertificateRevoked", err)
			}
		}
		if _, err := c.Import(t.Context(), e.production(), id); !errors.Is(err, ErrCertificateRevoked) {
			t.Errorf("imported again: %v, want ErrCertificateRevoked", err)
		}
		if _, err := c.Revoke(t.Context(), store.NewID()); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a certificate that does not exist: %v", err)
		}
		renewed := e.identity(-time.Minute, time.Hour)
		e.importCertificate(c, renewed)
		e.wantSigner("with a new certificate", node, renewed)
	})
}

func TestImportRefusesCertificatesThatCannotSign(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		c := e.certificates()
		anonymous := xmlsigtest.Must(t, xmlsigtest.Options{Subject: "Nadie", NotBefore: e.now().Add(-time.Hour)}).Identity
		for _, tt := range []struct {
			name string
			id   *xmlsig.Identity
			want error
		}{
			{"expired", e.identity(-2*time.Hour, -time.Hour), ErrCertificateExpired},
			{"not yet valid", e.identity(time.Hour, 2*time.Hour), ErrCertificateNotYetValid},
			{"without a person", anonymous, ErrNoPerson},
		} {
			if _, err := c.Import(t.Context(), e.production(), tt.id); !errors.Is(err, tt.want) {
				t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
			}
		}
		unknown := store.Scope{Environment: fiscal.Production, TaxpayerID: store.NewID()}
		if _, err := c.Import(t.Context(), unknown, e.identity(-time.Hour, time.Hour)); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("of an unknown taxpayer: %v, want ErrNotFound", err)
		}
		if all, err := e.store.Certificates(t.Context()); err != nil || len(all) != 0 {
			t.Errorf("stored %v, %v", all, err)
		}
	})
}

func TestACopiedCertificateDoesNotOpen(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		c := e.certificates()
		kept := e.importCertificate(c, e.identity(-time.Hour, time.Hour))
		other := store.Taxpayer{ID: store.NewID(), RNC: "199000021", LegalName: "Otra, SRL", Phones: []string{}, CreatedAt: e.now(), UpdatedAt: e.now()}
		e.must(e.store.Update(t.Context(), func(tx *store.Tx) error { return tx.CreateTaxpayer(t.Context(), other) }))
		for name, change := range map[string]func(*store.Certificate){
			"to another taxpayer":    func(c *store.Certificate) { c.TaxpayerID = other.ID },
			"to another environment": func(c *store.Certificate) { c.Environment = fiscal.Certification },
			"to another certificate of its owner": func(c *store.Certificate) {
				c.ID, c.DER = store.NewID(), e.identity(-time.Hour, time.Hour).Certificate.Raw
			},
			"to a later version of the format": func(c *store.Certificate) {
				c.SealedVersion++
				c.TaxpayerID, c.Environment = other.ID, fiscal.Certification
			},
		} {
			moved := kept
			change(&moved)
			e.must(e.store.Update(t.Context(), func(tx *store.Tx) error {
				_, err := tx.AddCertificate(t.Context(), moved)
				return err
			}))
			if _, err := e.certificates().Identity(t.Context(), moved.Scope, e.now()); !errors.Is(err, seal.ErrTampered) {
				t.Errorf("copied %s: %v, want ErrTampered", name, err)
			}
		}
	})
}

func TestAKeyDoesNotSignForAnotherCertificate(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		mine := e.identity(-time.Hour, time.Hour)
		other := xmlsigtest.Must(t, xmlsigtest.Options{Bits: 3072, NotBefore: e.now().Add(-time.Hour)}).Certificate
		key, err := mine.PKCS8()
		e.must(err)
		master, err := e.master.InUse()
		e.must(err)
		forged := store.Certificate{
			Scope: e.production(), ID: store.NewID(), DER: other.Raw, NotBefore: other.NotBefore, NotAfter: other.NotAfter,
			SealedVersion: sealedVersion, CreatedAt: e.now(),
		}
		forged.Sealed, err = master.Seal(key, certificateAAD(forged))
		e.must(err)
		e.must(e.store.Update(t.Context(), func(tx *store.Tx) error {
			_, err := tx.AddCertificate(t.Context(), forged)
			return err
		}))
		if _, err := e.certificates().Identity(t.Context(), e.production(), e.now()); !errors.Is(err, xmlsig.ErrKeyMismatch) {
			t.Errorf("%v, want ErrKeyMismatch", err)
		}
	})
}

func TestADecryptedKeyIsCachedForFiveMinutes(t *testing.T) {
	t.Parallel()
	e := newEnv(t, storetest.Address(t, "sqlite"))
	c := e.certificates()
	e.importCertificate(c, e.identity(-time.Hour, time.Hour))
	get := func() *xmlsig.Identity {
		id, err := c.Identity(t.Context(), e.production(), e.now())
		e.must(err)
		return id
	}
	first := get()
	e.advance(openFor - time.Microsecond)
	if get() != first {
		t.Error("the key was decrypted again too early")
	}
	e.advance(time.Microsecond)
	if get() == first {
		t.Error("the key was cached for too long")
	}
	if len(c.open) != 1 {
		t.Errorf("%d keys are cached", len(c.open))
	}
}
