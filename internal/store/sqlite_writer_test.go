package store

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"modernc.org/sqlite"
)

// spy counts the statements that reach the engine, and fails those it is told to.
type spy struct {
	querier
	mu   sync.Mutex
	seen map[string]int
	fail map[string]*fault
	gate chan struct{} // when set, a commit waits for it
}

// fault is an error that a statement meets once, after it has worked for a while.
type fault struct {
	skip int
	err  error
}

func (s *spy) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	s.mu.Lock()
	s.seen[query]++
	gate, f := s.gate, s.fail[query]
	if f != nil && f.skip > 0 {
		f.skip--
		f = nil
	} else {
		delete(s.fail, query)
	}
	s.mu.Unlock()
	if gate != nil && query == `COMMIT` {
		<-gate
	}
	if f != nil {
		return nil, f.err
	}
	return s.querier.ExecContext(ctx, query, args...)
}

func (s *spy) count(query string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[query]
}

func (s *spy) failAfter(skip int, query string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail[query] = &fault{skip, err}
}

// bench is a group writer on a database with one table.
type bench struct {
	*sqliteWriter
	t    *testing.T
	spy  *spy
	path string
	db   *sql.DB // another connection, as another process would have
}

// connect opens a connection with a short patience.
func connect(t *testing.T, path string) *sql.DB {
	t.Helper()
	base, err := sqlite.NewConnector("file:" + path)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(sqliteConnector{base, false})
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(t.Context(), `PRAGMA busy_timeout = 100`); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func newBench(t *testing.T, wait time.Duration) *bench {
	t.Helper()
	path := filepath.Join(t.TempDir(), "group.db")
	db := connect(t, path)
	if _, err := db.ExecContext(t.Context(), `CREATE TABLE t (id INTEGER PRIMARY KEY) STRICT`); err != nil {
		t.Fatal(err)
	}
	conn, err := connect(t, path).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	spy := &spy{querier: &prepared{from: conn}, seen: map[string]int{}, fail: map[string]*fault{}}
	b := &bench{sqliteWriter: newSQLiteWriter(spy, wait), t: t, spy: spy, path: path, db: db}
	t.Cleanup(func() {
		b.close()
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func insert(id int) func(querier) error {
	return func(q querier) error {
		_, err := q.ExecContext(context.Background(), `INSERT INTO t (id) VALUES ($1)`, id)
		return err
	}
}

// hold keeps the writer busy until it is released.
func (b *bench) hold() (release func()) {
	b.t.Helper()
	running, free := make(chan struct{}), make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		err := b.update(b.t.Context(), func(querier) error {
			close(running)
			<-free
			return nil
		})
		if err != nil {
			b.t.Errorf("the transaction that holds the writer: %v", err)
		}
	})
	<-running
	return func() { close(free); done.Wait() }
}

// queued waits until n transactions wait for the writer.
func (b *bench) queued(n int) {
	b.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for len(b.queue) < n {
		if time.Now().After(deadline) {
			b.t.Fatalf("%d of %d are queued", len(b.queue), n)
		}
		time.Sleep(time.Millisecond)
	}
}

// run starts n transactions and returns what waits for their results.
func (b *bench) run(n int, fn func(i int) func(querier) error) (wait func() []error) {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = b.update(b.t.Context(), fn(i)) })
	}
	return func() []error {
		all.Wait()
		return errs
	}
}

func (b *bench) rows() (n int) {
	b.t.Helper()
	if err := b.db.QueryRowContext(b.t.Context(), `SELECT count(*) FROM t`).Scan(&n); err != nil {
		b.t.Fatal(err)
	}
	return n
}

func TestTransactionsThatWaitShareTheNextCommit(t *testing.T) {
	t.Parallel()
	b := newBench(t, time.Minute)
	release := b.hold()
	wait := b.run(100, insert)
	b.queued(100)
	before := b.spy.count(`COMMIT`)
	release()
	for i, err := range wait() {
		if err != nil {
			t.Errorf("transaction %d: %v", i, err)
		}
	}
	// One commit is of the transaction that held the writer.
	if commits := b.spy.count(`COMMIT`) - before; commits != 2 || b.rows() != 100 {
		t.Errorf("%d commits for %d rows, want 2 for 100", commits, b.rows())
	}
}

