package database_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/database"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func TestAMigrationHasNoTimeLimit(t *testing.T) {
	t.Parallel()
	s := open(t, storetest.Postgres(t).Empty(t))
	err := s.RunMigration(t.Context(), func(q database.Querier) error {
		return execute(t.Context(), q, `DO $$ BEGIN
			IF current_setting('statement_timeout') <> '0' THEN RAISE 'the statement has a time limit'; END IF;
			IF current_setting('lock_timeout') = '0' THEN RAISE 'the wait for a lock has no time limit'; END IF;
		END $$`)
	})
	if err != nil {
		t.Error(err)
	}
}

// A transaction of the service has a row of the table that a migration changes. The
// migration waits, but not in front of the other statements.
func TestAMigrationTriesAgainUntilItGetsItsLocks(t *testing.T) {
	t.Parallel()
	s := open(t, storetest.Postgres(t).Empty(t))
	ctx := t.Context()
	held, release := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		err := s.Update(ctx, func(q database.Querier) error {
			err := add(ctx, q)
			close(held)
			<-release
			return err
		})
		if err != nil {
			t.Errorf("the transaction of the service: %v", err)
		}
	})
	<-held
	attempts := 0
	err := s.RunMigration(ctx, func(q database.Querier) error {
		if attempts++; attempts == 3 {
			close(release)
			all.Wait()
		}
		return execute(ctx, q, `ALTER TABLE items ADD COLUMN extra TEXT`)
	})
	if err != nil || attempts < 3 {
		t.Errorf("the migration after %d attempts: %v", attempts, err)
	}
	if n := countItems(t, s); n != 1 {
		t.Errorf("%d items, want 1", n)
	}
}

// A migration waits for as long as another process migrates.
func TestOneProcessMigratesAtATime(t *testing.T) {
	t.Parallel()
	eachAddress(t, func(t *testing.T, address string) {
		first, second := open(t, address), open(t, address)
		var running atomic.Int64
		together(2, func(i int) {
			err := []*database.DB{first, second}[i].RunMigration(t.Context(), func(q database.Querier) error {
				if running.Add(1) != 1 {
					t.Error("two migrations run at the same time")
				}
				for range 50 {
					if err := execute(t.Context(), q, `UPDATE items SET id = id WHERE id = $1`, "x"); err != nil {
						return err
					}
				}
				running.Add(-1)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	})
}

func TestAMigrationThatWaitsEndsWithItsContext(t *testing.T) {
	t.Parallel()
	eachAddress(t, func(t *testing.T, address string) {
		first, second := open(t, address), open(t, address)
		err := first.RunMigration(t.Context(), func(database.Querier) error {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			err := second.RunMigration(ctx, func(database.Querier) error { return nil })
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want the error of the context", err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}
