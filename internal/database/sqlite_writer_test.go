package database

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestTransactionsThatWaitShareTheNextCommit(t *testing.T) {
	t.Parallel()
	e := newEnv(t, time.Minute)
	release := e.hold()
	wait := e.run(100, insert)
	e.queued(100)
	before := e.spy.count(`COMMIT`)
	release()
	for i, err := range wait() {
		if err != nil {
			t.Errorf("transaction %d: %v", i, err)
		}
	}
	// One of the commits belongs to the transaction that held the writer.
	if commits := e.spy.count(`COMMIT`) - before; commits != 2 || e.rows() != 100 {
		t.Errorf("%d commits for %d rows, want 2 for 100", commits, e.rows())
	}
}

func TestATransactionAloneNeedsNoSavepoint(t *testing.T) {
	t.Parallel()
	e := newEnv(t, time.Minute)
	if err := e.update(t.Context(), insert(1)); err != nil {
		t.Fatal(err)
	}
	if e.spy.count(`SAVEPOINT member`) != 0 || e.spy.count(`COMMIT`) != 1 {
		t.Errorf("statements %v", e.spy.seen)
	}
}

func TestAMemberThatFailsIsUndoneAlone(t *testing.T) {
	t.Parallel()
	errOwn := errors.New("own")
	e := newEnv(t, time.Minute)
	release := e.hold()
	wait := e.run(30, func(i int) func(Querier) error {
		return func(q Querier) error {
			if err := insert(i)(q); err != nil {
				return err
			}
			switch i % 3 {
			case 1:
				return errOwn
			case 2:
				panic("in a transaction")
			}
			return nil
		}
	})
	e.queued(30)
	release()
	for i, err := range wait() {
		switch i % 3 {
		case 0:
			if err != nil {
				t.Errorf("member %d: %v", i, err)
			}
		case 1:
			if !errors.Is(err, errOwn) {
				t.Errorf("member %d: %v, want its own error", i, err)
			}
		case 2:
			if err == nil || !strings.Contains(err.Error(), "panic") || errors.Is(err, ErrUnavailable) {
				t.Errorf("member %d: %v, want an error that reports the panic", i, err)
			}
		}
	}
	if n := e.rows(); n != 10 {
		t.Errorf("%d rows, want 10", n)
	}
}

// A member that fails because of a row of another member must return after the commit:
// before it, the caller could not read that row.
func TestAMemberThatFailsReturnsAfterTheCommit(t *testing.T) {
	t.Parallel()
	e := newEnv(t, time.Minute)
	release := e.hold()
	first := e.run(1, insert)
	e.queued(1)
	second := make(chan error, 1)
	go func() { second <- e.update(t.Context(), insert(0)) }() // the same row
	e.queued(2)
	gate := make(chan struct{})
	before := e.spy.count(`COMMIT`)
	e.spy.mu.Lock()
	e.spy.gate = gate
	e.spy.mu.Unlock()
	var holder sync.WaitGroup
	holder.Go(release)
	gate <- struct{}{} // for the transaction that held the writer
	for e.spy.count(`COMMIT`) < before+2 {
		time.Sleep(time.Millisecond)
	}
	select {
	case err := <-second:
		t.Errorf("the second member returned before the commit: %v", err)
		second <- err
	case <-time.After(50 * time.Millisecond):
	}
	gate <- struct{}{}
	if err := <-second; err == nil || e.rows() != 1 {
		t.Errorf("the second member: %v, and %d rows; want an error and one row", err, e.rows())
	}
	holder.Wait()
	if err := first()[0]; err != nil {
		t.Errorf("the first member: %v", err)
	}
}

func TestACancelledTransactionInTheQueueDoesNotRun(t *testing.T) {
	t.Parallel()
	e := newEnv(t, time.Minute)
	release := e.hold()
	ctx, cancel := context.WithCancel(t.Context())
	cancelled := make(chan error, 1)
	go func() { cancelled <- e.update(ctx, insert(1)) }()
	e.queued(1)
	wait := e.run(1, func(int) func(Querier) error { return insert(2) })
	e.queued(2)
	cancel()
	if err := <-cancelled; !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled transaction: %v", err)
	}
	release()
	if err := wait()[0]; err != nil || e.rows() != 1 {
		t.Errorf("the other transaction: %v, and %d rows", err, e.rows())
	}
}

