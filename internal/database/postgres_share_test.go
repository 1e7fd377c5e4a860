package database

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const insertName = `INSERT INTO names (name) VALUES ($1)`

// sharing runs batches on a server that the test plays. A batch inserts its name.
type sharing struct {
	*sharedBatches
	t    *testing.T
	all  sync.WaitGroup
	mu   sync.Mutex
	ran  [][]string       // the batches of each transaction
	errs map[string]error // what the batches have returned
	// answer is what the server does with a transaction; nil: it runs it.
	answer func(names []string) error
	zero   map[string]bool // the statements of these batches change no row
}

func newSharing(t *testing.T) *sharing {
	t.Helper()
	s := &sharing{t: t, errs: map[string]error{}, zero: map[string]bool{}}
	s.sharedBatches = newSharedBatches(func(ctx context.Context, statements []Statement, check func([]int64) error) error {
		var names []string
		rows := make([]int64, len(statements))
		for i, one := range statements {
			if want := rowsText(insertName, len(one.Args)); one.Text != want {
				t.Errorf("%d rows with %q", len(one.Args), one.Text)
			}
			for _, name := range one.Args {
				names = append(names, name.(string))
				if !s.zero[name.(string)] {
					rows[i]++
				}
			}
		}
		s.mu.Lock()
		s.ran = append(s.ran, names)
		took := time.Duration(len(s.ran)) * time.Millisecond // no two end at the same instant
		s.mu.Unlock()
		time.Sleep(took)
		if s.answer != nil {
			if err := s.answer(names); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil { // as while it waits for a connection
			return err
		}
		return check(rows)
	})
	return s
}

// start starts batches, one after the other.
func (s *sharing) start(ctx context.Context, names ...string) {
	for _, name := range names {
		s.all.Go(func() {
			err := s.batch(ctx, []Statement{{insertName, []any{name}}}, func(rows []int64) error {
				if rows[0] == 0 {
					return errOwn
				}
				return nil
			})
			s.mu.Lock()
			defer s.mu.Unlock()
			s.errs[name] = err
		})
		synctest.Wait()
	}
}

// want waits for all batches, and checks what ran and which batches have failed.
func (s *sharing) want(transactions string, failed map[string]error) {
	s.t.Helper()
	s.all.Wait()
	if got := fmt.Sprint(s.ran); got != transactions {
		s.t.Errorf("transactions %s, want %s", got, transactions)
	}
	for name, err := range s.errs {
		if want := failed[name]; !errors.Is(err, want) || want == nil && err != nil {
			s.t.Errorf("batch %s: %v, want %v", name, err, want)
		}
	}
	if n := s.group.Waiting(); n != 0 {
		s.t.Errorf("%d batches wait at the end", n)
	}
}

func TestSharedBatchesGatherWhileOthersRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSharing(t)
		s.start(t.Context(), "a", "b", "c", "d", "e")
		s.want("[[a] [b] [c d e]]", nil)
	})
}

func TestASharedBatchThatFailsHarmsNoOther(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*sharing) error{
		"changes no row": func(s *sharing) error { s.zero["d"] = true; return errOwn },
		"is refused by the server": func(s *sharing) error {
			refused := &pgconn.PgError{Code: "40P01"}
			s.answer = func(names []string) error {
				if slices.Contains(names, "d") {
					return refused
				}
				return nil
			}
			return refused
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSharing(t)
				err := fail(s)
				s.start(t.Context(), "a", "b", "c", "d", "e")
				s.all.Wait()
				slices.SortFunc(s.ran[3:], slices.Compare)
				s.want("[[a] [b] [c d e] [c] [d] [e]]", map[string]error{"d": err})
			})
		})
	}
}

// Nobody knows whether the transaction was committed, so none of its batches runs again.
func TestAllSharedBatchesHaveTheUnknownOutcome(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{errors.New("the network failed"), &pgconn.PgError{Code: "57P01"}} {
		synctest.Test(t, func(t *testing.T) {
			s := newSharing(t)
			s.answer = func(names []string) error {
				if len(names) > 1 {
					return unknownCommit(cause)
				}
				return nil
			}
			s.start(t.Context(), "a", "b", "c", "d")
			s.want("[[a] [b] [c d]]", map[string]error{"c": ErrOutcomeUnknown, "d": ErrOutcomeUnknown})
		})
	}
}

