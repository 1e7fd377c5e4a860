package store

import (
	"database/sql"
	"errors"
	"fmt"
)

var (
	// ErrNotFound means that the given scope has no such row.
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
	// ErrExternalIDTaken means that the taxpayer already has an invoice with that
	// external id in the environment.
	ErrExternalIDTaken = errors.New("external id taken")
	// ErrNotMigrated means that the database misses a migration of this program, and that
	// Open must not migrate or the role may not change tables.
	ErrNotMigrated = errors.New("the database does not have the tables of this version")
	// ErrDenied means that the role of the connection has no right to run the statement.
	ErrDenied = errors.New("the database role has no right to this")
	// ErrLeaseLost means that another worker has the job or the delivery now.
	ErrLeaseLost = errors.New("lease lost")
)

// wrap adds the name of the operation to an error of the engine, and makes it one
// of the errors above where it is one. It compares the codes of the driver, never
// the text of a message.
func (d *dialect) wrap(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrNoRows):
		return ErrNotFound
	case errors.Is(err, ErrUnavailable):
		return fmt.Errorf("store: %s: %w", what, err)
	case d.closed.Load() || d.unavailable(err) || isContextError(err):
		return fmt.Errorf("store: %s: %w: %w", what, ErrUnavailable, err)
	case d.denied(err) && !errors.Is(err, ErrNotMigrated):
		return fmt.Errorf("store: %s: %w: %w", what, ErrDenied, err)
	}
	return fmt.Errorf("store: %s: %w", what, err)
}

// unknownCommit is the error of a commit that failed: the engine may have committed
// the transaction. A repetition of the call shows whether it did.
func unknownCommit(err error) error {
	return fmt.Errorf("store: commit: %w: %w: %w", ErrUnavailable, ErrOutcomeUnknown, err)
}

// Vanished is for the read of a row that a transaction has just seen. When the row is
// not found, a failover came between the two, to a copy that lacks it. The caller must
// repeat the whole call, so the error is then ErrUnavailable and not ErrNotFound.
func Vanished(what string, err error) error {
	if errors.Is(err, ErrNotFound) {
		return fmt.Errorf("store: the %s was there a moment ago: %w", what, ErrUnavailable)
	}
	return err
}
