package people

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

const goodPassword = "una frase larga y propia"

// countingHasher stands for Argon2id, and counts what it computes.
type countingHasher struct{ computed atomic.Int64 }

func (h *countingHasher) Hash(_ context.Context, password string) (string, error) {
	h.computed.Add(1)
	return "plain " + password, nil
}

func (h *countingHasher) Matches(_ context.Context, hash, password string) (bool, error) {
	h.computed.Add(1)
	return hash == "plain "+password, nil
}

// env is the people of an empty store with a taxpayer. Tests set its clock.
type env struct {
	*People
	t        *testing.T
	clock    *storetest.Clock
	keys     *seal.Keys
	counter  *countingHasher
	taxpayer string
}

func newEnv(t *testing.T, address string) *env {
	t.Helper()
	e := &env{t: t, clock: storetest.NewClock(), keys: seal.NewKeys(filepath.Join(t.TempDir(), "master.key")), counter: &countingHasher{}, taxpayer: store.NewID()}
	s := storetest.Open(t, address, e.clock.Now)
	_, err := access.LoadKeyring(t.Context(), s, e.keys)
	e.must(err)
	e.People, err = New(Options{Store: s, Secrets: access.NewSecrets(s, e.keys), Hasher: e.counter, Now: e.clock.Now})
	e.must(err)
	now := e.clock.Now()
	made := store.Taxpayer{ID: e.taxpayer, RNC: "199000013", LegalName: "Prueba, SRL", Phones: []string{}, CreatedAt: now, UpdatedAt: now}
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

func (e *env) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

func client() Client {
	return Client{Environment: fiscal.Sandbox, Address: "192.0.2.1", Browser: "Firefox/1", RequestID: "r"}
}

// add creates a person with a password, and returns the cookie of a first session.
func (e *env) add(email string, role store.Role) (store.User, Token) {
	e.t.Helper()
	u, link, err := e.Create(e.t.Context(), Invitation{Name: "Ana Pérez", Email: email, Role: role, TaxpayerIDs: []string{e.taxpayer}})
	e.must(err)
	cookie, err := e.Welcome(e.t.Context(), link, goodPassword, client())
	e.must(err)
	return u, cookie
}

// signIn signs in from an address of its own.
func (e *env) signIn(email, password, code string) (Token, error) {
	c := client()
	c.Address = store.NewID()
	return e.SignIn(e.t.Context(), Credentials{Email: email, Password: password, Code: code}, c)
}
