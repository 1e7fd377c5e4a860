package database

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"strconv"
	"strings"
	"time"
)

// breakingMark is the first line of a migration that earlier programs cannot work with.
const breakingMark = "-- breaks earlier programs\n"

// migration is one step of the schema. Its file has the name NNNN_subject.sql.
type migration struct {
	version  int64
	name     string
	text     string
	breaking bool // programs that do not know it must not use the database
}

// readMigrations lists the migrations of an engine in order.
func readMigrations(from fs.FS, engine string) ([]migration, error) {
	entries, err := fs.ReadDir(from, engine)
	if err != nil {
		return nil, fmt.Errorf("database: list migrations: %w", err)
	}
	steps := make([]migration, 0, len(entries))
	for _, e := range entries {
		digits, _, _ := strings.Cut(e.Name(), "_")
		version, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("database: migration %s has no number", e.Name())
		}
		text, err := fs.ReadFile(from, path.Join(engine, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("database: read migration %s: %w", e.Name(), err)
		}
		steps = append(steps, migration{
			version: version, name: e.Name(), text: string(text), breaking: strings.HasPrefix(string(text), breakingMark),
		})
	}
	return steps, nil
}

// schema is what the database says about its migrations.
type schema struct {
	applied  map[int64]bool
	newest   int64
	required int64 // programs that do not know this version must not use the database
}

// schemaTables has two tables. schema_migrations has a row for each migration.
// schema_versions has a row for each migration that programs must know: programs of
// the first release compare its greatest version with their own, and they must not fail
// when a later program adds a compatible migration.
const schemaTables = `
	CREATE TABLE IF NOT EXISTS schema_versions (version BIGINT NOT NULL PRIMARY KEY, applied_at BIGINT NOT NULL);
	CREATE TABLE IF NOT EXISTS schema_migrations (version BIGINT NOT NULL PRIMARY KEY, applied_at BIGINT NOT NULL);`

func (d *Dialect) schema(ctx context.Context, q Querier) (schema, error) {
	found := schema{applied: make(map[int64]bool)}
	rows, err := q.QueryContext(ctx, `
		SELECT version, 1 FROM schema_versions UNION ALL SELECT version, 0 FROM schema_migrations ORDER BY 1`)
	if err != nil {
		return found, d.Wrap("database: read schema version", err)
	}
	defer func() { _ = rows.Close() }() // rows.Err reports any failure
	for rows.Next() {
		var version, required int64
		if err := rows.Scan(&version, &required); err != nil {
			return found, d.Wrap("database: read schema version", err)
		}
		found.applied[version], found.newest = true, version
		if required == 1 {
			found.required = version
		}
	}
	return found, d.Wrap("database: read schema version", rows.Err())
}

// missing returns the first migration that the database does not have, or nil. It fails
// when a newer program has applied a migration that this program would have to know.
func (s schema) missing(steps []migration) (*migration, error) {
	if known := steps[len(steps)-1].version; s.required > known {
		return nil, fmt.Errorf("database: the database has schema version %d, and this program knows versions up to %d: use the program that migrated the database, or a newer one", s.required, known)
	}
	for i := range steps {
		if !s.applied[steps[i].version] {
			return &steps[i], nil
		}
	}
	return nil, nil
}

// countMissing returns how many migrations the database does not have.
func (s schema) countMissing(steps []migration) (n int) {
	for _, m := range steps {
		if !s.applied[m.version] {
			n++
		}
	}
	return n
}

