// Package storetest gives tests a real, empty store on every engine. The PostgreSQL
// server is a temporary cluster of the installed binaries. It ends with the test
// process.
package storetest

import (
	"context"
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

// Engines returns the names of the engines that every storage test runs on.
func Engines() []string { return []string{"sqlite", "postgres"} }

// Each runs fn on an empty store of every engine.
func Each(t *testing.T, fn func(t *testing.T, s *store.Store)) {
	t.Helper()
	EachAddress(t, func(t *testing.T, address string) {
		fn(t, Open(t, address, time.Now))
	})
}

// EachAddress runs fn with the address of a new database on every engine, for tests that
// open the database themselves or more than once.
func EachAddress(t *testing.T, fn func(t *testing.T, address string)) {
	t.Helper()
	for _, engine := range Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			fn(t, Address(t, engine))
		})
	}
}

// Open opens a store, and closes it when the test ends. now is the clock of the node and
// of the database.
func Open(t testing.TB, address string, now func() time.Time) *store.Store {
	t.Helper()
	return OpenNode(t, address, now, now)
}

// OpenNode opens a store whose node has another clock than the database, and closes it
// when the test ends.
func OpenNode(t testing.TB, address string, node, database func() time.Time) *store.Store {
	t.Helper()
	return open(t, address, store.Options{
		Now: node, DatabaseNow: func(context.Context) (time.Time, error) { return database(), nil },
	})
}

// OpenPoints opens a store that calls point before and after every transaction, and
// closes it when the test ends.
func OpenPoints(t testing.TB, address string, now func() time.Time, point func(name string) error) *store.Store {
	t.Helper()
	return open(t, address, store.Options{
		Now: now, DatabaseNow: func(context.Context) (time.Time, error) { return now(), nil }, Point: point,
	})
}

func open(t testing.TB, address string, o store.Options) *store.Store {
	t.Helper()
	o.Log = slog.New(slog.DiscardHandler)
	s, err := store.Open(t.Context(), address, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("the store cannot be closed: %v", err)
		}
	})
	return s
}

// Address creates a migrated database of an engine and returns its address.
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

// SQLite creates a migrated database in a folder and returns its address. It copies a
// file that it migrated once, because a migration takes longer than most tests.
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
