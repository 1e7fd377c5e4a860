package access

import (
	"context"
	"crypto/rand"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

func TestARevocationTakesEffectWithinFiveSeconds(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		key, made := e.issue(e.terms())
		e.wantValid("before", key)
		e.must(e.Revoke(t.Context(), made.ID))
		e.must(e.Revoke(t.Context(), made.ID)) // a second call changes nothing
		e.advance(5 * time.Second)
		e.wantDenied("5 seconds later", key)
		if _, _, err := e.Rotate(t.Context(), made.ID, 0); err == nil {
			t.Error("a revoked credential was rotated")
		}
		if err := e.Revoke(t.Context(), store.NewID()); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a credential that does not exist: %v", err)
		}
	})
}

// The cache does not delay the end of a credential.
func TestACredentialExpiresExactlyOnTime(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		terms := e.terms()
		terms.ExpiresAt = e.now().Add(2 * time.Second)
		key, _ := e.issue(terms)
		e.wantValid("when it is new", key)
		e.advance(2*time.Second - time.Microsecond)
		e.wantValid("just before the end", key)
		e.advance(time.Microsecond)
		e.wantDenied("at the end", key)
	})
}

func TestKeysOfOlderPeppersStayValid(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		old, _ := e.issue(e.terms())
		master, err := e.master.InUse()
		e.must(err)
		e.must(addKey(t.Context(), e.store, master, kindPepper, 2))
		before := e.auth
		e.reload()
		fresh, made := e.issue(e.terms())
		if made.PepperVersion != 2 {
			t.Errorf("a new credential has pepper %d", made.PepperVersion)
		}
		e.wantValid("of the first pepper", old)
		e.wantValid("of the second", fresh)
		// A node that has not loaded the new pepper cannot check the key.
		if _, err := before.Authenticate(t.Context(), fresh); err == nil {
			t.Error("a key is accepted without its pepper")
		}
	})
}

// Write access to the database is not enough to create a valid credential: neither an
// empty nor an invented pepper works.
func TestWriteAccessToTheDatabaseForgesNoCredential(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		for _, version := range []int64{0, 1, 2, -1} {
			for name, pepper := range map[string][]byte{"nil": nil, "empty": {}, "zeros": make([]byte, keySize)} {
				key, err := apikey.New("sandbox", rand.Reader)
				e.must(err)
				digest := key.Digest(pepper)
				forged := store.Credential{
					ID: store.NewID(), Prefix: key.Prefix(), Environment: fiscal.Sandbox, TaxpayerID: e.taxpayer, Digest: digest[:],
					PepperVersion: version, Scopes: apikey.AllScopes(), CreatedAt: e.now(),
				}
				e.must(e.store.Update(t.Context(), func(tx *store.Tx) error { return tx.CreateCredential(t.Context(), forged) }))
				if _, err := e.auth.Authenticate(t.Context(), key); err == nil {
					t.Errorf("a credential forged with the pepper %s of version %d is accepted", name, version)
				}
				e.must(e.Revoke(t.Context(), forged.ID)) // a taxpayer may have twenty credentials
			}
		}
	})
}

func TestTouchIsCalledOncePerMinute(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		key, _ := e.issue(e.terms())
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() { e.wantValid("at once", key) })
		}
		all.Wait()
		for range 13 {
			e.advance(5 * time.Second)
			e.wantValid("later", key)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		// Each of the twenty calls at the same instant may have read the credential.
		late := slices.DeleteFunc(slices.Clone(e.touched), func(at time.Time) bool { return at.Equal(e.touched[0]) })
		if len(late) != 1 || late[0].Sub(e.touched[0]) != time.Minute {
			t.Errorf("used for 65 seconds, and touched at %v", e.touched)
		}
	})
}

func TestAnUnreachableDatabaseIsNotADenial(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		key, _ := e.issue(e.terms())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := e.auth.Authenticate(ctx, key); err == nil || errors.Is(err, ErrDenied) {
			t.Errorf("%v, want an error other than ErrDenied", err)
		}
		e.wantValid("afterwards", key)
	})
}