// migrate applies the migrations that the database does not have. One transaction checks
// that a migration is missing, applies it and records it. So a process that is killed
// leaves no migration half done, and two processes that start together apply each
// migration once. A migration may take as long as it needs.
func (db *DB) migrate(ctx context.Context) error {
	found, err := db.dialect.schema(ctx, db.read)
	if errors.Is(err, ErrUnavailable) {
		return err
	}
	if err == nil {
		if next, err := found.missing(db.steps); err != nil || next == nil {
			return err // the usual case needs no lock
		}
	}
	err = db.engine.migration(ctx, db.opt.Log, func(step migrationStep) error {
		level, done, missing := slog.LevelInfo, 0, 0
		err := step(ctx, func(q Querier) error {
			if _, err := q.ExecContext(ctx, schemaTables); err != nil {
				return err
			}
			found, err := db.dialect.schema(ctx, q)
			if found.newest == 0 {
				level = slog.LevelDebug // a new database has no rows, so no migration takes long
			}
			missing = found.countMissing(db.steps)
			return err
		})
		for more := true; more && err == nil; {
			db.opt.OnMigration(done, missing)
			err = step(ctx, func(q Querier) (err error) {
				more, err = db.migrateNext(ctx, q, level)
				return err
			})
			done = min(done+1, missing) // another process may have applied some of them
		}
		return err
	})
	if db.dialect.denied(err) {
		err = fmt.Errorf("%w, and this role may not change tables: %w", ErrNotMigrated, err)
	}
	return db.dialect.Wrap("database: migrate", err)
}

// migrateNext applies the first missing migration, and returns false when there is none.
func (db *DB) migrateNext(ctx context.Context, q Querier, level slog.Level) (bool, error) {
	found, err := db.dialect.schema(ctx, q)
	if err != nil {
		return false, err
	}
	m, err := found.missing(db.steps)
	if m == nil || err != nil {
		return false, err
	}
	db.opt.Log.Log(ctx, level, "The database gets a migration. This takes a while if it has many rows.", "migration", m.name)
	if _, err := q.ExecContext(ctx, m.text); err != nil {
		return false, fmt.Errorf("%s: %w", m.name, err)
	}
	tables := []string{"schema_migrations"}
	if m.breaking {
		tables = append(tables, "schema_versions")
	}
	for _, table := range tables {
		if _, err := q.ExecContext(ctx, `INSERT INTO `+table+` (version, applied_at) VALUES ($1, $2)`,
			m.version, db.Now().UnixMicro()); err != nil {
			return false, fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return true, nil
}

// Ready returns an error when the database does not answer, and when a newer program has
// made its schema incompatible. The error is ErrNotMigrated when the database misses a
// migration of this program.
func (db *DB) Ready(ctx context.Context) error {
	found, err := db.dialect.schema(ctx, db.read)
	switch {
	case errors.Is(err, ErrUnavailable):
		return err
	case err != nil: // the database is empty, or the role may not read it
		return fmt.Errorf("%w: %w", ErrNotMigrated, err)
	}
	next, err := found.missing(db.steps)
	if err == nil && next != nil {
		return fmt.Errorf("database: %w: it has schema version %d, and this program needs migration %s", ErrNotMigrated, found.newest, next.name)
	}
	return err
}

// SchemaVersion returns the number of the newest migration of the database.
func (db *DB) SchemaVersion(ctx context.Context) (int64, error) {
	found, err := db.dialect.schema(ctx, db.read)
	return found.newest, err
}

// The pauses between the attempts of a migration that waits for a lock. The running
// service works in them.
const (
	firstMigrationPause = 20 * time.Millisecond
	maxMigrationPause   = 500 * time.Millisecond
	migrationLogAfter   = 5 * time.Second
)

// retryMigration repeats do while it fails with an error of a lock, until ctx ends. It
// logs that it waits.
func retryMigration(ctx context.Context, log *slog.Logger, locked func(error) bool, do func() error) error {
	var waited time.Duration
	for pause := firstMigrationPause; ; pause = min(2*pause, maxMigrationPause) {
		err := do()
		if err == nil || !locked(err) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
		if waited += pause; waited >= migrationLogAfter {
			waited = 0
			log.Warn("The migration of the database waits for a lock that another process or transaction holds. It tries again until it gets the lock.", "error", err.Error())
		}
	}
}
