package database

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"modernc.org/sqlite"
)

// faultyConnector opens connections of SQLite that fail on demand.
type faultyConnector struct {
	driver.Connector
	commits atomic.Int64 // how many commits fail
	connect atomic.Pointer[error]
}

// faultyConn fails a commit after SQLite has done it, as a failed fsync can.
type faultyConn struct {
	driver.Conn
	from *faultyConnector
}

var errFsync = errors.New("fsync: input/output error")

func (f *faultyConnector) Connect(ctx context.Context) (driver.Conn, error) {
	if err := f.connect.Load(); err != nil {
		return nil, *err
	}
	conn, err := f.Connector.Connect(ctx)
	return &faultyConn{conn, f}, err
}

func (c *faultyConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	done, err := c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
	if query == `COMMIT` && c.from.commits.Add(-1) >= 0 {
		return nil, errFsync
	}
	return done, err
}

func (c *faultyConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

func (c *faultyConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	return c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
}

// openFaulty opens a SQLite database whose connections fail on demand. Its log goes to the
// buffer.
func openFaulty(t *testing.T, path string) (*DB, *faultyConnector, *bytes.Buffer) {
	t.Helper()
	base, err := sqlite.NewConnector("file:" + path)
	if err != nil {
		t.Fatal(err)
	}
	faulty, log := &faultyConnector{Connector: base}, new(bytes.Buffer)
	d := sqliteDialect()
	d.open = func(ctx context.Context, _ string, failure *storageFailure) (*engine, error) {
		return openSQLiteConnector(ctx, faulty, failure)
	}
	s, err := openDialect(t.Context(), d, path, testMigrations(), Options{Now: time.Now, Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, faulty, log
}

// assertBroken checks that each way to write returns ErrBroken, and that reads work.
func assertBroken(t *testing.T, s *DB) {
	t.Helper()
	select {
	case <-s.Broken():
	default:
		t.Error("Broken is open")
	}
	ctx, ran := t.Context(), false
	check := func([]int64) error { ran = true; return nil }
	for what, err := range map[string]error{
		"Update": s.Update(ctx, func(Querier) error { ran = true; return nil }), "Batch": s.Batch(ctx, nil, check), "Insert": s.Insert(ctx, nil, check),
	} {
		if !errors.Is(err, ErrBroken) || !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "this process must end") {
			t.Errorf("%s after the failure: %v, want ErrBroken", what, err)
		}
	}
	if ran {
		t.Error("a transaction ran after the failure")
	}
	if _, err := countItems(ctx, s); err != nil {
		t.Errorf("a read after the failure: %v", err)
	}
}

// The next commit after a failed one would succeed. No caller must get that result.
func TestNothingIsAcknowledgedAfterAFailedCommit(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "fiscalhub.db")
	s, faulty, log := openFaulty(t, path)
	if err := addItem(t.Context(), s, 0); err != nil {
		t.Fatal(err)
	}
	const writers = 300
	var acknowledged atomic.Int64
	var all sync.WaitGroup
	faulty.commits.Store(1)
	for range writers {
		all.Go(func() {
			if err := addItem(t.Context(), s, 0); err == nil {
				acknowledged.Add(1)
			} else if !errors.Is(err, ErrBroken) || !errors.Is(err, ErrUnavailable) {
				t.Errorf("got %v, want ErrBroken", err)
			}
		})
	}
	all.Wait()
	if n := acknowledged.Load(); n != 0 {
		t.Errorf("%d of %d were acknowledged, although the first commit failed", n, writers)
	}
	assertBroken(t, s)
	if n := strings.Count(log.String(), "The storage failed"); n != 1 {
		t.Errorf("the log has the failure %d times:\n%s", n, log)
	}
	// Another process can use the database.
	if err := addItem(t.Context(), openPath(t, path), 0); err != nil {
		t.Errorf("another store: %v", err)
	}
}

// A transaction that waits in the queue while a commit fails does not run.
func TestQueuedTransactionsDoNotRunAfterAFailedCommit(t *testing.T) {
	t.Parallel()
	e := newEnv(t, time.Minute)
	release := e.hold()
	wait := e.run(10, insert)
	e.queued(10)
	gate := make(chan struct{})
	e.spy.mu.Lock()
	e.spy.gate = gate
	e.spy.mu.Unlock()
	e.spy.failAfter(1, `COMMIT`, errFsync)
	before := e.spy.count(`COMMIT`)
	var holder sync.WaitGroup
	holder.Go(release)
	gate <- struct{}{} // for the transaction that held the writer
	for e.spy.count(`COMMIT`) < before+2 {
		time.Sleep(time.Millisecond)
	}
	later := e.run(10, func(i int) func(Querier) error { return insert(100 + i) })
	e.queued(10)
	gate <- struct{}{}
	for i, err := range append(wait(), later()...) {
		if !errors.Is(err, ErrUnavailable) {
			t.Errorf("transaction %d: %v, want ErrUnavailable", i, err)
		}
	}
	holder.Wait()
	if begins := e.spy.count(`BEGIN IMMEDIATE`); begins != 2 || e.rows() != 0 {
		t.Errorf("%d transactions began, and %d rows are stored; want 2 and none", begins, e.rows())
	}
}

// A damaged file is a failure of the storage, also when the statement of one member of a
// group finds it.
func TestADamagedFileFailsTheWholeGroup(t *testing.T) {
	t.Parallel()
	damaged := damagedFileError(t)
	e := newEnv(t, time.Minute)
	release := e.hold()
	wait := e.run(10, func(i int) func(Querier) error {
		return func(q Querier) error {
			if i == 5 {
				return damaged
			}
			return insert(i)(q)
		}
	})
	e.queued(10)
	release()
	for i, err := range wait() {
		if !errors.Is(err, ErrBroken) {
			t.Errorf("member %d: %v, want ErrBroken", i, err)
		}
	}
	if err := e.update(t.Context(), insert(1)); !errors.Is(err, ErrBroken) || e.rows() != 0 {
		t.Errorf("afterwards: %v, and %d rows", err, e.rows())
	}
}

// damagedFileError returns the error of SQLite for a file that is not a database.
func damagedFileError(t *testing.T) error {
	t.Helper()
	path := filepath.Join(t.TempDir(), "damaged.db")
	if err := os.WriteFile(path, bytes.Repeat([]byte{0xa5}, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	_, err = db.ExecContext(t.Context(), `CREATE TABLE t (id INTEGER)`)
	return err
}

// Too many open files, or a folder that is not there for a moment, keep a connection from
// opening. The store works again when the cause is gone.
func TestAConnectionThatCannotOpenIsTemporary(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		base, err := sqlite.NewConnector("file:" + filepath.Join(dir, "missing", "x.db"))
		if err != nil {
			t.Fatal(err)
		}
		_, cannotOpen := base.Connect(t.Context())
		s, faulty, _ := openFaulty(t, filepath.Join(dir, "fiscalhub.db"))
		faulty.connect.Store(&cannotOpen)
		together := make([]error, 40) // more than the idle connections
		var all sync.WaitGroup
		for i := range together {
			all.Go(func() { _, together[i] = countItems(t.Context(), s) })
		}
		all.Wait()
		for _, err := range together {
			if err != nil && !errors.Is(err, ErrUnavailable) {
				t.Errorf("a read: %v, want ErrUnavailable", err)
			}
		}
		faulty.connect.Store(nil)
		if err := addItem(t.Context(), s, 0); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		d := postgresDialect()
		d.open = func(ctx context.Context, _ string, _ *storageFailure) (*engine, error) {
			config, err := pgx.ParseConfig("postgres://u@127.0.0.1:1/x")
			if err != nil {
				return nil, err
			}
			config.DialFunc = func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.EMFILE}
			}
			return openPostgresConfig(ctx, config)
		}
		s, err := openDialect(t.Context(), d, "", testMigrations(), Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		if err == nil {
			t.Fatal("Open returned no error", s.Close())
		}
		if !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrBroken) {
			t.Errorf("too many open files: %v, want ErrUnavailable alone", err)
		}
	})
}
