package store

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

//go:embed migrations
var migrationFiles embed.FS

// migration is one step of the schema. Its file has the name NNNN_subject.sql.
type migration struct {
	version int64
	name    string
	text    string
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
		steps = append(steps, migration{version, e.Name(), string(text)})
	}
	return steps, nil
}

// migrate applies the migrations that the database does not have. One transaction reads
// the version, applies the migrations and records them. So a process that is killed
// leaves no migration half done, and two processes that start together apply each
// migration once.
func (s *Store) migrate(ctx context.Context) error {
	steps, err := migrations(s.d)
	if err != nil {
		return err
	}
	newest := steps[len(steps)-1].version
	current, err := s.SchemaVersion(ctx)
	if err == nil && current == newest {
		return nil // the usual case needs no lock
	}
	return s.Update(ctx, func(tx *Tx) error {
		current, err := tx.lockSchema(ctx)
		if err != nil {
			return s.d.wrap("read schema version", err)
		}
		if current > newest {
			return fmt.Errorf("store: the database has schema version %d, and this program knows versions up to %d: use the program that migrated the database, or a newer one", current, newest)
		}
		for _, m := range steps {
			if m.version <= current {
				continue
			}
			if _, err := tx.q.ExecContext(ctx, m.text); err != nil {
				return s.d.wrap("migration "+m.name, err)
			}
			if _, err := tx.q.ExecContext(ctx, `INSERT INTO schema_versions (version, applied_at) VALUES ($1, $2)`,
				m.version, micros(s.now())); err != nil {
				return s.d.wrap("migration "+m.name, err)
			}
		}
		return nil
	})
}

// Ready returns an error when the database does not answer, or does not have the schema
// version of this program.
func (s *Store) Ready(ctx context.Context) error {
	steps, err := migrations(s.d)
	if err != nil {
		return err
	}
	version, err := s.SchemaVersion(ctx)
	if err != nil {
		return err
	}
	if newest := steps[len(steps)-1].version; version != newest {
		return fmt.Errorf("store: the database has schema version %d, and this program needs version %d", version, newest)
	}
	return nil
}

// SchemaVersion returns the number of the newest migration of the database.
func (r reader) SchemaVersion(ctx context.Context) (int64, error) {
	var version int64
	err := r.q.QueryRowContext(ctx, `SELECT coalesce(max(version), 0) FROM schema_versions`).Scan(&version)
	return version, r.d.wrap("read schema version", err)
}

// lockSchema makes other processes that migrate wait until the transaction ends, and
// returns the schema version.
func (tx *Tx) lockSchema(ctx context.Context) (int64, error) {
	if tx.d.lock != "" {
		if _, err := tx.q.ExecContext(ctx, tx.d.lock); err != nil {
			return 0, err
		}
	}
	if _, err := tx.q.ExecContext(ctx,
		`CREATE TABLE IF NOT EXISTS schema_versions (version BIGINT NOT NULL PRIMARY KEY, applied_at BIGINT NOT NULL)`); err != nil {
		return 0, err
	}
	return tx.SchemaVersion(ctx)
}