func TestATransactionAloneNeedsNoSavepoint(t *testing.T) {
	t.Parallel()
	b := newBench(t, time.Minute)
	if err := b.update(t.Context(), insert(1)); err != nil {
		t.Fatal(err)
	}
	if b.spy.count(`SAVEPOINT member`) != 0 || b.spy.count(`COMMIT`) != 1 {
		t.Errorf("statements %v", b.spy.seen)
	}
}

func TestAMemberThatFailsIsUndoneAlone(t *testing.T) {
	t.Parallel()
	errOwn := errors.New("own")
	b := newBench(t, time.Minute)
	release := b.hold()
	wait := b.run(30, func(i int) func(querier) error {
		return func(q querier) error {
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
	b.queued(30)
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
				t.Errorf("member %d: %v, want the panic told", i, err)
			}
		}
	}
	if n := b.rows(); n != 10 {
		t.Errorf("%d rows, want 10", n)
	}
}

// A member that meets what another one of its group wrote must not hear of it
// before it is there for everybody: it would look for it, and not find it.
func TestARefusalIsToldAfterTheCommitItRestsOn(t *testing.T) {
	t.Parallel()
	b := newBench(t, time.Minute)
	release := b.hold()
	first := b.run(1, insert)
	b.queued(1)
	told := make(chan error, 1)
	go func() { told <- b.update(t.Context(), insert(0)) }() // the same row
	b.queued(2)
	gate := make(chan struct{})
	before := b.spy.count(`COMMIT`)
	b.spy.mu.Lock()
	b.spy.gate = gate
	b.spy.mu.Unlock()
	var holder sync.WaitGroup
	holder.Go(release)
	gate <- struct{}{} // the commit of the transaction that held the writer
	for b.spy.count(`COMMIT`) < before+2 {
		time.Sleep(time.Millisecond)
	}
	select {
	case err := <-told:
		t.Errorf("told before the commit: %v", err)
		told <- err
	case <-time.After(50 * time.Millisecond):
	}
	gate <- struct{}{}
	if err := <-told; err == nil || b.rows() != 1 {
		t.Errorf("the second: %v, and %d rows; want a refusal and the first one's row", err, b.rows())
	}
	holder.Wait()
	if err := first()[0]; err != nil {
		t.Errorf("the first: %v", err)
	}
}

func TestACallerThatLeavesTheQueueRunsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, time.Minute)
	release := b.hold()
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { left <- b.update(ctx, insert(1)) }()
	b.queued(1)
	wait := b.run(1, func(int) func(querier) error { return insert(2) })
	b.queued(2)
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the one that left: %v", err)
	}
	release()
	if err := wait()[0]; err != nil || b.rows() != 1 {
		t.Errorf("the one that stayed: %v, and %d rows", err, b.rows())
	}
}

func TestP80AQueueThatIsFullOrSlowIsToldAtTheLimit(t *testing.T) {
	t.Parallel()
	b := newBench(t, 300*time.Millisecond)
	release := b.hold()
	wait := b.run(maxGroup+20, insert)
	b.queued(maxGroup)
	for i, err := range wait() {
		if !errors.Is(err, ErrUnavailable) {
			t.Errorf("transaction %d: %v, want ErrUnavailable", i, err)
		}
	}
	release()
	if err := b.update(t.Context(), insert(1000)); err != nil || b.rows() != 1 {
		t.Errorf("afterwards: %v, and %d rows; those who gave up left nothing", err, b.rows())
	}
}