// The cache must not keep an unknown prefix for long: its key may be created next.
func TestUnknownKeysAreCachedForOneSecond(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		key, made, err := e.newCredential(e.terms())
		e.must(err)
		e.wantDenied("before it is stored", key)
		e.must(e.store.Update(t.Context(), func(tx *store.Tx) error { return tx.CreateCredential(t.Context(), made) }))
		e.advance(time.Second)
		e.wantValid("a second later", key)
	})
}

func TestAnIssuedKeyIsValidAndNotStored(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		terms := e.terms()
		terms.Scopes, terms.RateLimit = []apikey.Scope{apikey.InvoicesRead, apikey.ECFRead}, 77
		key, made := e.issue(terms)
		got, err := e.auth.Authenticate(t.Context(), key)
		e.must(err)
		if got.ID != made.ID || got.TaxpayerID != e.taxpayer || got.Environment != fiscal.Sandbox || got.RateLimit != 77 || !slices.Equal(got.Scopes, terms.Scopes) {
			t.Errorf("got %+v", got)
		}
		stored, err := e.store.Credential(t.Context(), made.ID)
		e.must(err)
		if bare := key.Digest(nil); slices.Equal(stored.Digest, bare[:]) {
			t.Error("the digest does not depend on the pepper")
		}
		if _, _, err := e.Issue(t.Context(), Terms{TaxpayerID: e.taxpayer, Environment: fiscal.Sandbox}); err == nil {
			t.Error("a credential without scopes was issued")
		}
		if _, _, err := e.Issue(t.Context(), Terms{TaxpayerID: store.NewID(), Environment: fiscal.Sandbox, Scopes: apikey.AllScopes()}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a credential of an unknown taxpayer: %v", err)
		}
		other, err := apikey.New("sandbox", rand.Reader)
		e.must(err)
		e.wantDenied("a key that was not issued", other)
	})
}

func TestRotateKeepsTheOldKeyForTheOverlap(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		terms := e.terms()
		terms.AllowedNetworks, terms.ClientCertificates = []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}, []string{strings.Repeat("0", 64)}
		old, made := e.issue(terms)
		fresh, successor, err := e.Rotate(t.Context(), made.ID, DefaultOverlap)
		e.must(err)
		if !slices.Equal(successor.AllowedNetworks, terms.AllowedNetworks) || !slices.Equal(successor.ClientCertificates, terms.ClientCertificates) {
			t.Errorf("the new credential allows other clients: %+v", successor)
		}
		if successor.TaxpayerID != made.TaxpayerID || successor.Environment != made.Environment || !slices.Equal(successor.Scopes, made.Scopes) {
			t.Errorf("the new credential has other terms: %+v", successor)
		}
		e.wantValid("the new one at once", fresh)
		e.advance(DefaultOverlap - time.Microsecond)
		e.wantValid("the old one within the overlap", old)
		e.advance(time.Microsecond)
		e.wantDenied("the old one after it", old)
		e.wantValid("the new one after it", fresh)
		if _, _, err := e.Rotate(t.Context(), made.ID, DefaultOverlap); err == nil {
			t.Error("Rotate accepts an expired credential")
		}
		for _, overlap := range []time.Duration{-1, maxOverlap + 1} {
			if _, _, err := e.Rotate(t.Context(), successor.ID, overlap); err == nil {
				t.Errorf("Rotate accepts an overlap of %s", overlap)
			}
		}
		if _, _, err := e.Rotate(t.Context(), store.NewID(), 0); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a credential that does not exist: %v", err)
		}
		// Without an overlap, for a leaked key, the old key ends like a revoked one.
		e.wantValid("before", fresh)
		_, _, err = e.Rotate(t.Context(), successor.ID, 0)
		e.must(err)
		e.advance(5 * time.Second)
		e.wantDenied("after", fresh)
	})
}

func TestRotateDoesNotExtendTheOldKey(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		terms := e.terms()
		terms.ExpiresAt = e.now().Add(time.Hour)
		old, made := e.issue(terms)
		_, _, err := e.Rotate(t.Context(), made.ID, DefaultOverlap)
		e.must(err)
		e.advance(time.Hour)
		e.wantDenied("after its own end", old)
	})
}
