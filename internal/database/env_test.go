package database

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"modernc.org/sqlite"
)

// testMigrations make the tables of the tests of this package.
func testMigrations() fstest.MapFS {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	const counters = `CREATE TABLE counters (name TEXT NOT NULL PRIMARY KEY, n BIGINT NOT NULL);`
	return fstest.MapFS{
		"sqlite/0001_items.sql":      file("-- breaks earlier programs\nCREATE TABLE items (id TEXT NOT NULL PRIMARY KEY, body BLOB NOT NULL) STRICT;"),
		"postgres/0001_items.sql":    file("-- breaks earlier programs\nCREATE TABLE items (id TEXT NOT NULL PRIMARY KEY, body BYTEA NOT NULL);"),
		"sqlite/0002_counters.sql":   file(counters),
		"postgres/0002_counters.sql": file(counters),
	}
}

// addItem adds a row with size bytes.
func addItem(ctx context.Context, db *DB, size int) error {
	return db.Update(ctx, func(q Querier) error {
		_, err := q.ExecContext(ctx, `INSERT INTO items (id, body) VALUES ($1, $2)`, rand.Text(), make([]byte, size))
		return db.dialect.Wrap("add an item", err)
	})
}

// countItems returns how many items a database has.
func countItems(ctx context.Context, db *DB) (n int, err error) {
	err = db.Reader().QueryRowContext(ctx, `SELECT count(*) FROM items`).Scan(&n)
	return n, db.dialect.Wrap("count items", err)
}

// errOwn is the error of a transaction.
var errOwn = errors.New("own error")

// env is a writer on a database with one table.
type env struct {
	*sqliteWriter
	t    *testing.T
	spy  *spy
	path string
	db   *sql.DB // another connection, like that of another process
}

func newEnv(t *testing.T, wait time.Duration) *env {
	t.Helper()
	path := filepath.Join(t.TempDir(), "writer.db")
	db := connect(t, path)
	if _, err := db.ExecContext(t.Context(), `CREATE TABLE t (id INTEGER PRIMARY KEY) STRICT`); err != nil {
		t.Fatal(err)
	}
	conn, err := connect(t, path).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	spy := &spy{Querier: &prepared{from: conn}, seen: map[string]int{}, fail: map[string]*fault{}}
	e := &env{sqliteWriter: newSQLiteWriter(spy, wait, newStorageFailure(func(error) {})), t: t, spy: spy, path: path, db: db}
	t.Cleanup(func() {
		e.close()
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// hold keeps the writer busy until the test calls release.
func (e *env) hold() (release func()) {
	e.t.Helper()
	running, free := make(chan struct{}), make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		err := e.update(e.t.Context(), func(Querier) error {
			close(running)
			<-free
			return nil
		})
		if err != nil {
			e.t.Errorf("the transaction that holds the writer: %v", err)
		}
	})
	<-running
	return func() { close(free); done.Wait() }
}

// queued waits until n transactions are in the queue of the writer.
func (e *env) queued(n int) {
	e.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for e.group.Waiting() < n {
		if time.Now().After(deadline) {
			e.t.Fatalf("%d of %d are queued", e.group.Waiting(), n)
		}
		time.Sleep(time.Millisecond)
	}
}

// run starts n transactions and returns a function that waits for their results.
func (e *env) run(n int, fn func(i int) func(Querier) error) (wait func() []error) {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = e.update(e.t.Context(), fn(i)) })
	}
	return func() []error {
		all.Wait()
		return errs
	}
}

func (e *env) rows() (n int) {
	e.t.Helper()
	if err := e.db.QueryRowContext(e.t.Context(), `SELECT count(*) FROM t`).Scan(&n); err != nil {
		e.t.Fatal(err)
	}
	return n
}

// connect opens a connection with a short busy timeout.
func connect(t *testing.T, path string) *sql.DB {
	t.Helper()
	base, err := sqlite.NewConnector("file:" + path)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(sqliteConnector{base, sqlitePragmas(false)})
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(t.Context(), `PRAGMA busy_timeout = 100`); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func insert(id int) func(Querier) error {
	return func(q Querier) error {
		_, err := q.ExecContext(context.Background(), `INSERT INTO t (id) VALUES ($1)`, id)
		return err
	}
}

// spy counts the statements that reach the engine, and makes chosen ones fail.
type spy struct {
	Querier
	mu   sync.Mutex
	seen map[string]int
	fail map[string]*fault
	gate chan struct{} // when set, each commit receives from it first
}

// fault makes a statement fail once, after it has succeeded skip times. Without an error it
// panics.
type fault struct {
	skip int
	err  error
}

func (s *spy) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	s.mu.Lock()
	s.seen[query]++
	gate, f := s.gate, s.fail[query]
	if f != nil && f.skip > 0 {
		f.skip--
		f = nil
	} else {
		delete(s.fail, query)
	}
	s.mu.Unlock()
	if gate != nil && query == `COMMIT` {
		<-gate
	}
	if f != nil && f.err == nil {
		panic("in the engine")
	}
	if f != nil {
		return nil, f.err
	}
	return s.Querier.ExecContext(ctx, query, args...)
}

func (s *spy) count(query string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[query]
}

func (s *spy) failAfter(skip int, query string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail[query] = &fault{skip, err}
}
