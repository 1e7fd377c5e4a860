package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

var (
	// ErrNotFound means that a query of one row found none.
	ErrNotFound = errors.New("not found")
	// ErrUnavailable means that the database is busy, full or not reachable, or the
	// outcome of a commit is not known. The caller may repeat the call.
	ErrUnavailable = errors.New("database unavailable")
	// ErrOutcomeUnknown comes together with ErrUnavailable when a commit
	// failed: the engine may have committed the transaction.
	ErrOutcomeUnknown = errors.New("the database may have committed the transaction")
	// ErrBroken comes together with ErrUnavailable after a failure of the
	// storage that can lose committed rows. Every later write of the process
	// returns it, so a repetition of the call has no effect.
	ErrBroken = errors.New("the database failed; this process must end")
	// ErrNotMigrated means that the database misses a migration of this program, and that
	// Open must not migrate or the role may not change tables.
	ErrNotMigrated = errors.New("the database does not have the tables of this version")
	// ErrDenied means that the role of the connection has no right to run the statement.
	ErrDenied = errors.New("the database role has no right to this")
)

// Wrap adds the name of the operation to an error of the engine, and makes it one
// of the errors above where it is one. It compares the codes of the driver, never
// the text of a message.
func (d *Dialect) Wrap(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrNoRows):
		return ErrNotFound
	case errors.Is(err, ErrUnavailable):
		return fmt.Errorf("%s: %w", what, err)
	case d.closed.Load() || d.unavailable(err) || isContextError(err):
		return fmt.Errorf("%s: %w: %w", what, ErrUnavailable, err)
	case d.denied(err) && !errors.Is(err, ErrNotMigrated):
		return fmt.Errorf("%s: %w: %w", what, ErrDenied, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// isContextError reports whether err is a deadline or a cancellation of the caller,
// not a failure of the engine.
func isContextError(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// unknownCommit is the error of a commit that failed: the engine may have committed
// the transaction. A repetition of the call shows whether it did.
func unknownCommit(err error) error {
	return fmt.Errorf("database: commit: %w: %w: %w", ErrUnavailable, ErrOutcomeUnknown, err)
}
