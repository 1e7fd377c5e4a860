package database

import (
	"fmt"
	"sync"
)

// storageFailure remembers the first failure of the storage that can lose committed
// rows. It never forgets it: a second fsync after a failed one can report success
// although the rows are lost. Only a new process may try the database again.
type storageFailure struct {
	once   sync.Once
	failed chan struct{} // closed after the failure
	cause  error         // written before failed is closed
	report func(error)   // called once, with the cause
}

func newStorageFailure(report func(error)) *storageFailure {
	return &storageFailure{failed: make(chan struct{}), report: report}
}

// record remembers the first failure. It ignores every later one.
func (f *storageFailure) record(cause error) {
	f.once.Do(func() {
		f.cause = cause
		f.report(cause)
		close(f.failed)
	})
}

// err returns nil while the storage works, and ErrBroken after a failure.
func (f *storageFailure) err() error {
	select {
	case <-f.failed:
		return fmt.Errorf("database: %w: %w: %w", ErrUnavailable, ErrBroken, f.cause)
	default:
		return nil
	}
}
