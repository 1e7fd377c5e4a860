package database

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// maxGroup limits how many transactions share a commit. A failure of the disk rolls back
// all of them.
const maxGroup = 128

// sqliteWriter runs transactions one after the other on the only connection that writes.
// While one commit waits for the disk, the next transactions queue up; then they run as a
// group and share the next commit.
//
// After a failure of the storage it starts no transaction, and every queued one returns
// the error of that failure.
type sqliteWriter struct {
	q       Querier
	wait    time.Duration
	failure *storageFailure
	broken  func(error) bool // of the dialect
	queue   chan *write
	done    chan struct{}
	// committed has a value after a commit, for the checkpointer, which sets reset when
	// the log must start again at its beginning.
	committed chan struct{}
	reset     atomic.Bool
	commits   atomic.Int64
	careful   int          // how many next groups have savepoints, because a member failed
	mu        sync.RWMutex // update holds it for reading while it sends to queue, so that close waits for it
	shut      bool
}

// write is one queued transaction.
type write struct {
	fn     func(Querier) error
	list   bool // fn runs a list of statements and nothing else, so it can run again
	state  atomic.Int32
	err    error // result of fn; only the writer uses it
	result chan error
}

// The states of a write. Its caller can abandon it only while it is queued.
const (
	writeQueued int32 = iota
	writeRunning
	writeAbandoned
)

var errClosed = fmt.Errorf("%w: the database is closed", ErrUnavailable)

func newSQLiteWriter(q Querier, wait time.Duration, failure *storageFailure) *sqliteWriter {
	w := &sqliteWriter{
		q: q, wait: wait, failure: failure, broken: sqliteDialect().broken,
		queue: make(chan *write, maxGroup), done: make(chan struct{}), committed: make(chan struct{}, 1),
	}
	go w.loop()
	return w
}

// migration runs fn without a lock of its own: a step is one transaction, and only one
// process can write at a time. While another process writes, a step waits.
func (w *sqliteWriter) migration(_ context.Context, log *slog.Logger, fn func(migrationStep) error) error {
	return fn(func(ctx context.Context, transaction func(Querier) error) error {
		return retryMigration(ctx, log, func(err error) bool { return sqliteCode(err) == sqlite3.SQLITE_BUSY }, func() error {
			return w.update(ctx, transaction)
		})
	})
}

// update queues a transaction and waits for its commit. The error is ErrUnavailable when
// the transaction does not start within w.wait, or the writer is closed.
func (w *sqliteWriter) update(ctx context.Context, fn func(Querier) error) error {
	return w.add(ctx, &write{fn: fn, result: make(chan error, 1)})
}

// add queues a transaction, as update.
func (w *sqliteWriter) add(ctx context.Context, one *write) error {
	if err := ctx.Err(); err != nil {
		return err
	}
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
		return fmt.Errorf("%w: no transaction could start within %s", ErrUnavailable, w.wait)
	case <-ctx.Done():
		w.mu.RUnlock()
		return ctx.Err()
	}

	select {
	case err := <-one.result:
		return err
	case <-limit.C:
		if one.state.CompareAndSwap(writeQueued, writeAbandoned) {
			return fmt.Errorf("%w: no transaction could start within %s", ErrUnavailable, w.wait)
		}
	case <-ctx.Done():
		if one.state.CompareAndSwap(writeQueued, writeAbandoned) {
			return ctx.Err()
		}
	}
	return <-one.result
}

// batch runs statements in one transaction.
func (w *sqliteWriter) batch(ctx context.Context, statements []Statement, check func([]int64) error) error {
	return w.add(ctx, &write{list: true, result: make(chan error, 1), fn: func(q Querier) error {
		ctx := context.WithoutCancel(ctx)
		rows := make([]int64, len(statements))
		for i, s := range statements {
			var err error
			if rows[i], err = s.Run(ctx, q); err != nil {
				return err
			}
		}
		return check(rows)
	}})
}

// close commits the queued transactions and stops the writer.
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
		if w.reset.CompareAndSwap(true, false) {
			w.finishCheckpoint()
		}
	}
}

// finishCheckpoint copies the last pages of the log, so that the next transaction writes
// at its beginning, unless a reader still needs the log. It does not wait for readers.
func (w *sqliteWriter) finishCheckpoint() {
	_, _, err := checkpoint(context.Background(), w.q, "PASSIVE") //nolint:forbidigo // the writer lives longer than its callers
	w.recordFailure(err)
}

// gather adds the transactions that are already queued. It does not wait for more.
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

// carefulGroups is how many groups have savepoints after one in which a member failed.
const carefulGroups = 32

// savepoints reports whether the members of a group run behind savepoints. A savepoint
// costs about as much as a row. Members that are lists of statements nearly always succeed,
// and can run again behind savepoints when one of them does not.
func (w *sqliteWriter) savepoints(group []*write) bool {
	if len(group) == 1 {
		return false
	}
	if w.careful > 0 {
		w.careful--
		return true
	}
	return slices.ContainsFunc(group, func(one *write) bool { return !one.list })
}

