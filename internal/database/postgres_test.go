package database_test

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/database"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// admin opens a connection to the server as a superuser, without the service.
func admin(t *testing.T, address string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", storetest.As(address, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func run(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// The settings of the service replace those of the address.
func TestAPostgresConnectionHasItsSettings(t *testing.T) {
	t.Parallel()
	address := storetest.Postgres(t).Empty(t) + "&lock_timeout=0&statement_timeout=0&default_transaction_isolation=serializable"
	s := open(t, address)
	for name, want := range map[string]string{
		"lock_timeout": "5s", "statement_timeout": "10s", "idle_in_transaction_session_timeout": "15s",
		"default_transaction_isolation": "read committed", "application_name": "fiscalhub", "timezone": "UTC",
	} {
		var got string
		if err := s.Reader().QueryRowContext(t.Context(), `SELECT current_setting($1)`, name).Scan(&got); err != nil || got != want {
			t.Errorf("%s = %s, %v; want %s", name, got, err, want)
		}
	}
}

// The server does not compile statements: a scan of a small table, which counts as very
// expensive here, would take tens of milliseconds instead of one.
func TestStatementsAreNotCompiled(t *testing.T) {
	t.Parallel()
	s := open(t, storetest.Postgres(t).Empty(t))
	var jit string
	if err := s.Reader().QueryRowContext(t.Context(), `SELECT current_setting('jit')`).Scan(&jit); err != nil || jit != "off" {
		t.Errorf("jit is %q, %v", jit, err)
	}
}

// Open refuses a server that can lose committed rows, and names the setting.
func TestAServerThatCanLoseCommitsIsRefused(t *testing.T) {
	t.Parallel()
	server := storetest.PrivatePostgres(t, "synchronous_commit=off")
	for _, setting := range []string{"fsync", "full_page_writes"} {
		if err := server.Configure(setting, "off"); err != nil {
			t.Fatal(err)
		}
	}
	db := admin(t, server.URL("postgres"))
	address := server.Empty(t)
	open := func() error {
		s, err := database.Open(t.Context(), address, database.TestMigrations(), database.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		return s.Close()
	}
	for _, setting := range []string{"fsync", "full_page_writes", "synchronous_commit"} {
		eventually(t, time.Minute, setting+" = off", func() bool { err := open(); return err != nil && strings.Contains(err.Error(), setting) })
		// The client can change synchronous_commit. The others belong to the server.
		if setting == "synchronous_commit" {
			address += "&synchronous_commit=on"
			continue
		}
		if err := server.Configure(setting, "on"); err != nil {
			t.Fatal(err)
		}
		eventually(t, time.Minute, setting, func() bool { err := open(); return err == nil || !strings.Contains(err.Error(), setting) })
	}
	if err := open(); err != nil {
		t.Errorf("a server with safe settings: %v", err)
	}
	address = strings.Replace(address, "synchronous_commit=on", "synchronous_commit=off", 1)
	if err := open(); err == nil {
		t.Error("an address that turns synchronous_commit off was accepted")
	}
	run(t, db, `SELECT 1`)
}

// A connection that the server terminates, during a transaction or while idle, is a
// temporary failure.
func TestATerminatedConnectionIsUnavailableAndRecovers(t *testing.T) {
	t.Parallel()
	address := storetest.Postgres(t).Empty(t)
	s, db := open(t, address), admin(t, address)
	terminate := func() {
		run(t, db, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'fiscalhub'`)
	}
	err := s.Update(t.Context(), func(q database.Querier) error {
		if err := add(t.Context(), q); err != nil {
			return err
		}
		terminate()
		return add(t.Context(), q)
	})
	if !errors.Is(s.Dialect().Wrap("update", err), database.ErrUnavailable) {
		t.Errorf("terminated before a statement: %v, want ErrUnavailable", err)
	}
	err = s.Update(t.Context(), func(q database.Querier) error {
		err := add(t.Context(), q)
		terminate()
		return err
	})
	if !errors.Is(s.Dialect().Wrap("update", err), database.ErrUnavailable) {
		t.Errorf("terminated before the commit: %v, want ErrUnavailable", err)
	}
	if n := countItems(t, s); n != 0 {
		t.Errorf("%d items remain", n)
	}
	for range 5 { // all idle connections are terminated
		terminate()
		eventually(t, time.Minute, "an insertion", func() bool {
			err := insertItem(t.Context(), s)
			if err != nil && !errors.Is(err, database.ErrUnavailable) {
				t.Fatalf("a terminated idle connection: %v, want ErrUnavailable", err)
			}
			return err == nil
		})
	}
}

// Without a server every call returns ErrUnavailable. After a restart the database works
// again, with the rows from before.
func TestAStoppedServerIsUnavailableAndRecovers(t *testing.T) {
	t.Parallel()
	server := storetest.PrivatePostgres(t)
	s := open(t, server.Empty(t))
	if err := insertItem(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	server.Halt()
	for what, err := range map[string]error{
		"ping": s.Ready(t.Context()), "insert": insertItem(t.Context(), s),
		"update": s.Update(t.Context(), func(q database.Querier) error { return add(t.Context(), q) }),
	} {
		if !errors.Is(err, database.ErrUnavailable) || errors.Is(err, database.ErrNotFound) {
			t.Errorf("%s without a server: %v, want ErrUnavailable", what, err)
		}
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "the database is ready again", func() bool { return s.Ready(t.Context()) == nil })
	if n := countItems(t, s); n != 1 {
		t.Errorf("%d items from before the stop, want 1", n)
	}
	if err := insertItem(t.Context(), s); err != nil {
		t.Error(err)
	}
}

// Two transactions wait for each other. The server rolls back one of them, and the database
// runs it again.
func TestATransactionRunsAgainAfterADeadlock(t *testing.T) {
	t.Parallel()
	s := open(t, storetest.Postgres(t).Empty(t))
	var runs atomic.Int64
	var crossed sync.WaitGroup
	crossed.Add(2)
	together(2, func(i int) {
		buckets := []string{"a", "b"}
		first := true
		err := s.Update(t.Context(), func(q database.Querier) error {
			runs.Add(1)
			if err := raise(t.Context(), q, buckets[i]); err != nil {
				return err
			}
			if first {
				first = false
				crossed.Done()
				crossed.Wait()
			}
			return raise(t.Context(), q, buckets[1-i])
		})
		if err != nil {
			t.Errorf("transaction %d: %v", i, err)
		}
	})
	if runs.Load() < 3 { // the second attempt may deadlock again
		t.Errorf("the functions ran %d times, so there was no deadlock", runs.Load())
	}
	for _, bucket := range []string{"a", "b"} {
		var n int
		if err := s.Reader().QueryRowContext(t.Context(), `SELECT n FROM counters WHERE name = $1`, bucket).Scan(&n); err != nil || n != 2 {
			t.Errorf("counter %s has %d, %v; want 2", bucket, n, err)
		}
	}
}

// The server ends a statement that runs for too long.
func TestAStatementThatTakesTooLongIsUnavailable(t *testing.T) {
	t.Parallel()
	s := open(t, storetest.Postgres(t).Empty(t))
	err := s.Update(t.Context(), func(q database.Querier) error {
		if err := execute(t.Context(), q, `SET LOCAL statement_timeout = '100ms'`); err != nil {
			return err
		}
		return execute(t.Context(), q, `SELECT pg_sleep(30)`)
	})
	if !errors.Is(s.Dialect().Wrap("update", err), database.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
}

func TestADeadlineOfAReaderIsUnavailable(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *database.DB) {
		ctx, cancel := context.WithTimeout(t.Context(), -1)
		defer cancel()
		_, err := s.SchemaVersion(ctx)
		if !errors.Is(err, database.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want ErrUnavailable for a deadline", err)
		}
	})
}
