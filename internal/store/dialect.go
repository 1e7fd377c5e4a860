package store

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"
)

// dialect holds all that differs between the engines. Everything else, every
// DML statement included, is written once for both.
type dialect struct {
	name       string // also the folder of its migrations
	skipLocked string // ends the sub-select of a claim, so that workers pass each other by
	lock       string // makes concurrent migrations wait for each other, inside the transaction
	shared     bool   // several nodes may use one database at the same time

	// open connects to the database and asserts the settings that durability
	// rests on.
	open func(ctx context.Context, location string) (*engine, error)

	// unavailable tells a fault that passes (busy, out of space, cut off) from
	// one that does not; broken tells that nothing that is committed from now
	// on can be trusted to be durable.
	unavailable, broken func(error) bool

	closed atomic.Bool // the store has been closed, and answers no more
}

// engine is one open database: where to read, and how to commit.
type engine struct {
	read   querier
	update func(ctx context.Context, fn func(querier) error) error
	// batch runs statements in a transaction of their own, in as few exchanges
	// as the engine can, and commits when judge agrees with the number of rows
	// that each has changed.
	batch func(ctx context.Context, statements []statement, judge func(rows []int64) error) error
	close func() error
}

// querier is what statements run on: a pool, a transaction, or a connection
// with prepared statements.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// attached keeps the cancellation of a caller from the statements of its
// transaction: it would undo a commit that others share, and half a
// registration helps nobody. The engines bound every statement themselves.
type attached struct{ q querier }

func (a attached) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return a.q.ExecContext(context.WithoutCancel(ctx), query, args...)
}

func (a attached) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return a.q.QueryContext(context.WithoutCancel(ctx), query, args...)
}

func (a attached) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return a.q.QueryRowContext(context.WithoutCancel(ctx), query, args...)
}

// isContext tells a deadline or a caller that left from a fault of the engine.
func isContext(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}