// commit runs a group in one transaction of the engine, with a savepoint for each member.
// It returns results to the callers only after the commit: a member may fail because of a
// row that another member wrote, and its caller must be able to read that row.
func (w *sqliteWriter) commit(group []*write) {
	// A cancellation by one caller would interrupt the other members.
	ctx := context.Background() //nolint:forbidigo // the writer lives longer than its callers
	live := group[:0]
	for _, one := range group {
		if one.state.CompareAndSwap(writeQueued, writeRunning) {
			live = append(live, one)
		}
	}
	if len(live) == 0 {
		return
	}
	if err := w.failure.err(); err != nil {
		answerAll(live, err)
		return
	}
	savepoints := w.savepoints(live)
	if !w.runAll(ctx, live, savepoints) {
		return
	}
	failed := slices.ContainsFunc(live, func(one *write) bool { return one.err != nil })
	if failed && len(live) == 1 {
		w.rollback(ctx)
		answerAll(live, live[0].err)
		return
	}
	if failed && !savepoints {
		w.rollback(ctx)
		w.careful = carefulGroups
		if !w.runAll(ctx, live, true) {
			return
		}
	}
	if _, err := w.q.ExecContext(ctx, `COMMIT`); err != nil {
		if brokenCommit(err) {
			w.failure.record(err)
		}
		w.rollback(ctx)
		answerAll(live, unknownCommit(err))
		return
	}
	w.commits.Add(1)
	for _, one := range live {
		one.result <- one.err
	}
	select {
	case w.committed <- struct{}{}:
	default:
	}
}

// runAll begins a transaction of the engine and runs the members of a group. It returns
// false after it has rolled back and answered all members, because the engine failed.
func (w *sqliteWriter) runAll(ctx context.Context, group []*write, savepoints bool) bool {
	if _, err := w.q.ExecContext(ctx, `BEGIN IMMEDIATE`); err != nil {
		w.recordFailure(err)
		answerAll(group, fmt.Errorf("database: begin: %w: %w", ErrUnavailable, err))
		return false
	}
	for _, one := range group {
		one.err = w.runMember(ctx, one, savepoints)
		if w.recordFailure(one.err) {
			w.rollback(ctx)
			answerAll(group, w.failure.err())
			return false
		}
		var lost *transactionLostError
		if errors.As(one.err, &lost) {
			w.rollback(ctx)
			answerAll(group, fmt.Errorf("database: %w: %w", ErrUnavailable, lost))
			return false
		}
		if one.err != nil && !savepoints {
			return true // commit decides what happens with the others
		}
	}
	return true
}

// recordFailure records a failure of the storage, and reports whether err is one. The
// writer calls it before the next group starts, so that no later commit is acknowledged.
func (w *sqliteWriter) recordFailure(err error) bool {
	if err == nil || !w.broken(err) {
		return false
	}
	w.failure.record(err)
	return true
}

// transactionLostError: the engine has given up the transaction of the whole group. It
// contains the error of the engine, but not the own error of a member, because all
// members return it.
type transactionLostError struct{ error }

// transactionLost returns the error for a group whose transaction failed with engine,
// while the error of the member was member.
func transactionLost(member, engine error) error {
	var cause *sqlite.Error
	if errors.As(member, &cause) {
		engine = errors.Join(cause, engine)
	}
	return &transactionLostError{engine}
}

func (e *transactionLostError) Unwrap() error { return e.error }

// runMember runs one member of the group, behind a savepoint when there are others.
func (w *sqliteWriter) runMember(ctx context.Context, one *write, savepoint bool) error {
	if savepoint {
		if _, err := w.q.ExecContext(ctx, `SAVEPOINT member`); err != nil {
			return transactionLost(nil, err)
		}
	}
	err := recovered(one.fn, w.q)
	if !savepoint {
		return err
	}
	if err != nil {
		if _, undo := w.q.ExecContext(ctx, `ROLLBACK TO member`); undo != nil {
			return transactionLost(err, undo)
		}
	}
	if _, release := w.q.ExecContext(ctx, `RELEASE member`); release != nil {
		return transactionLost(err, release)
	}
	return err
}

// recovered runs fn and returns its panic as an error, because the writer must continue
// with the transactions of the other callers.
func recovered(fn func(Querier) error, q Querier) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("database: panic in a transaction: %T\n%s", r, debug.Stack())
		}
	}()
	return fn(q)
}

func (w *sqliteWriter) rollback(ctx context.Context) {
	// ROLLBACK fails when the engine has already rolled back. That error does not
	// matter.
	_, _ = w.q.ExecContext(ctx, `ROLLBACK`)
}

func answerAll(group []*write, err error) {
	for _, one := range group {
		one.result <- err
	}
}