func TestAFullOrSlowQueueIsUnavailableAfterTheWait(t *testing.T) {
	t.Parallel()
	e := newEnv(t, 300*time.Millisecond)
	release := e.hold()
	wait := e.run(maxGroup+20, insert)
	e.queued(maxGroup)
	for i, err := range wait() {
		if !errors.Is(err, ErrUnavailable) {
			t.Errorf("transaction %d: %v, want ErrUnavailable", i, err)
		}
	}
	release()
	if err := e.update(t.Context(), insert(1000)); err != nil || e.rows() != 1 {
		t.Errorf("afterwards: %v, and %d rows; want one, because the others did not run", err, e.rows())
	}
}

// Another process holds the lock of the file for longer than a writer waits.
func TestAFileThatAnotherProcessLocksIsUnavailableUntilItUnlocks(t *testing.T) {
	t.Parallel()
	e := newEnv(t, 200*time.Millisecond)
	if _, err := e.db.ExecContext(t.Context(), `BEGIN IMMEDIATE`); err != nil {
		t.Fatal(err)
	}
	for i, err := range e.run(5, insert)() {
		if !errors.Is(err, ErrUnavailable) {
			t.Errorf("transaction %d: %v, want ErrUnavailable", i, err)
		}
	}
	if _, err := e.db.ExecContext(t.Context(), `ROLLBACK`); err != nil {
		t.Fatal(err)
	}
	if err := e.update(t.Context(), insert(1)); err != nil {
		t.Errorf("after the unlock: %v", err)
	}
}

// When the engine gives up the transaction of a group, all members return ErrUnavailable,
// and none returns the error of another member.
func TestAFailedEngineTransactionFailsTheWholeGroup(t *testing.T) {
	t.Parallel()
	errDisk := errors.New("disk")
	for _, statement := range []string{`BEGIN IMMEDIATE`, `SAVEPOINT member`, `ROLLBACK TO member`, `RELEASE member`, `COMMIT`} {
		t.Run(statement, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, time.Minute)
			release := e.hold()
			wait := e.run(10, func(i int) func(Querier) error {
				return func(q Querier) error {
					if err := insert(i)(q); err != nil || statement != `ROLLBACK TO member` || i != 5 {
						return err
					}
					return errOwn
				}
			})
			e.queued(10)
			skip := 0
			if statement == `COMMIT` {
				skip = 1 // for the commit of the transaction that holds the writer
			}
			e.spy.failAfter(skip, statement, errDisk)
			release()
			for i, err := range wait() {
				if !errors.Is(err, ErrUnavailable) || errors.Is(err, errOwn) {
					t.Errorf("member %d: %v, want ErrUnavailable alone", i, err)
				}
			}
			if n := e.rows(); n != 0 {
				t.Errorf("%d rows remain", n)
			}
			err := e.update(t.Context(), insert(1))
			if statement == `COMMIT` {
				if !errors.Is(err, ErrBroken) || e.rows() != 0 {
					t.Errorf("after a failed commit: %v, and %d rows; want ErrBroken", err, e.rows())
				}
			} else if err != nil || e.rows() != 1 {
				t.Errorf("afterwards: %v, and %d rows", err, e.rows())
			}
		})
	}
}

// The goroutine of a caller runs the group, and what calls it, such as an HTTP server, may
// recover from a panic of the engine.
func TestAPanicOfTheEngineIsNoSuccessOfTheOthers(t *testing.T) {
	t.Parallel()
	for _, statement := range []string{`BEGIN IMMEDIATE`, `SAVEPOINT member`, `COMMIT`} {
		t.Run(statement, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, time.Minute)
			release := e.hold()
			var all sync.WaitGroup
			errs := make([]error, 10)
			for i := range errs {
				all.Go(func() {
					defer func() {
						if recover() != nil {
							errs[i] = ErrOutcomeUnknown // the caller that has led knows of the panic
						}
					}()
					errs[i] = e.update(t.Context(), insert(i))
				})
			}
			e.queued(10)
			skip := 0
			if statement == `COMMIT` {
				skip = 1 // for the commit of the transaction that holds the writer
			}
			e.spy.failAfter(skip, statement, nil)
			release()
			all.Wait()
			for i, err := range errs {
				if !errors.Is(err, ErrOutcomeUnknown) {
					t.Errorf("member %d: %v, want ErrOutcomeUnknown", i, err)
				}
			}
			if n := e.rows(); n != 0 {
				t.Errorf("%d rows remain", n)
			}
			if err := e.update(t.Context(), insert(1)); err != nil || e.rows() != 1 {
				t.Errorf("afterwards: %v, and %d rows", err, e.rows())
			}
		})
	}
}

