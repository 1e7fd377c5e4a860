package store

import (
	"database/sql"
	"errors"
	"fmt"
)

var (
	// ErrNotFound says that there is no such row within the given scope.
	ErrNotFound = errors.New("not found")
	// ErrUnavailable says that the database cannot do it now: it is busy,
	// full or out of reach, or the outcome of a commit is not known. The same
	// call may be made again.
	ErrUnavailable = errors.New("database unavailable")
	// ErrOutcomeUnknown comes with ErrUnavailable when a commit was under way:
	// it may have happened.
	ErrOutcomeUnknown = errors.New("whether it was committed is not known")
	// ErrExternalIDTaken says that the taxpayer has an invoice with that
	// external id in this environment already.
	ErrExternalIDTaken = errors.New("external id taken")
	// ErrLeaseLost says that another worker has taken the job over.
	ErrLeaseLost = errors.New("lease lost")
)

// wrap says what was being done and sorts an engine's error into the ones that
// callers tell apart. Errors are judged by the driver's codes, never by text.
func (d *dialect) wrap(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrNoRows):
		return ErrNotFound
	case errors.Is(err, ErrUnavailable):
		return fmt.Errorf("store: %s: %w", what, err)
	case d.closed.Load() || d.unavailable(err) || isContext(err):
		return fmt.Errorf("store: %s: %w: %w", what, ErrUnavailable, err)
	}
	return fmt.Errorf("store: %s: %w", what, err)
}

// unknownCommit says that whether a transaction was committed is not known. A
// repetition finds out.
func unknownCommit(err error) error {
	return fmt.Errorf("store: commit: %w: %w: %w", ErrUnavailable, ErrOutcomeUnknown, err)
}
