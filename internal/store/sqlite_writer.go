package store

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"
)

// maxGroup bounds how many transactions share a commit, and so how much work
// an I/O failure can take down with it.
const maxGroup = 128

// sqliteWriter runs transactions one after the other on the single connection
// that may write, and lets those that wait share the next commit: while one
// group is being made durable the following one gathers.
type sqliteWriter struct {
	q     querier
	wait  time.Duration
	queue chan *write
	done  chan struct{}
	mu    sync.RWMutex // held for reading while sending, so that close never races a send
	shut  bool
}

// write is one transaction on its way.
type write struct {
	fn     func(querier) error
	state  atomic.Int32
	err    error // of fn; the writer's until the commit
	result chan error
}

// States of a write: its caller may give up only while it is queued.
const (
	writeQueued int32 = iota
	writeRunning
	writeAbandoned
)

var errClosed = fmt.Errorf("%w: the store is closed", ErrUnavailable)

func newSQLiteWriter(q querier, wait time.Duration) *sqliteWriter {
	w := &sqliteWriter{q: q, wait: wait, queue: make(chan *write, maxGroup), done: make(chan struct{})}
	go w.loop()
	return w
}

// update queues a transaction and waits for its commit.
func (w *sqliteWriter) update(ctx context.Context, fn func(querier) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	one := &write{fn: fn, result: make(chan error, 1)}
	limit := time.NewTimer(w.wait)
	defer limit.Stop()

	w.mu.RLock()
	if w.shut {
		w.mu.RUnlock()
		return errClosed
	}
	select {
	case w.queue <- one:
		w.mu.RUnlock()
	case <-limit.C:
		w.mu.RUnlock()
		return fmt.Errorf("%w: no turn to write within %s", ErrUnavailable, w.wait)
	case <-ctx.Done():
		w.mu.RUnlock()
		return ctx.Err()
	}

	select {
	case err := <-one.result:
		return err
	case <-limit.C:
		if one.state.CompareAndSwap(writeQueued, writeAbandoned) {
			return fmt.Errorf("%w: no turn to write within %s", ErrUnavailable, w.wait)
		}
	case <-ctx.Done():
		if one.state.CompareAndSwap(writeQueued, writeAbandoned) {
			return ctx.Err()
		}
	}
	return <-one.result
}

// batch runs statements as one transaction; there is nobody to exchange with.
func (w *sqliteWriter) batch(ctx context.Context, statements []statement, judge func([]int64) error) error {
	return w.update(ctx, func(q querier) error {
		ctx := context.WithoutCancel(ctx)
		rows := make([]int64, len(statements))
		for i, s := range statements {
			var err error
			if rows[i], err = s.run(ctx, q); err != nil {
				return err
			}
		}
		return judge(rows)
	})
}

func (w *sqliteWriter) close() {
	w.mu.Lock()
	if !w.shut {
		w.shut = true
		close(w.queue)
	}
	w.mu.Unlock()
	<-w.done
}

func (w *sqliteWriter) loop() {
	defer close(w.done)
	group := make([]*write, 0, maxGroup)
	for first := range w.queue {
		group = w.gather(append(group[:0], first))
		w.commit(group)
		clear(group)
	}
}

// gather takes what waits already; it never waits for more.
func (w *sqliteWriter) gather(group []*write) []*write {
	for len(group) < maxGroup {
		select {
		case next, ok := <-w.queue:
			if !ok {
				return group
			}
			group = append(group, next)
		default:
			return group
		}
	}
	return group
}

// commit runs a group in one transaction of the engine, each member behind a
// savepoint of its own. Nobody hears anything before the commit: what one
// member was refused for may be what another has written.
func (w *sqliteWriter) commit(group []*write) {
	// No caller's cancellation reaches the engine: it would interrupt the others.
	ctx := context.Background() //nolint:forbidigo // the writer outlives each of its callers
	live := group[:0]
	for _, one := range group {
		if one.state.CompareAndSwap(writeQueued, writeRunning) {
			live = append(live, one)
		}
	}
	if len(live) == 0 {
		return
	}
	if _, err := w.q.ExecContext(ctx, `BEGIN IMMEDIATE`); err != nil {
		answerAll(live, fmt.Errorf("store: begin: %w: %w", ErrUnavailable, err))
		return
	}
	for _, one := range live {
		one.err = w.one(ctx, one, len(live) > 1)
		var lost *lostError
		if errors.As(one.err, &lost) {
			w.rollback(ctx)
			answerAll(live, fmt.Errorf("store: %w: %w", ErrUnavailable, lost))
			return
		}
	}
	if len(live) == 1 && live[0].err != nil {
		w.rollback(ctx)
		answerAll(live, live[0].err)
		return
	}
	if _, err := w.q.ExecContext(ctx, `COMMIT`); err != nil {
		w.rollback(ctx)
		answerAll(live, unknownCommit(err))
		return
	}
	for _, one := range live {
		one.result <- one.err
	}
}

// lostError says that the engine has given up the whole transaction. It holds
// what the engine said and nothing that a member was refused for: the others
// hear it too.
type lostError struct{ error }

func lose(member, engine error) error {
	var cause *sqlite.Error
	if errors.As(member, &cause) {
		engine = errors.Join(cause, engine)
	}
	return &lostError{engine}
}

func (e *lostError) Unwrap() error { return e.error }

// one runs one member of the group.
func (w *sqliteWriter) one(ctx context.Context, one *write, savepoint bool) error {
	if savepoint {
		if _, err := w.q.ExecContext(ctx, `SAVEPOINT member`); err != nil {
			return lose(nil, err)
		}
	}
	err := guarded(one.fn, w.q)
	if !savepoint {
		return err
	}
	if err != nil {
		if _, undo := w.q.ExecContext(ctx, `ROLLBACK TO member`); undo != nil {
			return lose(err, undo)
		}
	}
	if _, release := w.q.ExecContext(ctx, `RELEASE member`); release != nil {
		return lose(err, release)
	}
	return err
}

// guarded turns a panic of a member into its error, because the writer runs on
// behalf of all callers and must go on.
func guarded(fn func(querier) error, q querier) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("store: panic in a transaction: %T\n%s", r, debug.Stack())
		}
	}()
	return fn(q)
}

func (w *sqliteWriter) rollback(ctx context.Context) {
	// An engine that has rolled back by itself answers with an error here,
	// which changes nothing.
	_, _ = w.q.ExecContext(ctx, `ROLLBACK`)
}

func answerAll(group []*write, err error) {
	for _, one := range group {
		one.result <- err
	}
}
