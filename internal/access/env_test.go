package access

import (
	"errors"
	"path/filepath"
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

// env is a store with a taxpayer, a master key, credentials and an authenticator. Tests
// set its clock.
type env struct {
	*Credentials
	t        *testing.T
	address  string
	micros   *atomic.Int64
	master   *seal.Keys
	auth     *Authenticator
	taxpayer string
	mu       sync.Mutex
	touched  []time.Time
}

func newEnv(t *testing.T, address string) *env {
	t.Helper()
	return newEnvWith(t, address, newMaster(t))
}

// newEnvWith is newEnv with a given master key.
func newEnvWith(t *testing.T, address string, master *seal.Keys) *env {
	t.Helper()
	e := &env{t: t, address: address, micros: new(atomic.Int64), master: master, taxpayer: store.NewID()}
	e.micros.Store(time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC).UnixMicro())
	now := func() time.Time { return time.UnixMicro(e.micros.Load()).UTC() }
	s := storetest.Open(t, address, now)
	e.Credentials = NewCredentials(s, nil, now)
	e.reload()
	made := store.Taxpayer{ID: e.taxpayer, RNC: "199000013", LegalName: "Prueba, SRL", Phones: []string{}, CreatedAt: now(), UpdatedAt: now()}
	e.must(s.Update(t.Context(), func(tx *store.Tx) error { return tx.CreateTaxpayer(t.Context(), made) }))
	return e
}

// forEachEngine runs a test with an environment on every engine, in parallel with other
// tests.
func forEachEngine(t *testing.T, test func(t *testing.T, e *env)) {
	t.Helper()
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) { test(t, newEnv(t, address)) })
}

func newMaster(t *testing.T) *seal.Keys {
	t.Helper()
	keys := seal.NewKeys(filepath.Join(t.TempDir(), "master.key"))
	if _, err := keys.InUse(); err != nil {
		t.Fatal(err)
	}
	return keys
}

// inUse returns the id of the key in the file in use.
func inUse(t *testing.T, keys *seal.Keys) string {
	t.Helper()
	m, err := seal.Load(keys.File())
	if err != nil {
		t.Fatal(err)
	}
	return m.ID()
}

// reload loads the keyring, as a starting node does.
func (e *env) reload() {
	e.t.Helper()
	ring, err := LoadKeyring(e.t.Context(), e.store, e.master)
	e.must(err)
	e.Credentials = NewCredentials(e.store, ring, e.now)
	e.auth = NewAuthenticator(e.store, ring, e.now, func(_ string, at time.Time) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.touched = append(e.touched, at)
	})
}

func (e *env) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

func (e *env) advance(by time.Duration) { e.micros.Add(by.Microseconds()) }

// production returns the scope of the taxpayer in production.
func (e *env) production() store.Scope {
	return store.Scope{Environment: fiscal.Production, TaxpayerID: e.taxpayer}
}

func (e *env) terms() Terms {
	return Terms{TaxpayerID: e.taxpayer, Environment: fiscal.Sandbox, Scopes: apikey.AllScopes()}
}

func (e *env) issue(terms Terms) (apikey.Key, store.Credential) {
	e.t.Helper()
	key, made, err := e.Issue(e.t.Context(), terms)
	e.must(err)
	return key, made
}

func (e *env) wantValid(when string, key apikey.Key) {
	e.t.Helper()
	if _, err := e.auth.Authenticate(e.t.Context(), key); err != nil {
		e.t.Errorf("%s: the key is refused: %v", when, err)
	}
}

func (e *env) wantDenied(when string, key apikey.Key) {
	e.t.Helper()
	if _, err := e.auth.Authenticate(e.t.Context(), key); !errors.Is(err, ErrDenied) {
		e.t.Errorf("%s: %v, want ErrDenied", when, err)
	}
}
