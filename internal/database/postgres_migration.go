package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5/stdlib"
)

// migrationLock is the key of the advisory lock that migrations of this service take.
const migrationLock = 7305130190131

// migrationLockTimeout is how long a statement of a migration waits for a lock. While it
// waits for the exclusive lock of a table, all other statements on that table wait behind
// it, so the wait must be short.
const migrationLockTimeout = "1s"

// migration runs fn on a connection of its own, which has no time limit for statements.
// It holds an advisory lock, so that one process migrates at a time. The server ends the
// session, and with it the locks, soon after the process has become unreachable.
func (p *postgres) migration(ctx context.Context, log *slog.Logger, fn func(migrationStep) error) error {
	config := p.config.Copy()
	for name, value := range map[string]string{
		"statement_timeout":       "0",
		"lock_timeout":            migrationLockTimeout,
		"tcp_keepalives_idle":     "30",
		"tcp_keepalives_interval": "10",
		"tcp_keepalives_count":    "3",
	} {
		config.RuntimeParams[name] = value
	}
	db := stdlib.OpenDB(*config)
	defer func() { _ = db.Close() }() // ends the session, and with it the lock
	conn, err := db.Conn(ctx)
	if err != nil {
		return errors.Join(err, ctx.Err())
	}
	defer func() { _ = conn.Close() }()
	if err := lockMigrations(ctx, log, conn); err != nil {
		return errors.Join(err, ctx.Err()) // the driver may report the end of the context as a bad connection
	}
	return fn(func(ctx context.Context, transaction func(Querier) error) error {
		return retryMigration(ctx, log, func(err error) bool { return postgresCode(err) == "55P03" || postgresCollision(err) }, func() error {
			return runTransaction(ctx, conn, transaction)
		})
	})
}

// lockMigrations takes the advisory lock of migrations, and waits for as long as another
// process holds it. It asks again and again: a session that waits inside of a statement
// holds a snapshot, and the creation of an index by the other process would wait for it.
func lockMigrations(ctx context.Context, log *slog.Logger, conn *sql.Conn) error {
	errHeld := errors.New("another process migrates the database")
	return retryMigration(ctx, log, func(err error) bool { return errors.Is(err, errHeld) }, func() error {
		var locked bool
		err := conn.QueryRowContext(ctx, fmt.Sprintf(`SELECT pg_try_advisory_lock(%d)`, migrationLock)).Scan(&locked)
		if err == nil && !locked {
			return errHeld
		}
		return err
	})
}