func TestCloseCommitsWhatIsQueued(t *testing.T) {
	t.Parallel()
	e := newEnv(t, time.Minute)
	release := e.hold()
	wait := e.run(20, insert)
	e.queued(20)
	var closing sync.WaitGroup
	closing.Go(e.close)
	release()
	closing.Wait()
	for i, err := range wait() {
		if err != nil {
			t.Errorf("transaction %d: %v", i, err)
		}
	}
	if err := e.update(t.Context(), insert(100)); !errors.Is(err, ErrUnavailable) {
		t.Errorf("after the close: %v, want ErrUnavailable", err)
	}
	if n := e.rows(); n != 20 {
		t.Errorf("%d rows, want 20", n)
	}
}

// A transaction that comes while the writer closes is committed or refused. None waits
// for ever, and all acknowledged rows are stored.
func TestCloseCommitsOrRefusesEachTransaction(t *testing.T) {
	t.Parallel()
	e := newEnv(t, time.Minute)
	wait := e.run(200, insert)
	e.close()
	committed := 0
	for i, err := range wait() {
		switch {
		case err == nil:
			committed++
		case !errors.Is(err, ErrUnavailable):
			t.Errorf("transaction %d: %v", i, err)
		}
	}
	if n := e.rows(); n != committed {
		t.Errorf("%d rows, and %d were acknowledged", n, committed)
	}
}

// runLists queues transactions that are lists of statements. Those in failing change no
// row.
func (e *env) runLists(first, n int, failing ...int) (wait func() []error) {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			list := []Statement{{`INSERT INTO t (id) VALUES ($1)`, []any{first + i}}}
			if slices.Contains(failing, i) {
				list = append(list, Statement{`DELETE FROM t WHERE id = $1`, []any{-1}})
			}
			errs[i] = e.batch(e.t.Context(), list, func(rows []int64) error {
				if slices.Contains(rows, 0) {
					return errOwn
				}
				return nil
			})
		})
	}
	return func() []error {
		all.Wait()
		return errs
	}
}

func TestListsOfStatementsNeedNoSavepointsUntilOneFails(t *testing.T) {
	t.Parallel()
	e := newEnv(t, time.Minute)
	// group runs lists in one group, and returns how many savepoints it needed.
	group := func(first int, failing ...int) int {
		release := e.hold()
		wait := e.runLists(first, 20, failing...)
		e.queued(20)
		before := e.spy.count(`SAVEPOINT member`)
		release()
		for i, err := range wait() {
			if lost := errors.Is(err, errOwn); lost != slices.Contains(failing, i) || !lost && err != nil {
				t.Errorf("list %d: %v", i, err)
			}
		}
		return e.spy.count(`SAVEPOINT member`) - before
	}
	if n := group(0); n != 0 || e.rows() != 20 {
		t.Errorf("%d savepoints, %d rows", n, e.rows())
	}
	if n := group(100, 3, 7); n != 20 || e.rows() != 38 {
		t.Errorf("with two that fail: %d savepoints, %d rows, want 20 and 38", n, e.rows())
	}
	if n := group(200); n != 20 || e.rows() != 58 {
		t.Errorf("after a failure: %d savepoints, %d rows, want 20 and 58", n, e.rows())
	}
	for i := range carefulGroups {
		group(1000 + 100*i)
	}
	if n := group(50_000); n != 0 {
		t.Errorf("later: %d savepoints, want none", n)
	}
}
