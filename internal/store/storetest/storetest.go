// Package storetest gives tests a real, empty store on every engine. The
// PostgreSQL server is a throw-away cluster started from the installed
// binaries; it ends with the test process.
package storetest

import (
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
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

// Postgres is the cluster of this test process. Without the binaries the test
// is skipped aloud; with CI set it fails.
func Postgres(t testing.TB) *Server {
	t.Helper()
	serverOnce.Do(func() { server, errServer = StartPostgres() })
	if errServer != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("PostgreSQL is needed under CI: %v", errServer)
		}
		t.Skipf("SKIPPED on PostgreSQL: %v", errServer)
	}
	return server
}

// template is the database that fresh ones are copied from.
const template = "fiscalhub_template"

// database makes a database of its own for a test.
func (s *Server) database(t testing.TB) string {
	t.Helper()
	s.once.Do(func() {
		if s.err = s.exec(`CREATE DATABASE ` + template); s.err != nil {
			return
		}
		var st *store.Store
		st, s.err = store.Open(t.Context(), s.URL(template), store.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		if s.err == nil {
			s.err = st.Close()
		}
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	name := fmt.Sprintf("test_%d", s.count.Add(1))
	s.mu.Lock() // a template is copied for one at a time
	defer s.mu.Unlock()
	if err := s.exec(`CREATE DATABASE ` + name + ` TEMPLATE ` + template); err != nil {
		t.Fatal(err)
	}
	return s.URL(name)
}

// Private is a cluster of its own for a test that changes its settings or stops
// it. It is skipped or failed as Postgres is.
func Private(t testing.TB, settings ...string) *Server {
	t.Helper()
	Postgres(t)
	s, err := StartPostgres(settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// Empty is the address of a database without any table.
func (s *Server) Empty(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("empty_%d", s.count.Add(1))
	if err := s.exec(`CREATE DATABASE ` + name); err != nil {
		t.Fatal(err)
	}
	return s.URL(name)
}

func (s *Server) exec(statement string) error { return s.execIn("postgres", statement) }

func (s *Server) execIn(database, statement string) error {
	db, err := sql.Open("pgx", s.URL(database))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	_, err = db.Exec(statement) //nolint:noctx // setting up, nothing to cancel
	return err
}

// Settle does at once what the server does by itself after a large load: it
// gathers statistics and marks what everybody may see.
func (s *Server) Settle(database string) error { return s.execIn(database, `VACUUM (ANALYZE)`) }

// URL is the address of one of the server's databases.
func (s *Server) URL(name string) string {
	q := url.Values{"host": {s.Dir}, "user": {"postgres"}}
	return "postgres:///" + name + "?" + q.Encode()
}

// Server is a running throw-away cluster. Its socket is in Dir.
type Server struct {
	Dir   string
	args  []string
	cred  *syscall.Credential
	stop  func(order string)
	once  sync.Once
	err   error
	mu    sync.Mutex
	count atomic.Int64
}
