package pipeline

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func codes(problems fiscal.Problems) []string {
	all := []string{}
	for _, p := range problems {
		all = append(all, p.Code)
	}
	return all
}

func TestMissingChecksTheCertificates(t *testing.T) {
	t.Parallel()
	now := storetest.NewClock().Now()
	cert := func(from, to time.Duration) store.Certificate {
		return store.Certificate{NotBefore: now.Add(from), NotAfter: now.Add(to)}
	}
	valid, past, future := cert(-time.Hour, time.Hour), cert(-2*time.Hour, -time.Hour), cert(time.Hour, 2*time.Hour)
	revoked := valid
	revoked.RevokedAt = now.Add(-time.Minute)
	tests := []struct {
		name string
		have []store.Certificate
		want []string
	}{
		{"none", nil, []string{"certificate.missing", "sequence.missing"}},
		{"a valid one", []store.Certificate{valid}, []string{"sequence.missing"}},
		{"a valid one among others", []store.Certificate{past, valid, future}, []string{"sequence.missing"}},
		{"an expired one", []store.Certificate{past}, []string{"certificate.expired", "sequence.missing"}},
		{"one to come", []store.Certificate{future}, []string{"certificate.not_yet_valid", "sequence.missing"}},
		{"a revoked one", []store.Certificate{revoked}, []string{"certificate.revoked", "sequence.missing"}},
		{"the newest tells why", []store.Certificate{future, past}, []string{"certificate.expired", "sequence.missing"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			facts := Facts{Environment: fiscal.Production, Taxpayer: store.Taxpayer{Address: "x"}, Certificates: tt.have}
			missing := facts.Missing(fiscal.Consumer, now)
			if diff := cmp.Diff(tt.want, codes(missing)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, p := range missing {
				if p.Message.IsZero() || p.Field == "" {
					t.Errorf("%s has no words or no field", p.Code)
				}
			}
			facts.Environment = fiscal.Sandbox
			if missing := facts.Missing(fiscal.Consumer, now); len(missing) > 0 {
				t.Errorf("the sandbox misses %v", missing)
			}
		})
	}
}

func TestReadFactsReadsTheEnvironment(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		b := newEnv(t, address, Sandbox{})
		missing := func(environment fiscal.Environment) []string {
			facts, err := ReadFacts(t.Context(), b.o.Store, store.Scope{Environment: environment, TaxpayerID: b.scope.TaxpayerID}, fiscal.Consumer)
			b.must(err)
			return codes(facts.Missing(fiscal.Consumer, b.o.Now()))
		}
		b.must(b.o.Store.Update(t.Context(), func(tx *store.Tx) error {
			_, err := tx.AddCertificate(t.Context(), store.Certificate{
				Scope: store.Scope{Environment: fiscal.Production, TaxpayerID: b.scope.TaxpayerID}, ID: store.NewID(),
				DER: []byte("x"), Sealed: []byte("y"), NotBefore: b.o.Now().Add(-time.Hour), NotAfter: b.o.Now().Add(time.Hour), CreatedAt: b.o.Now(),
			})
			return err
		}))
		for env, want := range map[fiscal.Environment][]string{
			fiscal.Production:    {"taxpayer.profile_incomplete", "sequence.missing"},
			fiscal.Certification: {"taxpayer.profile_incomplete", "certificate.missing", "sequence.missing"},
		} {
			if diff := cmp.Diff(want, missing(env)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", env, diff)
			}
		}
		b.clock.Advance(2 * time.Hour)
		if diff := cmp.Diff([]string{"taxpayer.profile_incomplete", "certificate.expired", "sequence.missing"}, missing(fiscal.Production)); diff != "" {
			t.Errorf("later (-want +got):\n%s", diff)
		}
		nobody := store.Scope{Environment: fiscal.Production, TaxpayerID: store.NewID()}
		if _, err := ReadFacts(t.Context(), b.o.Store, nobody); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("of nobody: %v, want ErrNotFound", err)
		}
	})
}
