// Package storetest gives tests a real, empty store on every engine. The
// PostgreSQL server is a throw-away cluster started from the installed
// binaries; it ends with the test process.
package storetest

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver that creates databases

	"github.com/fiscalhub/fiscalhub/internal/store"
)

// Engines are the engines that every storage test runs on.
func Engines() []string { return []string{"sqlite", "postgres"} }

// Each runs fn on an empty store of every engine.
func Each(t *testing.T, fn func(t *testing.T, s *store.Store)) {
	t.Helper()
	EachAddress(t, func(t *testing.T, address string) {
		fn(t, Open(t, address, time.Now))
	})
}

// EachAddress runs fn with the address of a database of its own on every
// engine, for tests that open it themselves or more than once.
func EachAddress(t *testing.T, fn func(t *testing.T, address string)) {
	t.Helper()
	for _, engine := range Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			fn(t, Address(t, engine))
		})
	}
}

// Open opens a store that is closed when the test ends.
func Open(t testing.TB, address string, now func() time.Time) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), address, store.Options{Now: now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	return s
}

// Address is the address of a fresh database.
func Address(t testing.TB, engine string) string {
	t.Helper()
	if engine == "sqlite" {
		return SQLite(t, t.TempDir())
	}
	return Postgres(t).database(t)
}

var sqliteTemplate struct {
	once sync.Once
	file []byte
	err  error
}

// SQLite is the address of a fresh database in a folder. It is the copy of one
// whose tables were made once: making them takes longer than most tests.
func SQLite(t testing.TB, dir string) string {
	t.Helper()
	m := &sqliteTemplate
	m.once.Do(func() {
		path := filepath.Join(t.TempDir(), "template.db")
		var s *store.Store
		s, m.err = store.Open(t.Context(), "sqlite:"+path, store.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		if m.err == nil {
			m.err = s.Close()
		}
		if m.err == nil {
			m.file, m.err = os.ReadFile(path)
		}
	})
	path := filepath.Join(dir, "fiscalhub.db")
	if err := errors.Join(m.err, os.WriteFile(path, m.file, 0o600)); err != nil {
		t.Fatal(err)
	}
	return "sqlite:" + path
}

var (
	serverOnce sync.Once
	server     *Server
	errServer  error
)
