package store

import (
	"context"
	"database/sql"
	"sync/atomic"
)

// WorkCount is what a store has done in its database since it was opened.
type WorkCount struct {
	// Commits are those of the engine: transactions that share a commit count once. Each
	// waits for the disk once.
	Commits int64
	// Statements are those that read and write, without BEGIN, COMMIT and savepoints.
	Statements int64
}

// WorkCount returns what the store has done.
func (s *Store) WorkCount() WorkCount {
	return WorkCount{Commits: s.e.commits(), Statements: s.statements.Load() - s.e.saved()}
}

// counted counts the statements of a querier.
type counted struct {
	q querier
	n *atomic.Int64
}

func (c counted) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	c.n.Add(1)
	return c.q.ExecContext(ctx, query, args...)
}

func (c counted) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	c.n.Add(1)
	return c.q.QueryContext(ctx, query, args...)
}

func (c counted) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	c.n.Add(1)
	return c.q.QueryRowContext(ctx, query, args...)
}
