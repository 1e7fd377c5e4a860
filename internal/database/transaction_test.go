package database_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/database"
)

func TestAFailedTransactionLeavesNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *database.DB) {
		err := s.Update(t.Context(), func(q database.Querier) error {
			if err := add(t.Context(), q); err != nil {
				return err
			}
			var n int
			if err := q.QueryRowContext(t.Context(), `SELECT count(*) FROM items`).Scan(&n); err != nil || n != 1 {
				return fmt.Errorf("the transaction reads %d of its own rows: %w", n, err)
			}
			return database.ErrOwn
		})
		if !errors.Is(err, database.ErrOwn) || errors.Is(err, database.ErrUnavailable) {
			t.Errorf("got %v, want the function's own error", err)
		}
		if n := countItems(t, s); n != 0 {
			t.Errorf("%d items remain", n)
		}
	})
}

func TestCommitsAndStatementsAreCounted(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *database.DB) {
		before := s.WorkCount()
		if err := s.Update(t.Context(), func(q database.Querier) error {
			return execute(t.Context(), q, `UPDATE items SET id = 'x'`)
		}); err != nil {
			t.Fatal(err)
		}
		_ = s.Update(t.Context(), func(database.Querier) error { return database.ErrOwn }) // is not committed
		var items int
		if err := s.Reader().QueryRowContext(t.Context(), `SELECT count(*) FROM items`).Scan(&items); err != nil {
			t.Fatal(err)
		}
		after := s.WorkCount()
		if commits, statements := after.Commits-before.Commits, after.Statements-before.Statements; commits != 1 || statements != 2 {
			t.Errorf("%d commits and %d statements are counted, want 1 and 2", commits, statements)
		}
	})
}

func TestEveryTransactionIsObserved(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *database.DB) {
		var seen []error
		s.OnCommit(func(took time.Duration, err error) {
			if took < 0 {
				t.Errorf("a transaction took %s", took)
			}
			seen = append(seen, err)
		})
		if err := s.Update(t.Context(), func(q database.Querier) error { return add(t.Context(), q) }); err != nil {
			t.Fatal(err)
		}
		if err := s.Batch(t.Context(), nil, func([]int64) error { return nil }); err != nil {
			t.Fatal(err)
		}
		_ = s.Update(t.Context(), func(database.Querier) error { return database.ErrOwn })
		if len(seen) != 3 || seen[0] != nil || seen[1] != nil || !errors.Is(seen[2], database.ErrOwn) {
			t.Errorf("observed %v", seen)
		}
	})
}

func TestAFailedTransactionDoesNotAffectOthers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *database.DB) {
		const all = 60
		together(all, func(i int) {
			err := s.Update(t.Context(), func(q database.Querier) error {
				if err := add(t.Context(), q); err != nil {
					return err
				}
				if i%3 == 0 {
					return database.ErrOwn
				}
				return nil
			})
			if failed := i%3 == 0; errors.Is(err, database.ErrOwn) != failed || (err == nil) == failed {
				t.Errorf("transaction %d: %v", i, err)
			}
		})
		if n := countItems(t, s); n != all*2/3 {
			t.Errorf("%d items, want %d", n, all*2/3)
		}
	})
}

// On SQLite a panic becomes an error, because the function may run in the goroutine of
// another caller. On PostgreSQL the caller recovers here.
func TestAPanicInATransactionRollsItBackAlone(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *database.DB) {
		together(20, func(i int) {
			defer func() { _ = recover() }()
			err := s.Update(t.Context(), func(q database.Querier) error {
				if err := add(t.Context(), q); err != nil {
					return err
				}
				if i%2 == 0 {
					panic("in a transaction")
				}
				return nil
			})
			if panicked := i%2 == 0; (err != nil) != panicked {
				t.Errorf("transaction %d: %v", i, err)
			}
		})
		// PostgreSQL rolls back a moment later, when the connection returns to the pool.
		eventually(t, time.Minute, "ten items", func() bool { return countItems(t, s) == 10 })
		if err := s.Update(t.Context(), func(q database.Querier) error { return add(t.Context(), q) }); err != nil {
			t.Error(err)
		}
	})
}

func TestAnEndedContextRunsNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *database.DB) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := s.Update(ctx, func(database.Querier) error {
			t.Error("the function ran")
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the context's error", err)
		}
	})
}

// A cancellation stops neither the running transaction nor those that share its commit.
func TestARunningTransactionIgnoresCancellation(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *database.DB) {
		together(20, func(i int) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err := s.Update(ctx, func(q database.Querier) error {
				if i%2 == 0 {
					cancel()
				}
				return add(ctx, q)
			})
			if err != nil {
				t.Errorf("transaction %d: %v", i, err)
			}
		})
		if n := countItems(t, s); n != 20 {
			t.Errorf("%d items, want 20", n)
		}
	})
}

func TestCloseWaitsForTheRunningTransaction(t *testing.T) {
	t.Parallel()
	eachAddress(t, func(t *testing.T, address string) {
		s, err := database.Open(t.Context(), address, database.TestMigrations(), database.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		begun, release := make(chan struct{}), make(chan struct{})
		var both sync.WaitGroup
		both.Go(func() {
			err := s.Update(t.Context(), func(q database.Querier) error {
				close(begun)
				<-release
				return add(t.Context(), q)
			})
			if err != nil {
				t.Errorf("the running transaction: %v", err)
			}
		})
		<-begun
		closed := make(chan struct{})
		both.Go(func() {
			defer close(closed)
			if err := s.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
		select {
		case <-closed:
			t.Error("Close did not wait")
		case <-time.After(100 * time.Millisecond):
		}
		close(release)
		both.Wait()
		err = s.Update(t.Context(), func(database.Querier) error { return nil })
		if !errors.Is(err, database.ErrUnavailable) {
			t.Errorf("a transaction on a closed database: %v, want ErrUnavailable", err)
		}
		if _, err := s.SchemaVersion(t.Context()); !errors.Is(err, database.ErrUnavailable) {
			t.Errorf("a read on a closed database: %v, want ErrUnavailable", err)
		}
		if n := countItems(t, open(t, address)); n != 1 {
			t.Errorf("%d items after opening again, want 1", n)
		}
	})
}

// Another transaction holds a lock for longer than the limit. The waiting transaction
// returns ErrUnavailable at the limit, and succeeds after the lock is free.
func TestALockThatIsHeldTooLongIsUnavailableAfterTheWait(t *testing.T) {
	t.Parallel()
	eachAddress(t, func(t *testing.T, address string) {
		holder, s := open(t, address), open(t, address)
		take := func(s *database.DB, then func()) error {
			return s.Dialect().Wrap("take", s.Update(t.Context(), func(q database.Querier) error {
				err := raise(t.Context(), q, "a")
				then()
				return err
			}))
		}
		held, release := make(chan struct{}), make(chan struct{})
		var holding sync.WaitGroup
		holding.Go(func() {
			err := take(holder, func() { close(held); <-release })
			if err != nil {
				t.Errorf("the holder: %v", err)
			}
		})
		<-held
		start := time.Now()
		err := take(s, func() {})
		took := time.Since(start)
		if !errors.Is(err, database.ErrUnavailable) || took < database.WaitLimit-time.Second || took > database.WaitLimit+time.Minute {
			t.Errorf("after %s: %v; want ErrUnavailable after %s", took, err, database.WaitLimit)
		}
		if _, err := s.SchemaVersion(t.Context()); err != nil {
			t.Errorf("a read while the lock is held: %v", err)
		}
		close(release)
		holding.Wait()
		if err := take(s, func() {}); err != nil {
			t.Errorf("after the lock is free: %v", err)
		}
	})
}

func TestADatabaseReportsItsEngine(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *database.DB) {
		engine := map[bool]string{false: "sqlite", true: "postgres"}[s.Shared()]
		if s.Engine() != engine {
			t.Errorf("engine %s, want %s", s.Engine(), engine)
		}
		if err := s.Ready(t.Context()); err != nil {
			t.Error(err)
		}
		select {
		case <-s.Broken():
			t.Error("a new database is broken")
		default:
		}
	})
}
