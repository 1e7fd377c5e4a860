package access

import (
	"crypto/rand"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

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