func TestASharedBatchDoesNotWaitForOneThatIsBlocked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSharing(t)
		s.answer = func(names []string) error {
			if names[0] < "c" {
				time.Sleep(time.Minute) // for a lock
			}
			return nil
		}
		began := time.Now()
		s.start(t.Context(), "a", "b", "c")
		time.Sleep(time.Millisecond)
		s.start(t.Context(), "d")
		time.Sleep(shareWait + 10*time.Millisecond)
		synctest.Wait()
		s.mu.Lock()
		if len(s.errs) != 2 {
			t.Errorf("%d batches have ended after %s, want 2", len(s.errs), time.Since(began))
		}
		s.mu.Unlock()
		s.want("[[a] [b] [c d]]", nil)
	})
}

func TestACancelledBatchThatWaitsDoesNotRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSharing(t)
		ctx, cancel := context.WithCancel(t.Context())
		s.start(t.Context(), "a", "b")
		s.start(ctx, "c")
		s.start(t.Context(), "d")
		cancel()
		s.want("[[a] [b] [d]]", map[string]error{"c": context.Canceled})
	})
}

// The caller of the batch that starts a transaction may give up while it waits for a
// connection. The others of the group must not fail with it.
func TestSharedBatchesDoNotEndWithTheirFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSharing(t)
		ctx, cancel := context.WithCancel(t.Context())
		s.answer = func(names []string) error {
			if names[0] == "c" {
				cancel()
			}
			return nil
		}
		s.start(t.Context(), "a", "b")
		s.start(ctx, "c")
		s.start(t.Context(), "d")
		s.want("[[a] [b] [c d]]", nil)
	})
}

func TestAPanicEndsAllSharedBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSharing(t)
		s.answer = func(names []string) error {
			if len(names) > 1 {
				panic("planted")
			}
			return nil
		}
		s.start(t.Context(), "a", "b")
		s.all.Go(func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			_ = s.batch(t.Context(), []Statement{{insertName, []any{"c"}}}, func([]int64) error { return nil })
		})
		synctest.Wait()
		s.start(t.Context(), "d")
		s.want("[[a] [b] [c d]]", map[string]error{"d": ErrOutcomeUnknown})
	})
}

// Batches of other statements wait for a transaction of their own.
func TestBatchesOfDifferentStatementsDoNotShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSharing(t)
		s.start(t.Context(), "a", "b", "c")
		s.all.Go(func() {
			err := s.batch(t.Context(), []Statement{{insertName, []any{"d"}}, {insertName, []any{"e"}}}, func([]int64) error { return nil })
			if err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		s.start(t.Context(), "f")
		s.all.Wait()
		slices.SortFunc(s.ran[2:], slices.Compare)
		s.want("[[a] [b] [c f] [d e]]", nil)
	})
}

func TestRowsTextCountsTheParameters(t *testing.T) {
	t.Parallel()
	const one = `INSERT INTO t (a, b, c) VALUES ($1, '', $2) ON CONFLICT (a) DO NOTHING`
	const three = `INSERT INTO t (a, b, c) VALUES ($1, '', $2), ($3, '', $4), ($5, '', $6) ON CONFLICT (a) DO NOTHING`
	for range 2 { // the second time from its memory
		if got := rowsText(one, 3); got != three {
			t.Errorf("got %s", got)
		}
	}
	if got := rowsText(one, 1); got != one {
		t.Errorf("got %s", got)
	}
}

// Without a server every batch of a group would wait for a connection again.
func TestSharedBatchesDoNotRunAgainWithoutAServer(t *testing.T) {
	t.Parallel()
	if failedAlone(errors.Join(&pgconn.ConnectError{}, &pgconn.PgError{Code: "53300"})) {
		t.Error("a server without free connections makes each batch run alone")
	}
	if !failedAlone(&pgconn.PgError{Code: "53300"}) {
		t.Error("an error of a statement ends all batches")
	}
}
