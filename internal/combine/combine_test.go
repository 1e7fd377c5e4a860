package combine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/combine"
)

// env is a group whose runs take a second.
type env struct {
	combine.Group[string]
	t    *testing.T
	all  sync.WaitGroup
	mu   sync.Mutex
	ran  [][]string
	errs map[string]error
}

var errPlanted = errors.New("planted")

func newEnv(t *testing.T) *env {
	e := &env{t: t, errs: map[string]error{}}
	e.Run = func(ctx context.Context, calls []*combine.Call[string]) {
		var names []string
		combine.SetAll(calls, nil)
		for _, c := range calls {
			names = append(names, c.Value)
			if c.Value == "fails" {
				c.Err = errPlanted
			}
		}
		e.mu.Lock()
		e.ran = append(e.ran, names)
		e.mu.Unlock()
		time.Sleep(time.Second)
		if ctx.Err() != nil {
			combine.SetAll(calls, ctx.Err())
		}
	}
	return e
}

// start starts calls, one after the other.
func (e *env) start(ctx context.Context, names ...string) {
	for _, name := range names {
		e.all.Go(func() {
			defer func() { _ = recover() }()
			err := e.Do(ctx, name)
			e.mu.Lock()
			defer e.mu.Unlock()
			e.errs[name] = err
		})
		synctest.Wait()
	}
}

// want waits for all calls, and checks what ran and which calls have failed.
func (e *env) want(runs string, failed map[string]error) {
	e.t.Helper()
	e.all.Wait()
	if got := fmt.Sprint(e.ran); got != runs {
		e.t.Errorf("ran %s, want %s", got, runs)
	}
	for name, err := range e.errs {
		if !errors.Is(err, failed[name]) {
			e.t.Errorf("%s: %v, want %v", name, err, failed[name])
		}
	}
	if e.Waiting() != 0 {
		e.t.Errorf("%d calls wait at the end", e.Waiting())
	}
}

func TestTheLeaderTakesAllThatWait(t *testing.T) {
	t.Parallel()
	match := func(a, b string) bool { return (a < "d") == (b < "d") }
	for name, c := range map[string]struct {
		set  func(*combine.Group[string])
		want string
	}{
		"one leader":            {func(*combine.Group[string]) {}, "[[a] [b c d e]]"},
		"two calls in a run":    {func(g *combine.Group[string]) { g.Max = 2 }, "[[a] [b c] [d e]]"},
		"two leaders":           {func(g *combine.Group[string]) { g.Leaders = 2 }, "[[a] [b] [c d e]]"},
		"only those that match": {func(g *combine.Group[string]) { g.Match = match }, "[[a] [b c] [d e]]"},
		"a leader gathers":      {func(g *combine.Group[string]) { g.Gather = time.Second }, "[[a b c d e]]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := newEnv(t)
				c.set(&e.Group)
				e.start(t.Context(), "a", "b", "c", "d", "e")
				e.want(c.want, nil)
			})
		})
	}
}

func TestACallThatWaitsTooLongLeads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t)
		e.Patience = time.Millisecond
		began := time.Now()
		e.start(t.Context(), "a", "b")
		e.want("[[a] [b]]", nil)
		if took := time.Since(began); took != time.Second+time.Millisecond {
			t.Errorf("took %s", took)
		}
	})
}

func TestACallThatWaitsTooLongFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t)
		e.Patience, e.Late = time.Millisecond, errPlanted
		e.start(t.Context(), "a", "b")
		e.want("[[a]]", map[string]error{"b": errPlanted})
	})
}

func TestEachCallHasItsOwnError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t)
		e.start(t.Context(), "a", "b", "fails", "c")
		e.want("[[a] [b fails c]]", map[string]error{"fails": errPlanted})
	})
}

func TestACancelledCallThatWaitsDoesNotRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t)
		ctx, cancel := context.WithCancel(t.Context())
		e.start(t.Context(), "a")
		e.start(ctx, "b")
		e.start(t.Context(), "c")
		cancel()
		e.want("[[a] [c]]", map[string]error{"b": context.Canceled})
	})
}

// The caller of the leader gives up while the others still need its work.
func TestCallsDoNotEndWithTheirLeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t)
		ctx, cancel := context.WithCancel(t.Context())
		e.start(t.Context(), "a")
		e.start(ctx, "b")
		e.start(t.Context(), "c")
		time.Sleep(1500 * time.Millisecond)
		cancel()
		e.want("[[a] [b c]]", nil)
	})
}

func TestAPanicOfTheLeaderEndsAllCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t)
		e.Run = func(_ context.Context, calls []*combine.Call[string]) {
			time.Sleep(time.Second)
			if calls[0].Value == "panics" {
				panic("planted")
			}
			combine.SetAll(calls, nil)
		}
		e.start(t.Context(), "a", "panics", "b")
		time.Sleep(1500 * time.Millisecond)
		e.start(t.Context(), "c")
		e.want("[]", map[string]error{"b": combine.ErrNotEnded})
	})
}

// Calls come, give up and panic at any time. Each one that returns without an error has run
// once, one that was cancelled or came too late has not run, and no call waits for ever.
func TestEveryCallLearnsWhetherItRan(t *testing.T) {
	t.Parallel()
	for _, g := range []*combine.Group[int]{
		{}, {Max: 3}, {Leaders: 2, Patience: 30 * time.Microsecond}, {Max: 2, Patience: 50 * time.Microsecond, Late: errPlanted}, {Gather: 10 * time.Microsecond},
		{Match: func(a, b int) bool { return a%3 == b%3 }},
	} {
		const n = 2000
		ran := make([]atomic.Int32, n)
		g.Run = func(_ context.Context, calls []*combine.Call[int]) {
			for _, c := range calls {
				ran[c.Value].Add(1)
			}
			if calls[0].Value%97 == 0 {
				panic("planted")
			}
			combine.SetAll(calls, nil)
		}
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%7+1)*20*time.Microsecond)
				defer cancel()
				err := combine.ErrNotEnded
				func() {
					defer func() { _ = recover() }()
					err = g.Do(ctx, i)
				}()
				want := int32(1)
				if err != nil && !errors.Is(err, combine.ErrNotEnded) {
					want = 0
				}
				if got := ran[i].Load(); got != want {
					t.Errorf("call %d ran %d times: %v", i, got, err)
				}
			})
		}
		all.Wait()
		if g.Waiting() != 0 {
			t.Errorf("%d calls wait", g.Waiting())
		}
	}
}
