// Package nodetest opens nodes for tests.
package nodetest

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/dgii"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live/livetest"
	"github.com/fiscalhub/fiscalhub/internal/node"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// Open opens a node on a database, which other nodes may use, with the clock of the test. It
// is a node of the sandbox that logs nothing, unless the configuration says otherwise. The
// test closes it.
func Open(t testing.TB, address string, now func() time.Time, c node.Config) *node.Node {
	t.Helper()
	c.Store = storetest.Open(t, address, now)
	if c.Environment == "" {
		c.Environment = fiscal.Sandbox
	}
	if c.Keys == nil {
		c.Keys = seal.NewKeys(filepath.Join(t.TempDir(), "master.key"))
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.BaseURL == "" {
		c.BaseURL = "https://invoices.example"
	}
	if c.Authority.Hosts == (dgii.Hosts{}) { // an authority that nobody reaches
		c.Authority.Hosts = must(dgii.SimulatorHosts("https://authority.invalid", "ecf"))(t)
	}
	c.Keyring = must(access.LoadKeyring(t.Context(), c.Store, c.Keys))(t)
	n := must(node.Open(t.Context(), c))(t)
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// Live returns the configuration of a node of production that speaks to an authority, whose
// issuer is every taxpayer.
func Live(a *livetest.Authority) node.Config {
	return node.Config{
		Environment: fiscal.Production, Roots: a.Client.Roots, Identities: livetest.Identities{ID: a.Identity},
		Authority: dgii.Options{Hosts: a.Client.Hosts, AllowOrigin: a.Client.AllowOrigin},
	}
}

// must returns a function that ends the test when there is an error, and returns the value
// otherwise.
func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}
