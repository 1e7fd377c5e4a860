package store

import (
	"errors"
	"fmt"

	"github.com/fiscalhub/fiscalhub/internal/database"
)

// The errors of the database.
var (
	// ErrNotFound means that the given scope has no such row.
	ErrNotFound       = database.ErrNotFound
	ErrUnavailable    = database.ErrUnavailable
	ErrOutcomeUnknown = database.ErrOutcomeUnknown
	ErrBroken         = database.ErrBroken
	ErrNotMigrated    = database.ErrNotMigrated
	ErrDenied         = database.ErrDenied
)

var (
	// ErrExternalIDTaken means that the taxpayer already has an invoice with that
	// external id in the environment.
	ErrExternalIDTaken = errors.New("external id taken")
	// ErrLeaseLost means that another worker has the job or the delivery now.
	ErrLeaseLost = errors.New("lease lost")
)

// Vanished is for the read of a row that a transaction has just seen. When the row is
// not found, a failover came between the two, to a copy that lacks it. The caller must
// repeat the whole call, so the error is then ErrUnavailable and not ErrNotFound.
func Vanished(what string, err error) error {
	if errors.Is(err, ErrNotFound) {
		return fmt.Errorf("store: the %s was there a moment ago: %w", what, ErrUnavailable)
	}
	return err
}
