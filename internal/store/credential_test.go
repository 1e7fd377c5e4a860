package store_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func sampleCredential(scope store.Scope) store.Credential {
	id := store.NewID()
	return store.Credential{
		ID: id, Prefix: "s" + id[len(id)-11:], Environment: scope.Environment, TaxpayerID: scope.TaxpayerID,
		Digest: []byte{0, 1, 2}, PepperVersion: 1, Scopes: apikey.AllScopes(), CreatedAt: noon,
	}
}

func TestACredentialReadsBackAsItWasWritten(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addScope(t, s)
		bare, full := sampleCredential(scope), sampleCredential(scope)
		full.RateLimit, full.ExpiresAt, full.Scopes = 7, noon.Add(time.Hour), []apikey.Scope{apikey.ECFRead}
		full.AllowedNetworks = []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("2001:db8::/32")}
		full.ClientCertificates = []string{strings.Repeat("0", 64), strings.Repeat("f", 64)}
		equal := cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })
		full.Binding = []byte{3, 4}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(tx.CreateCredential(ctx, bare), tx.CreateCredential(ctx, full))
		})
		for _, want := range []store.Credential{bare, full} {
			got, err := s.Credential(t.Context(), want.ID)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, equal); diff != "" {
				t.Errorf("by id (-want +got):\n%s", diff)
			}
			if got, err = s.CredentialByPrefix(t.Context(), want.Prefix); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, equal); diff != "" {
				t.Errorf("by prefix (-want +got):\n%s", diff)
			}
		}
		all, err := s.Credentials(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]store.Credential{bare, full}, all, equal); diff != "" {
			t.Errorf("the list, the oldest first (-want +got):\n%s", diff)
		}
		for what, read := range map[string]func(context.Context, string) (store.Credential, error){
			"id": s.Credential, "prefix": s.CredentialByPrefix,
		} {
			if _, err := read(t.Context(), "unknown"); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("an unknown %s: %v, want ErrNotFound", what, err)
			}
		}
	})
}

// A row that cannot be parsed must not become a credential without limits.
func TestACredentialWithMalformedNetworksCannotBeRead(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		s := storetest.Open(t, address, time.Now)
		made := sampleCredential(addScope(t, s))
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.CreateCredential(ctx, made) })
		if _, err := storetest.OpenSQL(t, address).ExecContext(t.Context(), `UPDATE credentials SET allowed_networks = 'everywhere'`); err != nil {
			t.Fatal(err)
		}
		if got, err := s.CredentialByPrefix(t.Context(), made.Prefix); err == nil || errors.Is(err, store.ErrUnavailable) {
			t.Errorf("got %+v, %v; want an error", got, err)
		}
	})
}

func TestACredentialNeedsItsTaxpayer(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		c := sampleCredential(store.Scope{Environment: fiscal.Sandbox, TaxpayerID: store.NewID()})
		err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.CreateCredential(t.Context(), c) })
		if !errors.Is(err, store.ErrNotFound) {
			t.Errorf("of an unknown taxpayer: %v, want ErrNotFound", err)
		}
	})
}

func TestTwoCredentialsNeverShareAPrefix(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addScope(t, s)
		first, second := sampleCredential(scope), sampleCredential(scope)
		second.Prefix = first.Prefix
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.CreateCredential(ctx, first) })
		err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.CreateCredential(t.Context(), second) })
		if err == nil || errors.Is(err, store.ErrUnavailable) {
			t.Errorf("the same prefix twice: %v, want an error other than ErrUnavailable", err)
		}
	})
}

