// Package store owns every table and every statement of the service, on SQLite
// and on PostgreSQL. It is the only package that knows SQL.
//
// SQLite is embedded and serves one node. Concurrent transactions share a commit,
// because the fsync is the expensive part. PostgreSQL serves several nodes.
// Correctness depends on unique constraints, row locks and leases, which both
// engines have. It never depends on the isolation level.
package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// Options are the settings of a store besides its address. Now and Log are required.
type Options struct {
	Now func() time.Time // the clock of this node
	Log *slog.Logger
	// Monotonic, for tests, is the monotonic clock of this node. Without it, the times of
	// Now carry it.
	Monotonic func() time.Duration
	// DatabaseNow replaces the clock of the database, for tests. Without it, the
	// store asks the PostgreSQL server; SQLite uses the clock of this node.
	DatabaseNow func(context.Context) (time.Time, error)
	// NoMigrate makes Open fail with ErrNotMigrated when a migration is missing. Without
	// it, Open migrates the database.
	NoMigrate bool
	// OnMigration, if set, is called with the number of migrations that Open has applied
	// and the number of those that were missing: before the first, and after each.
	OnMigration func(done, missing int)
	// ReadOnly makes every write fail. Open then changes nothing: it does not migrate the
	// database, and it neither creates a file nor changes the mode of one. It fails when
	// there is no database, and with ErrNotMigrated when a migration is missing.
	ReadOnly bool
	// Point, for tests, is called before and after every transaction that writes. An
	// error before the transaction replaces it; one after it hides its success.
	Point func(name string) error
	// Timeline, for tests, replaces the timeline of a database on SQLite, which then
	// counts as shared: several stores in one process stand for several nodes.
	Timeline func() string
}

// Store is an open database. Its reads see committed rows. Update, Commit and the
// methods that use them write.
type Store struct {
	reader
	e       *engine
	clock   *clock
	failure *storageFailure
	log     *slog.Logger
	onPoint func(name string) error
	// onMigration is that of Options; never nil.
	onMigration func(done, missing int)
	now         func() time.Time // of this node; Now returns the clock of the database
	// onCommit is called after every transaction that writes; nil: no function is.
	onCommit   atomic.Pointer[func(took time.Duration, err error)]
	statements *atomic.Int64 // how many were run
}

// reader has the methods that read. They are the same outside and inside a
// transaction.
type reader struct {
	q querier
	d *dialect
}

// Tx is a transaction. The engine commits all of its writes, or none.
type Tx struct {
	reader
	now func() time.Time
}

// Open connects to a database and migrates its tables to the newest version. The
// address is sqlite:PATH or postgres://…. Open fails when an option is missing,
// when the address is not valid, when other users can open the file of the database and
// this cannot be changed, and when the settings of the database could lose committed rows.
// The error is ErrUnavailable when the database does not answer, and ErrNotMigrated when a
// migration is missing that Open may not apply.
func Open(ctx context.Context, address string, opt Options) (*Store, error) {
	if opt.Now == nil || opt.Log == nil {
		return nil, errors.New("store: Options need Now and Log")
	}
	d, location, err := parseAddress(address)
	if err != nil {
		return nil, err
	}
	if !d.shared {
		if err := checkNotFolder(location); err != nil {
			return nil, err
		}
	}
	return openDialect(ctx, d, location, opt)
}

