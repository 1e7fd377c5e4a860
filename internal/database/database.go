// Package database opens a database of SQLite or of PostgreSQL, migrates it and runs
// transactions in it. The only tables that it knows are its own two, which record migrations.
//
// SQLite is embedded and serves one node. Concurrent transactions share a commit,
// because the fsync is the expensive part. PostgreSQL serves several nodes.
package database

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// Options are the settings of a database besides its address and its migrations. Now and Log are required.
type Options struct {
	Now func() time.Time // the clock of this node
	Log *slog.Logger
	// Monotonic, for tests, is the monotonic clock of this node. Without it, the times of
	// Now carry it.
	Monotonic func() time.Duration
	// DatabaseNow replaces the clock of the database, for tests. Without it, the
	// PostgreSQL server is asked; SQLite uses the clock of this node.
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
	// counts as shared: several databases in one process stand for several nodes.
	Timeline func() string
}

// DB is an open database. Its reads see committed rows. Update, Batch and Insert write.
type DB struct {
	opt        Options
	dialect    *Dialect
	engine     *engine
	read       Querier
	steps      []migration
	clock      *clock
	failure    *storageFailure
	statements atomic.Int64 // how many were run
	// onCommit is called after every transaction that writes; nil: no function is.
	onCommit atomic.Pointer[func(took time.Duration, err error)]
}

// Statement is a statement that writes, with its arguments.
type Statement struct {
	Text string
	Args []any
}

// Run executes the statement and returns how many rows it changed.
func (s Statement) Run(ctx context.Context, q Querier) (int64, error) {
	done, err := q.ExecContext(ctx, s.Text, s.Args...)
	if err != nil {
		return 0, err
	}
	return done.RowsAffected()
}

