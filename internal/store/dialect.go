package store

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
)

// dialect holds every difference between the engines. All other code, including
// each statement that reads or writes rows, is the same for both.
type dialect struct {
	name       string // also the folder of its migrations
	skipLocked string // ends the sub-select of a claim, so that workers skip each other's rows
	// eventKey is the condition that finds the event n of a delivery: the environment is
	// $1, the taxpayer is $2.
	eventKey string
	shared   bool // several nodes may use one database at the same time
	// gzipWriters compress large texts. It is nil when the engine does that itself.
	gzipWriters *sync.Pool

	// protect keeps other users from the files of the database. It is nil when there are
	// none.
	protect func(location string, log *slog.Logger) error

	// open connects to the database and checks the settings that keep
	// committed rows safe. The engine commits nothing after a failure.
	open func(ctx context.Context, location string, failure *storageFailure) (*engine, error)

	// openReadOnly is open for a process that must change nothing.
	openReadOnly func(ctx context.Context, location string, failure *storageFailure) (*engine, error)

	// unavailable reports whether a failure is temporary: the database is
	// busy, full or not reachable.
	unavailable func(error) bool

	// broken reports whether a failed transaction shows that the database can
	// lose the rows of other commits.
	broken func(error) bool

	// denied reports whether the role of the service has no right to run a statement.
	denied func(error) bool

	// timeline and replication are Store.Timeline and Store.Replication.
	timeline    func(context.Context, querier) (string, error)
	replication func(context.Context, querier) (Replication, error)
	// session is Store.Session.
	session func(context.Context, querier) (Session, error)
	// timelineText is the expression for the timeline in a statement that writes;
	// empty when the database cannot continue another one while it is open.
	timelineText string

	closed atomic.Bool // Store.Close was called
}

// engine is one open database.
type engine struct {
	read   querier
	update func(ctx context.Context, fn func(querier) error) error
	// batch runs statements in one transaction, with as few round trips as the
	// engine can. check receives the number of rows that each statement
	// changed; batch commits when check returns nil.
	batch func(ctx context.Context, statements []statement, check func(rows []int64) error) error
	// insert is batch for statements INSERT … VALUES that insert one row each; check must
	// accept that. The engine may commit them together with those of other callers.
	insert func(ctx context.Context, statements []statement, check func(rows []int64) error) error
	saved  func() int64 // how many statements of insert were not run, because others did their work
	// migration runs fn, which may take as long as it needs. It waits until no
	// other process migrates the database. step runs one transaction.
	migration func(ctx context.Context, log *slog.Logger, fn func(step migrationStep) error) error
	// clock reads the clock of the server. It is nil when the database has no clock
	// of its own.
	clock   clockSource
	commits func() int64 // how many were made
	close   func() error
}

// migrationStep runs fn in a transaction of its own, which may take as long as it
// needs. It runs fn again when the transaction could not get a lock in time.
type migrationStep func(ctx context.Context, fn func(querier) error) error

// querier runs statements. It is a pool, a transaction, or a connection with
// prepared statements.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// uncancelled runs the statements of a transaction without the caller's
// cancellation. A cancelled statement would roll back the other transactions that
// share the commit. The engines limit the time of every statement.
type uncancelled struct{ q querier }

func (u uncancelled) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return u.q.ExecContext(context.WithoutCancel(ctx), query, args...)
}

func (u uncancelled) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return u.q.QueryContext(context.WithoutCancel(ctx), query, args...)
}

func (u uncancelled) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return u.q.QueryRowContext(context.WithoutCancel(ctx), query, args...)
}

// isContextError reports whether err is a deadline or a cancellation of the caller,
// not a failure of the engine.
func isContextError(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}