// The limit counts the usable credentials of one taxpayer in one environment. It also
// holds for concurrent callers.
func TestATaxpayerHasAtMostTwentyUsableCredentials(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addScope(t, s)
		ended, expired := sampleCredential(scope), sampleCredential(scope)
		expired.ExpiresAt = noon
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(tx.CreateCredential(ctx, ended), tx.CreateCredential(ctx, expired), tx.RevokeCredential(ctx, ended.ID, noon))
		})
		var made, refused atomic.Int64
		together(store.MaxLiveCredentials+5, func(int) {
			err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.CreateCredential(t.Context(), sampleCredential(scope)) })
			switch {
			case err == nil:
				made.Add(1)
			case errors.Is(err, store.ErrTooManyCredentials):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
		if made.Load() != store.MaxLiveCredentials || refused.Load() != 5 {
			t.Errorf("made %d and refused %d, want %d and 5", made.Load(), refused.Load(), store.MaxLiveCredentials)
		}
		elsewhere := store.Scope{Environment: fiscal.Production, TaxpayerID: scope.TaxpayerID}
		for what, scope := range map[string]store.Scope{"another environment": elsewhere, "another taxpayer": addScope(t, s)} {
			err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.CreateCredential(t.Context(), sampleCredential(scope)) })
			if err != nil {
				t.Errorf("%s has its own limit, got %v", what, err)
			}
		}
	})
}

func TestACredentialOnlyExpiresEarlier(t *testing.T) {
	t.Parallel()
	early, late := noon.Add(time.Hour), noon.Add(2*time.Hour)
	type step func(ctx context.Context, tx *store.Tx, id string) error
	expire := func(at time.Time) step {
		return func(ctx context.Context, tx *store.Tx, id string) error { return tx.ExpireCredential(ctx, id, at) }
	}
	revoke := func(at time.Time) step {
		return func(ctx context.Context, tx *store.Tx, id string) error { return tx.RevokeCredential(ctx, id, at) }
	}
	touch := func(at time.Time) step {
		return func(ctx context.Context, tx *store.Tx, id string) error { return tx.TouchCredential(ctx, id, at) }
	}
	tests := []struct {
		name  string
		steps []step
		want  func(*store.Credential)
	}{
		{"an expiry is set", []step{expire(late)}, func(c *store.Credential) { c.ExpiresAt = late }},
		{"an earlier expiry replaces a later one", []step{expire(late), expire(early)}, func(c *store.Credential) { c.ExpiresAt = early }},
		{"a later expiry does not replace an earlier one", []step{expire(early), expire(late)}, func(c *store.Credential) { c.ExpiresAt = early }},
		{"the first revocation is kept", []step{revoke(early), revoke(late)}, func(c *store.Credential) {
			c.RevokedAt, c.Binding = early, []byte("revoked") // so that nobody can undo it without the keys of the service
		}},
		{"the latest use is kept", []step{touch(late), touch(early)}, func(c *store.Credential) { c.LastUsedAt = late }},
		{"a later use replaces an earlier one", []step{touch(early), touch(late)}, func(c *store.Credential) { c.LastUsedAt = late }},
	}
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				scope := addScope(t, s)
				want, other := sampleCredential(scope), sampleCredential(scope)
				update(t, s, func(ctx context.Context, tx *store.Tx) error {
					return errors.Join(tx.CreateCredential(ctx, want), tx.CreateCredential(ctx, other))
				})
				for _, step := range tt.steps {
					update(t, s, func(ctx context.Context, tx *store.Tx) error { return step(ctx, tx, want.ID) })
				}
				tt.want(&want)
				for _, want := range []store.Credential{want, other} {
					got, err := s.Credential(t.Context(), want.ID)
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("-want +got:\n%s", diff)
					}
				}
			})
		}
	})
}

func TestACredentialIsLiveUntilItsEnd(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		c    store.Credential
		want bool
	}{
		{"without an end", store.Credential{}, true},
		{"before its end", store.Credential{ExpiresAt: noon.Add(1)}, true},
		{"at its end", store.Credential{ExpiresAt: noon}, false},
		{"revoked", store.Credential{RevokedAt: noon.Add(-1)}, false},
		{"revoked before its end", store.Credential{RevokedAt: noon, ExpiresAt: noon.Add(time.Hour)}, false},
	}
	for _, tt := range tests {
		if got := tt.c.Live(noon); got != tt.want {
			t.Errorf("%s: live is %v, want %v", tt.name, got, tt.want)
		}
	}
}
