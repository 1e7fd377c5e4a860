package access

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// desk is where credentials are issued and checked, with a clock that tests set.
type desk struct {
	Credentials
	t        *testing.T
	micros   *atomic.Int64
	master   *seal.Keys
	auth     *Authenticator
	taxpayer string
	mu       sync.Mutex
	touched  []time.Time
}

func newDesk(t *testing.T, address string) *desk {
	t.Helper()
	d := &desk{t: t, micros: new(atomic.Int64), master: newMaster(t), taxpayer: store.NewID()}
	d.micros.Store(time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC).UnixMicro())
	now := func() time.Time { return time.UnixMicro(d.micros.Load()).UTC() }
	s := storetest.Open(t, address, now)
	d.Credentials = Credentials{Store: s, Now: now}
	d.reload()
	made := store.Taxpayer{ID: d.taxpayer, RNC: "199000013", LegalName: "Prueba, SRL", Phones: []string{}, CreatedAt: now(), UpdatedAt: now()}
	d.must(s.Update(t.Context(), func(tx *store.Tx) error { return tx.CreateTaxpayer(t.Context(), made) }))
	return d
}

// reload loads the keyring as a node that starts does.
func (d *desk) reload() {
	d.t.Helper()
	ring, err := LoadKeyring(d.t.Context(), d.Store, d.master)
	d.must(err)
	d.Ring = ring
	d.auth = NewAuthenticator(d.Store, ring, d.Now, func(_ string, at time.Time) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.touched = append(d.touched, at)
	})
}

func (d *desk) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) advance(by time.Duration) { d.micros.Add(by.Microseconds()) }

func (d *desk) terms() Terms {
	return Terms{TaxpayerID: d.taxpayer, Environment: fiscal.Sandbox, Scopes: apikey.AllScopes()}
}

func (d *desk) issue(terms Terms) (apikey.Key, store.Credential) {
	d.t.Helper()
	key, made, err := d.Issue(d.t.Context(), terms)
	d.must(err)
	return key, made
}

func (d *desk) wantGood(when string, key apikey.Key) {
	d.t.Helper()
	if _, err := d.auth.Authenticate(d.t.Context(), key); err != nil {
		d.t.Errorf("%s: want it good, got %v", when, err)
	}
}

func (d *desk) wantDenied(when string, key apikey.Key) {
	d.t.Helper()
	if _, err := d.auth.Authenticate(d.t.Context(), key); !errors.Is(err, ErrDenied) {
		d.t.Errorf("%s: want it denied, got %v", when, err)
	}
}

func eachDesk(t *testing.T, test func(t *testing.T, d *desk)) {
	t.Helper()
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) { test(t, newDesk(t, address)) })
}

func TestIssuedKeyIsGoodAndNotKept(t *testing.T) {
	eachDesk(t, func(t *testing.T, d *desk) {
		terms := d.terms()
		terms.Scopes, terms.RateLimit = []apikey.Scope{apikey.InvoicesRead, apikey.ECFRead}, 77
		key, made := d.issue(terms)
		got, err := d.auth.Authenticate(t.Context(), key)
		d.must(err)
		if got.ID != made.ID || got.TaxpayerID != d.taxpayer || got.Environment != fiscal.Sandbox || got.RateLimit != 77 || !slices.Equal(got.Scopes, terms.Scopes) {
			t.Errorf("got %+v", got)
		}
		stored, err := d.Store.Credential(t.Context(), made.ID)
		d.must(err)
		if bare := key.Digest(nil); slices.Equal(stored.Digest, bare[:]) {
			t.Error("the digest needs no pepper")
		}
		if _, _, err := d.Issue(t.Context(), Terms{TaxpayerID: d.taxpayer, Environment: fiscal.Sandbox}); err == nil {
			t.Error("a credential without scopes was issued")
		}
		if _, _, err := d.Issue(t.Context(), Terms{TaxpayerID: store.NewID(), Environment: fiscal.Sandbox, Scopes: apikey.AllScopes()}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a credential of nobody: %v", err)
		}
		other, err := apikey.New("sandbox", rand.Reader)
		d.must(err)
		d.wantDenied("a key that nobody issued", other)
	})
}

func TestRotation(t *testing.T) {
	eachDesk(t, func(t *testing.T, d *desk) {
		old, made := d.issue(d.terms())
		fresh, successor, err := d.Rotate(t.Context(), made.ID, DefaultOverlap)
		d.must(err)
		if successor.TaxpayerID != made.TaxpayerID || successor.Environment != made.Environment || !slices.Equal(successor.Scopes, made.Scopes) {
			t.Errorf("the successor has other terms: %+v", successor)
		}
		d.wantGood("the new one at once", fresh)
		d.advance(DefaultOverlap - time.Microsecond)
		d.wantGood("the old one within the overlap", old)
		d.advance(time.Microsecond)
		d.wantDenied("the old one after it", old)
		d.wantGood("the new one after it", fresh)
		if _, _, err := d.Rotate(t.Context(), made.ID, DefaultOverlap); err == nil {
			t.Error("a credential that has ended was rotated")
		}
		for _, overlap := range []time.Duration{-1, maxOverlap + 1} {
			if _, _, err := d.Rotate(t.Context(), successor.ID, overlap); err == nil {
				t.Errorf("an overlap of %s was accepted", overlap)
			}
		}
		if _, _, err := d.Rotate(t.Context(), store.NewID(), 0); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a credential that does not exist: %v", err)
		}
		// Without an overlap, which is for a key that leaked, it ends as a revocation does.
		d.wantGood("before", fresh)
		_, _, err = d.Rotate(t.Context(), successor.ID, 0)
		d.must(err)
		d.advance(5 * time.Second)
		d.wantDenied("after", fresh)
	})
}

