package store

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"strconv"
	"strings"
	"time"
)

//go:embed migrations
var migrationFiles embed.FS

// firstCompatible is the schema version from which on migrations are compatible: each one
// only adds to the schema, so that programs of earlier versions continue to work. During
// an upgrade of several nodes, both programs use the new schema.
const firstCompatible = 7

// breakingMark is the first line of a migration that earlier programs cannot work with.
const breakingMark = "-- breaks earlier programs\n"

// migration is one step of the schema. Its file has the name NNNN_subject.sql.
type migration struct {
	version  int64
	name     string
	text     string
	breaking bool // programs that do not know it must not use the database
}

// migrations lists the migrations of an engine in order.
func migrations(d *dialect) ([]migration, error) {
	dir := path.Join("migrations", d.name)
	entries, err := fs.ReadDir(migrationFiles, dir)
	if err != nil {
		return nil, fmt.Errorf("store: list migrations: %w", err)
	}
	steps := make([]migration, 0, len(entries))
	for _, e := range entries {
		digits, _, _ := strings.Cut(e.Name(), "_")
		version, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("store: migration %s has no number", e.Name())
		}
		text, err := migrationFiles.ReadFile(path.Join(dir, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("store: read migration %s: %w", e.Name(), err)
		}
		steps = append(steps, migration{
			version: version, name: e.Name(), text: string(text),
			breaking: version <= firstCompatible || strings.HasPrefix(string(text), breakingMark),
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

func (r reader) schema(ctx context.Context) (schema, error) {
	found := schema{applied: make(map[int64]bool)}
	rows, err := r.q.QueryContext(ctx, `
		SELECT version, 1 FROM schema_versions UNION ALL SELECT version, 0 FROM schema_migrations ORDER BY 1`)
	if err != nil {
		return found, r.d.wrap("read schema version", err)
	}
	_, err = collect(r.d, "read schema version", rows, func(row row) (struct{}, error) {
		var version, required int64
		err := row.Scan(&version, &required)
		found.applied[version], found.newest = true, version
		if required == 1 {
			found.required = version
		}
		return struct{}{}, err
	})
	return found, err
}

// missing returns the first migration that the database does not have, or nil. It fails
// when a newer program has applied a migration that this program would have to know.
func (s schema) missing(steps []migration) (*migration, error) {
	if known := steps[len(steps)-1].version; s.required > known {
		return nil, fmt.Errorf("store: the database has schema version %d, and this program knows versions up to %d: use the program that migrated the database, or a newer one", s.required, known)
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
func (s *Store) migrate(ctx context.Context) error {
	steps, err := migrations(s.d)
	if err != nil {
		return err
	}
	found, err := s.schema(ctx)
	if errors.Is(err, ErrUnavailable) {
		return err
	}
	if err == nil {
		if next, err := found.missing(steps); err != nil || next == nil {
			return err // the usual case needs no lock
		}
	}
	err = s.e.migration(ctx, s.log, func(step migrationStep) error {
		level, done, missing := slog.LevelInfo, 0, 0
		err := step(ctx, func(q querier) error {
			if _, err := q.ExecContext(ctx, schemaTables); err != nil {
				return err
			}
			found, err := reader{q: q, d: s.d}.schema(ctx)
			if found.newest == 0 {
				level = slog.LevelDebug // a new database has no rows, so no migration takes long
			}
			missing = found.countMissing(steps)
			return err
		})
		for more := true; more && err == nil; {
			s.onMigration(done, missing)
			err = step(ctx, func(q querier) (err error) {
				more, err = s.migrateNext(ctx, reader{q: q, d: s.d}, steps, level)
				return err
			})
			done = min(done+1, missing) // another process may have applied some of them
		}
		return err
	})
	if s.d.denied(err) {
		err = fmt.Errorf("%w, and this role may not change tables: %w", ErrNotMigrated, err)
	}
	return s.d.wrap("migrate", err)
}

// checkMigrated is migrate for a process that must not change tables. The error is
// ErrNotMigrated when a migration is missing.
func (s *Store) checkMigrated(ctx context.Context) error {
	steps, err := migrations(s.d)
	if err != nil {
		return err
	}
	found, err := s.schema(ctx)
	switch {
	case errors.Is(err, ErrUnavailable):
		return err
	case err != nil: // the database is empty, or the role may not read it
		return fmt.Errorf("%w: %w", ErrNotMigrated, err)
	}
	return found.check(steps)
}

// migrateNext applies the first missing migration, and returns false when there is none.
func (s *Store) migrateNext(ctx context.Context, tx reader, steps []migration, level slog.Level) (bool, error) {
	found, err := tx.schema(ctx)
	if err != nil {
		return false, err
	}
	m, err := found.missing(steps)
	if m == nil || err != nil {
		return false, err
	}
	s.log.Log(ctx, level, "The database gets a migration. This takes a while if it has many rows.", "migration", m.name)
	if _, err := tx.q.ExecContext(ctx, m.text); err != nil {
		return false, fmt.Errorf("%s: %w", m.name, err)
	}
	tables := []string{"schema_migrations"}
	if m.breaking {
		tables = append(tables, "schema_versions")
	}
	for _, table := range tables {
		if _, err := tx.q.ExecContext(ctx, `INSERT INTO `+table+` (version, applied_at) VALUES ($1, $2)`,
			m.version, micros(s.Now())); err != nil {
			return false, fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return true, nil
}

// Ready returns an error when the database does not answer, when it misses a migration of
// this program, or when a newer program has made its schema incompatible.
func (s *Store) Ready(ctx context.Context) error {
	steps, err := migrations(s.d)
	if err != nil {
		return err
	}
	found, err := s.schema(ctx)
	if err != nil {
		return err
	}
	return found.check(steps)
}

// check returns ErrNotMigrated when a migration is missing. It fails as missing does.
func (s schema) check(steps []migration) error {
	next, err := s.missing(steps)
	if err == nil && next != nil {
		return fmt.Errorf("store: %w: it has schema version %d, and this program needs migration %s", ErrNotMigrated, s.newest, next.name)
	}
	return err
}

// SchemaVersion returns the number of the newest migration of the database.
func (r reader) SchemaVersion(ctx context.Context) (int64, error) {
	found, err := r.schema(ctx)
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
