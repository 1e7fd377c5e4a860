package database

import (
	"context"
	"database/sql"
	"log/slog"
	"sync/atomic"
)

// Dialect holds every difference between the engines. All other code is the same for
// both.
type Dialect struct {
	// Name is sqlite or postgres. It is also the folder of the migrations.
	Name string
	// SkipLocked ends the sub-select of a claim, so that workers skip each other's rows.
	SkipLocked string
	// TimelineText is the expression for the timeline in a statement that writes;
	// empty when the database cannot continue another one while it is open.
	TimelineText string

	shared bool // several nodes may use one database at the same time

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

	// timeline and replication are DB.Timeline and DB.Replication.
	timeline    func(context.Context, Querier) (string, error)
	replication func(context.Context, Querier) (Replication, error)
	// session is DB.Session.
	session func(context.Context, Querier) (Session, error)
	closed  atomic.Bool // DB.Close was called
}

// engine is one open database.
type engine struct {
	read   Querier
	update func(ctx context.Context, fn func(Querier) error) error
	// batch runs statements in one transaction, with as few round trips as the
	// engine can. check receives the number of rows that each statement
	// changed; batch commits when check returns nil.
	batch func(ctx context.Context, statements []Statement, check func(rows []int64) error) error
	// insert is batch for statements INSERT … VALUES that insert one row each; check must
	// accept that. The engine may commit them together with statements of other callers.
	insert func(ctx context.Context, statements []Statement, check func(rows []int64) error) error
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
type migrationStep func(ctx context.Context, fn func(Querier) error) error

// Querier runs statements. It is a pool, a transaction, or a connection with
// prepared statements.
type Querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// uncancelled runs the statements of a transaction without the caller's
// cancellation. A cancelled statement would roll back the other transactions that
// share the commit. The engines limit the time of every statement.
type uncancelled struct{ q Querier }

func (u uncancelled) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return u.q.ExecContext(context.WithoutCancel(ctx), query, args...)
}

func (u uncancelled) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return u.q.QueryContext(context.WithoutCancel(ctx), query, args...)
}

func (u uncancelled) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return u.q.QueryRowContext(context.WithoutCancel(ctx), query, args...)
}
