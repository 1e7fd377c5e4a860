package database

import (
	"context"
	"database/sql"
	"sync/atomic"
)

// WorkCount is what this process has done in a database since it opened it.
type WorkCount struct {
	// Commits are those of the engine: transactions that share a commit count once. Each
	// waits for the disk once.
	Commits int64
	// Statements are those that read and write, without BEGIN, COMMIT and savepoints.
	Statements int64
}

// WorkCount returns what was done.
func (db *DB) WorkCount() WorkCount {
	return WorkCount{Commits: db.engine.commits(), Statements: db.statements.Load() - db.engine.saved()}
}

// counted counts the statements of a Querier.
type counted struct {
	q Querier
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