// Open connects to a database and migrates its tables to the newest version. The
// address is sqlite:PATH or postgres://…. The migrations of an engine are in the folder
// of its name. Open fails when an option is missing, when the address is not valid, when
// other users can open the file of the database and this cannot be changed, and when the
// settings of the database could lose committed rows. The error is ErrUnavailable when the
// database does not answer, and ErrNotMigrated when a migration is missing that Open may
// not apply.
func Open(ctx context.Context, address string, migrations fs.FS, opt Options) (*DB, error) {
	if opt.Now == nil || opt.Log == nil {
		return nil, errors.New("database: Options need Now and Log")
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
	return openDialect(ctx, d, location, migrations, opt)
}

func openDialect(ctx context.Context, d *Dialect, location string, migrations fs.FS, opt Options) (*DB, error) {
	steps, err := readMigrations(migrations, d.Name)
	if err != nil {
		return nil, err
	}
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
		return nil, d.Wrap("database: open "+d.Name, err)
	}
	if opt.Point == nil {
		opt.Point = func(string) error { return nil }
	}
	if opt.OnMigration == nil {
		opt.OnMigration = func(int, int) {}
	}
	if opt.Timeline != nil {
		d.shared, d.timeline = true, func(context.Context, Querier) (string, error) { return opt.Timeline(), nil }
	}
	db := &DB{opt: opt, dialect: d, engine: e, steps: steps, failure: failure}
	db.read = counted{e.read, &db.statements}
	if db.clock, err = newClock(ctx, opt, e.clock); err != nil {
		return nil, errors.Join(d.Wrap("database: read the clock of the database", err), e.close())
	}
	prepare := db.migrate
	if opt.NoMigrate || opt.ReadOnly {
		prepare = db.Ready
	}
	if err := prepare(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// parseAddress returns the engine that the scheme names, and the rest of the
// address. The rest of a SQLite address is a path and nothing else. Other programs allow
// parameters after a question mark; here they would silently become a part of the name of
// the file, so a question mark in that name is refused.
func parseAddress(address string) (*Dialect, string, error) {
	if path, ok := strings.CutPrefix(address, "sqlite:"); ok && path != "" {
		if folder, file := filepath.Split(path); strings.Contains(file, "?") {
			name, _, _ := strings.Cut(file, "?")
			return nil, "", lang.Errorf("database: the name of the database file must not have a question mark: the service sets all parameters of SQLite itself; use sqlite:%s",
				"el nombre del archivo de la base de datos no puede tener un signo de interrogación: el servicio define él mismo todos los parámetros de SQLite; use sqlite:%s", folder+name)
		}
		return sqliteDialect(), path, nil
	}
	if strings.HasPrefix(address, "postgres://") || strings.HasPrefix(address, "postgresql://") {
		return postgresDialect(), address, nil
	}
	return nil, "", lang.Errorf("database: the database address must be sqlite:PATH or postgres://USER:PASSWORD@HOST/NAME",
		"la dirección de la base de datos debe ser sqlite:RUTA o postgres://USUARIO:CONTRASEÑA@SERVIDOR/NOMBRE")
}

// Reader runs statements that read, outside of a transaction.
func (db *DB) Reader() Querier { return db.read }

// Dialect returns what differs between the engines.
func (db *DB) Dialect() *Dialect { return db.dialect }

// Update runs fn in a transaction and returns when the writes are durable. fn must
// only run statements, because the engine may run it more than once. When fn
// returns an error, Update rolls everything back and returns that error.
//
// A context that ends before the transaction starts cancels the call. After the
// start the transaction runs to its end, even when the caller gives up.
func (db *DB) Update(ctx context.Context, fn func(Querier) error) error {
	return db.guard(func() error {
		return db.engine.update(ctx, func(q Querier) error {
			return fn(uncancelled{counted{q, &db.statements}})
		})
	})
}

// Batch is Update for statements that are known in advance. check receives the
// number of rows that each statement changed; an error of check rolls back.
func (db *DB) Batch(ctx context.Context, statements []Statement, check func(rows []int64) error) error {
	db.statements.Add(int64(len(statements)))
	return db.guard(func() error { return db.engine.batch(ctx, statements, check) })
}

// Insert is Batch for statements INSERT … VALUES that insert one row each; check must
// accept that. The engine may commit them together with statements of other callers.
func (db *DB) Insert(ctx context.Context, statements []Statement, check func(rows []int64) error) error {
	db.statements.Add(int64(len(statements)))
	return db.guard(func() error { return db.engine.insert(ctx, statements, check) })
}

// guard runs a transaction, unless the storage has failed. It returns ErrBroken for a
// transaction during which the storage failed, even when the engine reported success.
// So no caller acknowledges anything after the failure.
func (db *DB) guard(transaction func() error) error {
	if err := db.failure.err(); err != nil {
		return err
	}
	if err := db.opt.Point("before commit"); err != nil {
		return err
	}
	began := db.opt.Now()
	err := transaction()
	if observe := db.onCommit.Load(); observe != nil {
		(*observe)(db.opt.Now().Sub(began), err)
	}
	if err != nil && db.dialect.broken(err) {
		db.failure.record(err)
	}
	failed := db.failure.err()
	switch {
	case failed == nil && err == nil:
		return db.opt.Point("after commit")
	case failed == nil || errors.Is(err, ErrBroken):
		return err
	case err == nil:
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, failed)
	case errors.Is(err, ErrOutcomeUnknown):
		return fmt.Errorf("%w: %w", err, ErrBroken)
	}
	return failed
}

// OnCommit makes the database call a function after every transaction that writes, for
// metrics, with the time that it took and its error. The function must not block.
func (db *DB) OnCommit(observe func(took time.Duration, err error)) { db.onCommit.Store(&observe) }

// Broken returns a channel that is closed after a failure of the storage that can
// lose committed rows. From then on every write returns ErrBroken, and the process
// must end: a second fsync after a failed one can report success although the rows
// are lost. Reads still work.
func (db *DB) Broken() <-chan struct{} { return db.failure.failed }

// Shared reports whether other nodes may use the same database.
func (db *DB) Shared() bool { return db.dialect.shared }

// Engine returns the name of the engine: sqlite or postgres.
func (db *DB) Engine() string { return db.dialect.Name }

// Close waits for the running transactions and closes the database.
func (db *DB) Close() error {
	db.dialect.closed.Store(true)
	db.clock.close()
	return db.engine.close()
}
