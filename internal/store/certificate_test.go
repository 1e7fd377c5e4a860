package store_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// addLiveScope adds a taxpayer and returns its scope in production.
func addLiveScope(t *testing.T, s *store.Store) store.Scope {
	t.Helper()
	return store.Scope{Environment: fiscal.Production, TaxpayerID: addScope(t, s).TaxpayerID}
}

func sampleCertificate(scope store.Scope, der string) store.Certificate {
	return store.Certificate{
		Scope: scope, ID: store.NewID(), DER: []byte(der), Subject: "SERIALNUMBER=IDCDO-00112345678,CN=Ana «Inventada»",
		Serial: "0A1B", Person: "00112345678", NotBefore: noon.Add(-time.Hour), NotAfter: noon.Add(time.Hour),
		Sealed: []byte{0, 1, 2, 0xff}, SealedVersion: 1, CreatedAt: noon,
	}
}

func addCertificate(t *testing.T, s *store.Store, c store.Certificate) (stored store.Certificate) {
	t.Helper()
	update(t, s, func(ctx context.Context, tx *store.Tx) (err error) {
		stored, err = tx.AddCertificate(ctx, c)
		return err
	})
	return stored
}

func TestACertificateReadsBackAsItWasWritten(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addLiveScope(t, s)
		first, second := sampleCertificate(scope, "one"), sampleCertificate(scope, "two\x00")
		elsewhere := sampleCertificate(store.Scope{Environment: fiscal.Certification, TaxpayerID: scope.TaxpayerID}, "one")
		other := sampleCertificate(addLiveScope(t, s), "one")
		all := []store.Certificate{first, second, elsewhere, other}
		for _, c := range all {
			if diff := cmp.Diff(c, addCertificate(t, s, c)); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
		}
		got, err := s.Certificates(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(all, got); diff != "" {
			t.Errorf("the list, the oldest first (-want +got):\n%s", diff)
		}
		for _, of := range [][]store.Certificate{{first, second}, {elsewhere}, {other}} {
			got, err := s.CertificatesOf(t.Context(), of[0].Scope)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(of, got); diff != "" {
				t.Errorf("of one taxpayer and environment (-want +got):\n%s", diff)
			}
		}
		none, err := s.CertificatesOf(t.Context(), store.Scope{Environment: fiscal.Certification, TaxpayerID: other.TaxpayerID})
		if err != nil || len(none) != 0 {
			t.Errorf("a taxpayer without certificates: %v, %v", none, err)
		}
	})
}

// A second import returns the stored row, also when both run at the same time.
func TestACertificateIsStoredOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addLiveScope(t, s)
		var mu sync.Mutex
		seen := map[string]int{}
		together(10, func(int) {
			again := sampleCertificate(scope, "the same")
			err := s.Update(t.Context(), func(tx *store.Tx) (err error) {
				again, err = tx.AddCertificate(t.Context(), again)
				return err
			})
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			seen[again.ID]++
		})
		if len(seen) != 1 || count(t, s, "certificates") != 1 {
			t.Errorf("ten imports returned the ids %v and stored %d rows; want one of each", seen, count(t, s, "certificates"))
		}
	})
}

func TestACertificateNeedsATaxpayerAndALiveEnvironment(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		add := func(scope store.Scope) error {
			return s.Update(t.Context(), func(tx *store.Tx) error {
				_, err := tx.AddCertificate(t.Context(), sampleCertificate(scope, "x"))
				return err
			})
		}
		if err := add(store.Scope{Environment: fiscal.Production, TaxpayerID: store.NewID()}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("of an unknown taxpayer: %v, want ErrNotFound", err)
		}
		if err := add(addScope(t, s)); err == nil || errors.Is(err, store.ErrUnavailable) {
			t.Errorf("in the sandbox: %v, want an error other than ErrUnavailable", err)
		}
	})
}

func TestRewrappingChangesTheSealedBytesOfOneRow(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addLiveScope(t, s)
		first, second := addCertificate(t, s, sampleCertificate(scope, "one")), addCertificate(t, s, sampleCertificate(scope, "two"))
		if err := s.AddSecret(t.Context(), store.Secret{Kind: "pepper", Version: 1, Sealed: []byte("old")}); err != nil {
			t.Fatal(err)
		}
		if err := s.AddSecret(t.Context(), store.Secret{Kind: "cursor", Version: 1, Sealed: []byte("stays")}); err != nil {
			t.Fatal(err)
		}
		changed := first
		changed.Sealed = []byte("new")
		foreign := changed
		foreign.Environment = fiscal.Certification // there is no such row in this scope
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			locked, err := tx.LockSecrets(ctx)
			if len(locked) != 2 {
				t.Errorf("locked %v", locked)
			}
			return errors.Join(err, tx.RewrapSecret(ctx, store.Secret{Kind: "pepper", Version: 1, Sealed: []byte("new")}),
				tx.RewrapCertificate(ctx, changed), tx.RewrapCertificate(ctx, foreign))
		})
		got, err := s.Certificates(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]store.Certificate{changed, second}, got); diff != "" {
			t.Errorf("certificates (-want +got):\n%s", diff)
		}
		for kind, want := range map[string]string{"pepper": "new", "cursor": "stays"} {
			if got, err := s.Secrets(t.Context(), kind); err != nil || len(got) != 1 || string(got[0].Sealed) != want {
				t.Errorf("%s: %v, %v", kind, got, err)
			}
		}
	})
}

func TestTheNewestValidCertificateSigns(t *testing.T) {
	t.Parallel()
	cert := func(id string, from, to time.Duration) store.Certificate {
		return store.Certificate{ID: id, NotBefore: noon.Add(from), NotAfter: noon.Add(to)}
	}
	revoked := cert("revoked", -time.Hour, time.Hour)
	revoked.RevokedAt = noon
	past, future := cert("past", -2*time.Hour, -time.Hour), cert("future", time.Hour, 2*time.Hour)
	now, later := cert("now", -time.Hour, time.Hour), cert("later", 0, 2*time.Hour)
	tests := []struct {
		name  string
		all   []store.Certificate
		want  string
		state store.CertificateState
	}{
		{"the only one", []store.Certificate{now}, "now", store.CertificateValid},
		{"the newest of two", []store.Certificate{now, later}, "later", store.CertificateValid},
		{"an older one while the newest is not valid", []store.Certificate{now, future}, "now", store.CertificateValid},
		{"an older one when the newest is revoked", []store.Certificate{past, now, revoked}, "now", store.CertificateValid},
		{"none valid, the newest has expired", []store.Certificate{future, past}, "past", store.CertificateExpired},
		{"none valid, the newest is not valid yet", []store.Certificate{past, future}, "future", store.CertificateNotYetValid},
		{"none valid, the newest is revoked", []store.Certificate{past, revoked}, "revoked", store.CertificateRevoked},
		{"valid to the last moment", []store.Certificate{cert("edge", -time.Hour, 0)}, "edge", store.CertificateValid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, ok := store.SigningCertificate(tt.all, noon)
			if !ok || got.ID != tt.want || got.State(noon) != tt.state {
				t.Errorf("got %s (%s), %t; want %s (%s)", got.ID, got.State(noon), ok, tt.want, tt.state)
			}
		})
	}
	if _, ok := store.SigningCertificate(nil, noon); ok {
		t.Error("a certificate was chosen from an empty list")
	}
}