func openDialect(ctx context.Context, d *dialect, location string, opt Options) (*Store, error) {
	failure := newStorageFailure(func(cause error) {
		opt.Log.Error("The storage failed. The service stops, because committed rows could be lost. Check the disk and the database before the next start.", "error", cause.Error())
	})
	if d.protect != nil && !opt.ReadOnly {
		if err := d.protect(location, opt.Log); err != nil {
			return nil, err
		}
	}
	open := d.open
	if opt.ReadOnly {
		open = d.openReadOnly
	}
	e, err := open(ctx, location, failure)
	if err != nil {
		return nil, d.wrap("open "+d.name+" database", err)
	}
	if opt.Point == nil {
		opt.Point = func(string) error { return nil }
	}
	if opt.OnMigration == nil {
		opt.OnMigration = func(int, int) {}
	}
	statements := new(atomic.Int64)
	if opt.Timeline != nil {
		d.shared, d.timeline = true, func(context.Context, querier) (string, error) { return opt.Timeline(), nil }
	}
	s := &Store{
		reader: reader{q: counted{e.read, statements}, d: d}, e: e, statements: statements, failure: failure, log: opt.Log, onPoint: opt.Point, onMigration: opt.OnMigration, now: opt.Now,
	}
	if s.clock, err = newClock(ctx, opt, e.clock); err != nil {
		return nil, errors.Join(d.wrap("read the clock of the database", err), e.close())
	}
	prepare := s.migrate
	if opt.NoMigrate || opt.ReadOnly {
		prepare = s.checkMigrated
	}
	if err := prepare(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// parseAddress returns the engine that the scheme names, and the rest of the
// address. The rest of a SQLite address is a path and nothing else. Other programs allow
// parameters after a question mark; here they would silently become a part of the name of
// the file, so a question mark in that name is refused.
func parseAddress(address string) (*dialect, string, error) {
	if path, ok := strings.CutPrefix(address, "sqlite:"); ok && path != "" {
		if folder, file := filepath.Split(path); strings.Contains(file, "?") {
			name, _, _ := strings.Cut(file, "?")
			return nil, "", lang.Errorf("store: the name of the database file must not have a question mark: the service sets all parameters of SQLite itself; use sqlite:%s",
				"el nombre del archivo de la base de datos no puede tener un signo de interrogación: el servicio define él mismo todos los parámetros de SQLite; use sqlite:%s", folder+name)
		}
		return sqliteDialect(), path, nil
	}
	if strings.HasPrefix(address, "postgres://") || strings.HasPrefix(address, "postgresql://") {
		return postgresDialect(), address, nil
	}
	return nil, "", lang.Errorf("store: the database address must be sqlite:PATH or postgres://USER:PASSWORD@HOST/NAME",
		"la dirección de la base de datos debe ser sqlite:RUTA o postgres://USUARIO:CONTRASEÑA@SERVIDOR/NOMBRE")
}

// Update runs fn in a transaction and returns when the writes are durable. fn must
// only run statements, because the engine may run it more than once. When fn
// returns an error, Update rolls everything back and returns that error.
//
// A context that ends before the transaction starts cancels the call. After the
// start the transaction runs to its end, even when the caller gives up.
func (s *Store) Update(ctx context.Context, fn func(*Tx) error) error {
	return s.guard(func() error {
		return s.e.update(ctx, func(q querier) error {
			return fn(&Tx{reader{q: uncancelled{counted{q, s.statements}}, d: s.d}, s.Now})
		})
	})
}

// batch is Update for statements that are known in advance. check receives the
// number of rows that each statement changed; an error of check rolls back.
func (s *Store) batch(ctx context.Context, statements []statement, check func(rows []int64) error) error {
	s.statements.Add(int64(len(statements)))
	return s.guard(func() error { return s.e.batch(ctx, statements, check) })
}

// guard runs a transaction, unless the storage has failed. It returns ErrBroken for a
// transaction during which the storage failed, even when the engine reported success.
// So no caller acknowledges anything after the failure.
func (s *Store) guard(transaction func() error) error {
	if err := s.failure.err(); err != nil {
		return err
	}
	if err := s.onPoint("before commit"); err != nil {
		return err
	}
	began := s.now()
	err := transaction()
	if observe := s.onCommit.Load(); observe != nil {
		(*observe)(s.now().Sub(began), err)
	}
	if err != nil && s.d.broken(err) {
		s.failure.record(err)
	}
	failed := s.failure.err()
	switch {
	case failed == nil && err == nil:
		return s.onPoint("after commit")
	case failed == nil || errors.Is(err, ErrBroken):
		return err
	case err == nil:
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, failed)
	case errors.Is(err, ErrOutcomeUnknown):
		return fmt.Errorf("%w: %w", err, ErrBroken)
	}
	return failed
}

// OnCommit makes the store call a function after every transaction that writes, for
// metrics, with the time that it took and its error. The function must not block.
func (s *Store) OnCommit(observe func(took time.Duration, err error)) { s.onCommit.Store(&observe) }

// Broken returns a channel that is closed after a failure of the storage that can
// lose committed rows. From then on every write returns ErrBroken, and the process
// must end: a second fsync after a failed one can report success although the rows
// are lost. Reads still work.
func (s *Store) Broken() <-chan struct{} { return s.failure.failed }

// Shared reports whether other nodes may use the same database.
func (s *Store) Shared() bool { return s.d.shared }

// Engine returns the name of the engine: sqlite or postgres.
func (s *Store) Engine() string { return s.d.name }

// Close waits for the running transactions and closes the database.
func (s *Store) Close() error {
	s.d.closed.Store(true)
	s.clock.close()
	return s.e.close()
}

// NewID returns a new key: a UUID. Keys sort by the time of their creation.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }
