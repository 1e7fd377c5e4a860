package store_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

var errOwn = errors.New("own error")

func TestAFailedTransactionLeavesNothing(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		err := s.Update(t.Context(), func(tx *store.Tx) error {
			made := sampleTaxpayer()
			if err := tx.CreateTaxpayer(t.Context(), made); err != nil {
				return err
			}
			if _, err := tx.Taxpayer(t.Context(), made.ID); err != nil {
				return fmt.Errorf("the transaction cannot read its own row: %w", err)
			}
			return errOwn
		})
		if !errors.Is(err, errOwn) || errors.Is(err, store.ErrUnavailable) {
			t.Errorf("got %v, want the function's own error", err)
		}
		if n := count(t, s, "taxpayers"); n != 0 {
			t.Errorf("%d taxpayers remain", n)
		}
	})
}

func TestCommitsAndStatementsAreCounted(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		before := s.WorkCount()
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return tx.Exec(ctx, `UPDATE taxpayers SET legal_name = 'x'`)
		})
		_ = s.Update(t.Context(), func(*store.Tx) error { return errOwn }) // is not committed
		var taxpayers int
		if err := s.QueryRow(t.Context(), `SELECT count(*) FROM taxpayers`).Scan(&taxpayers); err != nil {
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
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		var seen []error
		s.OnCommit(func(took time.Duration, err error) {
			if took < 0 {
				t.Errorf("a transaction took %s", took)
			}
			seen = append(seen, err)
		})
		made := sampleTaxpayer()
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.CreateTaxpayer(ctx, made) })
		if err := s.Commit(t.Context(), new(store.Batch)); err != nil {
			t.Fatal(err)
		}
		_ = s.Update(t.Context(), func(*store.Tx) error { return errOwn })
		if len(seen) != 3 || seen[0] != nil || seen[1] != nil || !errors.Is(seen[2], errOwn) {
			t.Errorf("observed %v", seen)
		}
	})
}

func TestAFailedTransactionDoesNotAffectOthers(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		const all = 60
		together(all, func(i int) {
			err := s.Update(t.Context(), func(tx *store.Tx) error {
				if err := tx.CreateTaxpayer(t.Context(), sampleTaxpayer()); err != nil {
					return err
				}
				if i%3 == 0 {
					return errOwn
				}
				return nil
			})
			if failed := i%3 == 0; errors.Is(err, errOwn) != failed || (err == nil) == failed {
				t.Errorf("transaction %d: %v", i, err)
			}
		})
		if n := count(t, s, "taxpayers"); n != all*2/3 {
			t.Errorf("%d taxpayers, want %d", n, all*2/3)
		}
	})
}

// On SQLite the function runs in the goroutine of the writer, which must survive a panic.
// On PostgreSQL it runs in the goroutine of the caller, which recovers here.
func TestAPanicInATransactionRollsItBackAlone(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		together(20, func(i int) {
			defer func() { _ = recover() }()
			err := s.Update(t.Context(), func(tx *store.Tx) error {
				if err := tx.CreateTaxpayer(t.Context(), sampleTaxpayer()); err != nil {
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
		eventually(t, time.Minute, "ten taxpayers", func() bool { return count(t, s, "taxpayers") == 10 })
		addScope(t, s)
	})
}

func TestAnEndedContextRunsNothing(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := s.Update(ctx, func(*store.Tx) error {
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
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		together(20, func(i int) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err := s.Update(ctx, func(tx *store.Tx) error {
				if i%2 == 0 {
					cancel()
				}
				return tx.CreateTaxpayer(ctx, sampleTaxpayer())
			})
			if err != nil {
				t.Errorf("transaction %d: %v", i, err)
			}
		})
		if n := count(t, s, "taxpayers"); n != 20 {
			t.Errorf("%d taxpayers, want 20", n)
		}
	})
}

func TestCloseWaitsForTheRunningTransaction(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		s, err := store.Open(t.Context(), address, store.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		begun, release := make(chan struct{}), make(chan struct{})
		var both sync.WaitGroup
		both.Go(func() {
			err := s.Update(t.Context(), func(tx *store.Tx) error {
				close(begun)
				<-release
				return tx.CreateTaxpayer(t.Context(), sampleTaxpayer())
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
		err = s.Update(t.Context(), func(*store.Tx) error { return nil })
		if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("a transaction on a closed store: %v, want ErrUnavailable", err)
		}
		if _, err := s.Taxpayers(t.Context()); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("a read on a closed store: %v, want ErrUnavailable", err)
		}
		if n := count(t, storetest.Open(t, address, time.Now), "taxpayers"); n != 1 {
			t.Errorf("%d taxpayers after opening again, want 1", n)
		}
	})
}

// Another transaction holds a lock for longer than the limit. The waiting transaction
// returns ErrUnavailable at the limit, and succeeds after the lock is free.
func TestALockThatIsHeldTooLongIsUnavailableAfterTheWait(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		holder, s := storetest.Open(t, address, time.Now), storetest.Open(t, address, time.Now)
		take := func(s *store.Store, then func()) error {
			return s.Update(t.Context(), func(tx *store.Tx) error {
				_, err := tx.TakeBlock(t.Context(), "bucket", noon, 1)
				then()
				return err
			})
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
		if !errors.Is(err, store.ErrUnavailable) || took < store.WaitLimit-time.Second || took > store.WaitLimit+time.Minute {
			t.Errorf("after %s: %v; want ErrUnavailable after %s", took, err, store.WaitLimit)
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

func TestAStoreReportsItsEngine(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		engine := map[bool]string{false: "sqlite", true: "postgres"}[s.Shared()]
		if s.Engine() != engine {
			t.Errorf("engine %s, want %s", s.Engine(), engine)
		}
		if err := s.Ready(t.Context()); err != nil {
			t.Error(err)
		}
		select {
		case <-s.Broken():
			t.Error("a new store is broken")
		default:
		}
	})
}
