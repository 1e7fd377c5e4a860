package database_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/database"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// open opens a database with the tables of these tests, and closes it when the test ends.
func open(t *testing.T, address string) *database.DB {
	t.Helper()
	db, err := database.Open(t.Context(), address, database.TestMigrations(), database.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("the database cannot be closed: %v", err)
		}
	})
	return db
}

// eachEmpty runs fn on each engine. empty returns the address of a new database.
func eachEmpty(t *testing.T, fn func(t *testing.T, empty func() string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		fn(t, func() string { return "sqlite:" + filepath.Join(t.TempDir(), "fiscalhub.db") })
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		server := storetest.Postgres(t)
		fn(t, func() string { return server.Empty(t) })
	})
}

func eachAddress(t *testing.T, fn func(t *testing.T, address string)) {
	t.Helper()
	eachEmpty(t, func(t *testing.T, empty func() string) { fn(t, empty()) })
}

func each(t *testing.T, fn func(t *testing.T, s *database.DB)) {
	t.Helper()
	eachAddress(t, func(t *testing.T, address string) { fn(t, open(t, address)) })
}

func execute(ctx context.Context, q database.Querier, query string, args ...any) error {
	_, err := q.ExecContext(ctx, query, args...)
	return err
}

// add adds an item.
func add(ctx context.Context, q database.Querier) error {
	_, err := addItem().Run(ctx, q)
	return err
}

func addItem() database.Statement {
	return database.Statement{Text: `INSERT INTO items (id, body) VALUES ($1, $2)`, Args: []any{rand.Text(), []byte{}}}
}

const raiseText = `INSERT INTO counters (name, n) VALUES ($1, 1) ON CONFLICT (name) DO UPDATE SET n = counters.n + 1`

// raise adds one to a counter, whose row it locks.
func raise(ctx context.Context, q database.Querier, name string) error {
	return execute(ctx, q, raiseText, name)
}

// insertItem adds an item with Batch, and counts it.
func insertItem(ctx context.Context, db *database.DB) error {
	err := db.Batch(ctx, []database.Statement{addItem(), {Text: raiseText, Args: []any{"items"}}}, func([]int64) error { return nil })
	return db.Dialect().Wrap("insert an item", err)
}

func countItems(t *testing.T, db *database.DB) (n int) {
	t.Helper()
	if err := db.Reader().QueryRowContext(context.WithoutCancel(t.Context()), `SELECT count(*) FROM items`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// together runs fn in n goroutines at the same time.
func together(n int, fn func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { fn(i) })
	}
	all.Wait()
}

func eventually(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
	}
}