// P-74: another process holds the lock of the file for longer than a writer waits.
func TestP74AFileThatAnotherProcessLocksIsUnavailableUntilItLetsGo(t *testing.T) {
	t.Parallel()
	b := newBench(t, 200*time.Millisecond)
	if _, err := b.db.ExecContext(t.Context(), `BEGIN IMMEDIATE`); err != nil {
		t.Fatal(err)
	}
	for i, err := range b.run(5, insert)() {
		if !errors.Is(err, ErrUnavailable) {
			t.Errorf("transaction %d: %v, want ErrUnavailable", i, err)
		}
	}
	if _, err := b.db.ExecContext(t.Context(), `ROLLBACK`); err != nil {
		t.Fatal(err)
	}
	if err := b.update(t.Context(), insert(1)); err != nil {
		t.Errorf("once it is free: %v", err)
	}
}

// An engine that gives up a transaction takes its members with it. They hear
// that they may try again, and nothing of what one of them was refused for.
func TestAnEngineThatGivesUpIsToldToTheWholeGroup(t *testing.T) {
	t.Parallel()
	errDisk := errors.New("disk")
	for _, statement := range []string{`BEGIN IMMEDIATE`, `SAVEPOINT member`, `ROLLBACK TO member`, `RELEASE member`, `COMMIT`} {
		t.Run(statement, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, time.Minute)
			release := b.hold()
			wait := b.run(10, func(i int) func(querier) error {
				return func(q querier) error {
					if err := insert(i)(q); err != nil || statement != `ROLLBACK TO member` || i != 5 {
						return err
					}
					return ErrExternalIDTaken
				}
			})
			b.queued(10)
			skip := 0
			if statement == `COMMIT` {
				skip = 1 // that of the transaction that holds the writer
			}
			b.spy.failAfter(skip, statement, errDisk)
			release()
			for i, err := range wait() {
				if !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrExternalIDTaken) {
					t.Errorf("member %d: %v, want ErrUnavailable alone", i, err)
				}
			}
			if n := b.rows(); n != 0 {
				t.Errorf("%d rows remain", n)
			}
			if err := b.update(t.Context(), insert(1)); err != nil || b.rows() != 1 {
				t.Errorf("afterwards: %v, and %d rows", err, b.rows())
			}
		})
	}
}

func TestCloseCommitsWhatIsQueued(t *testing.T) {
	t.Parallel()
	b := newBench(t, time.Minute)
	release := b.hold()
	wait := b.run(20, insert)
	b.queued(20)
	var closing sync.WaitGroup
	closing.Go(b.close)
	release()
	closing.Wait()
	for i, err := range wait() {
		if err != nil {
			t.Errorf("transaction %d: %v", i, err)
		}
	}
	if err := b.update(t.Context(), insert(100)); !errors.Is(err, ErrUnavailable) {
		t.Errorf("after the close: %v, want ErrUnavailable", err)
	}
	if n := b.rows(); n != 20 {
		t.Errorf("%d rows, want 20", n)
	}
}

// Whoever comes while the writer closes is either committed or refused; nobody
// is left waiting, and what was acknowledged is there.
func TestCloseRacesNobody(t *testing.T) {
	t.Parallel()
	b := newBench(t, time.Minute)
	wait := b.run(200, insert)
	b.close()
	committed := 0
	for i, err := range wait() {
		switch {
		case err == nil:
			committed++
		case !errors.Is(err, ErrUnavailable):
			t.Errorf("transaction %d: %v", i, err)
		}
	}
	if n := b.rows(); n != committed {
		t.Errorf("%d rows, and %d were acknowledged", n, committed)
	}
}

func TestP77AStorageThatBreaksIsToldOnce(t *testing.T) {
	t.Parallel()
	errDisk := errors.New("disk")
	s := openTemporary(t)
	s.d.broken = func(err error) bool { return errors.Is(err, errDisk) }
	for range 2 { // the second time there is nothing left to close
		err := s.Update(t.Context(), func(*Tx) error { return errDisk })
		if !errors.Is(err, ErrUnavailable) {
			t.Errorf("got %v, want ErrUnavailable", err)
		}
		select {
		case <-s.Broken():
		default:
			t.Error("nobody was told")
		}
	}
}
