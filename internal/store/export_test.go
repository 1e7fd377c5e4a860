package store

import (
	"context"
	"database/sql"
)

// Exec runs any statement in a transaction.
func (tx *Tx) Exec(ctx context.Context, query string, args ...any) error {
	_, err := tx.q.ExecContext(ctx, query, args...)
	return tx.d.wrap("exec", err)
}

// Query runs any query outside of a transaction.
func (s *Store) Query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return s.q.QueryContext(ctx, query, args...)
}

// QueryRow runs any query of one row outside of a transaction.
func (s *Store) QueryRow(ctx context.Context, query string, args ...any) *sql.Row {
	return s.q.QueryRowContext(ctx, query, args...)
}

// WaitLimit is how long a transaction waits before it can start.
const WaitLimit = sqliteWait

// RunMigration runs fn as the transaction of a migration.
func (s *Store) RunMigration(ctx context.Context, fn func(*Tx) error) error {
	return s.e.migration(ctx, s.log, func(step migrationStep) error {
		return step(ctx, func(q querier) error { return fn(&Tx{reader{q: q, d: s.d}}) })
	})
}

// SchemaOfTheFirstRelease is the schema version that programs of the first release know.
const SchemaOfTheFirstRelease = firstCompatible
