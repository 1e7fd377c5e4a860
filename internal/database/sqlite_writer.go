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

	"github.com/fiscalhub/fiscalhub/internal/combine"
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
	failure *storageFailure
	broken  func(error) bool // of the dialect
	group   combine.Group[write]
	// committed has a value after a commit, for the checkpointer, which sets reset when
	// the log must start again at its beginning.
	committed chan struct{}
	reset     atomic.Bool
	commits   atomic.Int64
	careful   int          // how many next groups have savepoints, because a member failed
	busy      sync.RWMutex // transactions hold it for reading, so that close waits for them
	closed    bool
}

// write is one transaction.
type write struct {
	fn   func(Querier) error
	list bool // fn runs a list of statements and nothing else, so it can run again
}

type queuedWrite = combine.Call[write]

var errClosed = fmt.Errorf("%w: the database is closed", ErrUnavailable)

func newSQLiteWriter(q Querier, wait time.Duration, failure *storageFailure) *sqliteWriter {
	w := &sqliteWriter{q: q, failure: failure, broken: sqliteDialect().broken, committed: make(chan struct{}, 1)}
	w.group = combine.Group[write]{
		Run: w.run, Max: maxGroup,
		Patience: wait, Late: fmt.Errorf("%w: no transaction could start within %s", ErrUnavailable, wait),
	}
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
// the transaction does not start within the wait, or the writer is closed.
func (w *sqliteWriter) update(ctx context.Context, fn func(Querier) error) error {
	return w.add(ctx, write{fn: fn})
}

// add queues a transaction, as update.
func (w *sqliteWriter) add(ctx context.Context, one write) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w.busy.RLock()
	defer w.busy.RUnlock()
	if w.closed {
		return errClosed
	}
	return w.group.Do(ctx, one)
}

// batch runs statements in one transaction.
func (w *sqliteWriter) batch(ctx context.Context, statements []Statement, check func([]int64) error) error {
	return w.add(ctx, write{list: true, fn: func(q Querier) error {
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

// close waits for the queued transactions.
func (w *sqliteWriter) close() {
	w.busy.Lock()
	defer w.busy.Unlock()
	w.closed = true
}

// run commits a group. Before that, it copies the last pages of the log if the checkpointer
// asks for it, so that the group writes at its beginning, unless a reader still needs the
// log. It does not wait for readers.
func (w *sqliteWriter) run(ctx context.Context, group []*queuedWrite) {
	ctx = context.WithoutCancel(ctx) // a cancellation by one caller would interrupt the other members
	if w.reset.CompareAndSwap(true, false) {
		_, _, err := checkpoint(ctx, w.q, "PASSIVE")
		w.recordFailure(err)
	}
	if err := w.failure.err(); err != nil {
		combine.SetAll(group, err)
		return
	}
	w.commit(ctx, group)
}

// carefulGroups is how many groups have savepoints after one in which a member failed.
const carefulGroups = 32

// savepoints reports whether the members of a group run behind savepoints. A savepoint
// costs about as much as a row. Members that are lists of statements nearly always succeed,
// and can run again behind savepoints when one of them does not.
func (w *sqliteWriter) savepoints(group []*queuedWrite) bool {
	if len(group) == 1 {
		return false
	}
	if w.careful > 0 {
		w.careful--
		return true
	}
	return slices.ContainsFunc(group, func(one *queuedWrite) bool { return !one.Value.list })
}

// commit runs a group in one transaction of the engine, with a savepoint for each member.
// Callers get results only after the commit: a member may fail because of a row that
// another member wrote, and its caller must be able to read that row.
func (w *sqliteWriter) commit(ctx context.Context, group []*queuedWrite) {
	ended := false
	defer func() {
		if !ended { // the engine panicked, and what has called the leader may recover
			w.rollback(ctx)
			combine.SetAll(group, unknownCommit(combine.ErrNotEnded))
		}
	}()
	w.commitGroup(ctx, group)
	ended = true
}

func (w *sqliteWriter) commitGroup(ctx context.Context, group []*queuedWrite) {
	savepoints := w.savepoints(group)
	if !w.runAll(ctx, group, savepoints) {
		return
	}
	failed := slices.ContainsFunc(group, func(one *queuedWrite) bool { return one.Err != nil })
	if failed && len(group) == 1 {
		w.rollback(ctx)
		return
	}
	if failed && !savepoints {
		w.rollback(ctx)
		w.careful = carefulGroups
		if !w.runAll(ctx, group, true) {
			return
		}
	}
	if _, err := w.q.ExecContext(ctx, `COMMIT`); err != nil {
		if brokenCommit(err) {
			w.failure.record(err)
		}
		w.rollback(ctx)
		combine.SetAll(group, unknownCommit(err))
		return
	}
	w.commits.Add(1)
	select {
	case w.committed <- struct{}{}:
	default:
	}
}

// runAll begins a transaction of the engine and runs the members of a group. It returns
// false after it has rolled back and set the error of all members, because the engine
// failed.
func (w *sqliteWriter) runAll(ctx context.Context, group []*queuedWrite, savepoints bool) bool {
	if _, err := w.q.ExecContext(ctx, `BEGIN IMMEDIATE`); err != nil {
		w.recordFailure(err)
		combine.SetAll(group, fmt.Errorf("database: begin: %w: %w", ErrUnavailable, err))
		return false
	}
	for _, one := range group {
		one.Err = w.runMember(ctx, one, savepoints)
		if w.recordFailure(one.Err) {
			w.rollback(ctx)
			combine.SetAll(group, w.failure.err())
			return false
		}
		var lost *transactionLostError
		if errors.As(one.Err, &lost) {
			w.rollback(ctx)
			combine.SetAll(group, fmt.Errorf("database: %w: %w", ErrUnavailable, lost))
			return false
		}
		if one.Err != nil && !savepoints {
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
func (w *sqliteWriter) runMember(ctx context.Context, one *queuedWrite, savepoint bool) error {
	if savepoint {
		if _, err := w.q.ExecContext(ctx, `SAVEPOINT member`); err != nil {
			return transactionLost(nil, err)
		}
	}
	err := recovered(one.Value.fn, w.q)
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
