package database

import (
	"context"
	"database/sql"
)

// WaitLimit is how long a transaction waits before it can start.
const WaitLimit = sqliteWait

// ErrOwn is the error of a transaction.
var ErrOwn = errOwn

// TestMigrations make the tables of the tests of this package.
var TestMigrations = testMigrations

// LimitedDial, PostgresUnavailable and PostgresLost are parts of the connections to
// PostgreSQL.
var (
	LimitedDial         = limitedDial
	PostgresUnavailable = postgresUnavailable
	PostgresLost        = postgresLost
)

// ClosePostgres closes a database on PostgreSQL that has these connections.
func ClosePostgres(db *sql.DB) error { return (&postgres{db: db}).close() }

// RunMigration runs fn as the transaction of a migration.
func (db *DB) RunMigration(ctx context.Context, fn func(Querier) error) error {
	return db.engine.migration(ctx, db.opt.Log, func(step migrationStep) error { return step(ctx, fn) })
}