// An overlap never lets a credential live longer than it would have.
func TestRotationDoesNotProlong(t *testing.T) {
	eachDesk(t, func(t *testing.T, d *desk) {
		terms := d.terms()
		terms.ExpiresAt = d.Now().Add(time.Hour)
		old, made := d.issue(terms)
		_, _, err := d.Rotate(t.Context(), made.ID, DefaultOverlap)
		d.must(err)
		d.advance(time.Hour)
		d.wantDenied("after its own end", old)
	})
}

func TestRevocationIsInForceWithinFiveSeconds(t *testing.T) {
	eachDesk(t, func(t *testing.T, d *desk) {
		key, made := d.issue(d.terms())
		d.wantGood("before", key)
		d.must(d.Revoke(t.Context(), made.ID))
		d.must(d.Revoke(t.Context(), made.ID)) // once more changes nothing
		d.advance(5 * time.Second)
		d.wantDenied("5 seconds later", key)
		if _, _, err := d.Rotate(t.Context(), made.ID, 0); err == nil {
			t.Error("a revoked credential was rotated")
		}
		if err := d.Revoke(t.Context(), store.NewID()); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a credential that does not exist: %v", err)
		}
	})
}

// What is remembered of a credential does not outlive its end.
func TestExpiryIsToTheInstant(t *testing.T) {
	eachDesk(t, func(t *testing.T, d *desk) {
		terms := d.terms()
		terms.ExpiresAt = d.Now().Add(2 * time.Second)
		key, _ := d.issue(terms)
		d.wantGood("at first", key)
		d.advance(2*time.Second - time.Microsecond)
		d.wantGood("a moment before", key)
		d.advance(time.Microsecond)
		d.wantDenied("at the instant", key)
	})
}

func TestPeppersAreVersioned(t *testing.T) {
	eachDesk(t, func(t *testing.T, d *desk) {
		old, _ := d.issue(d.terms())
		master, err := d.master.InUse()
		d.must(err)
		d.must(addKey(t.Context(), d.Store, master, kindPepper, 2))
		before := d.auth
		d.reload()
		fresh, made := d.issue(d.terms())
		if made.PepperVersion != 2 {
			t.Errorf("a new credential has pepper %d", made.PepperVersion)
		}
		d.wantGood("of the first pepper", old)
		d.wantGood("of the second", fresh)
		// A node that has not heard of the new pepper cannot check it.
		if _, err := before.Authenticate(t.Context(), fresh); err == nil {
			t.Error("a key was found good without its pepper")
		}
	})
}

// Who can write to the database but has no pepper cannot make a credential:
// not with no pepper, not with one that does not exist.
func TestDatabaseAloneMintsNoCredential(t *testing.T) {
	eachDesk(t, func(t *testing.T, d *desk) {
		for _, version := range []int64{0, 1, 2, -1} {
			for name, pepper := range map[string][]byte{"nil": nil, "empty": {}, "zeros": make([]byte, keySize)} {
				key, err := apikey.New("sandbox", rand.Reader)
				d.must(err)
				digest := key.Digest(pepper)
				forged := store.Credential{
					ID: store.NewID(), Prefix: key.Prefix(), Environment: fiscal.Sandbox, TaxpayerID: d.taxpayer, Digest: digest[:],
					PepperVersion: version, Scopes: apikey.AllScopes(), CreatedAt: d.Now(),
				}
				d.must(d.Store.Update(t.Context(), func(tx *store.Tx) error { return tx.CreateCredential(t.Context(), forged) }))
				if _, err := d.auth.Authenticate(t.Context(), key); err == nil {
					t.Errorf("a credential forged with the pepper %s of version %d is good", name, version)
				}
				d.must(d.Revoke(t.Context(), forged.ID)) // a taxpayer has room for twenty
			}
		}
	})
}

func TestUseIsNotedOnceAMinute(t *testing.T) {
	eachDesk(t, func(t *testing.T, d *desk) {
		key, _ := d.issue(d.terms())
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() { d.wantGood("at once", key) })
		}
		all.Wait()
		for range 13 {
			d.advance(5 * time.Second)
			d.wantGood("later", key)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		// Twenty at the same instant may each have read the credential anew.
		late := slices.DeleteFunc(slices.Clone(d.touched), func(at time.Time) bool { return at.Equal(d.touched[0]) })
		if len(late) != 1 || late[0].Sub(d.touched[0]) != time.Minute {
			t.Errorf("used for 65 seconds and noted at %v", d.touched)
		}
	})
}

// A database that cannot be asked is no verdict.
func TestUnreachableDatabaseDeniesNobody(t *testing.T) {
	eachDesk(t, func(t *testing.T, d *desk) {
		key, _ := d.issue(d.terms())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := d.auth.Authenticate(ctx, key); err == nil || errors.Is(err, ErrDenied) {
			t.Errorf("got %v", err)
		}
		d.wantGood("afterwards", key)
	})
}

// A key that did not exist a moment ago is good soon after it was made.
func TestUnknownKeysAreForgottenWithinASecond(t *testing.T) {
	eachDesk(t, func(t *testing.T, d *desk) {
		key, made, err := d.mint(d.terms())
		d.must(err)
		d.wantDenied("before it is stored", key)
		d.must(d.Store.Update(t.Context(), func(tx *store.Tx) error { return tx.CreateCredential(t.Context(), made) }))
		d.advance(time.Second)
		d.wantGood("a second later", key)
	})
}
