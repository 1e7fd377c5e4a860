package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"

	"modernc.org/sqlite"
)

// errReadOnly is the error of a write to a database that was opened with ReadOnly.
var errReadOnly = errors.New("database: the database was opened only to read it")

// readOnlyEngine returns an engine that reads with e and refuses to write.
func readOnlyEngine(e *engine) *engine {
	e.update = func(context.Context, func(Querier) error) error { return errReadOnly }
	e.batch = func(context.Context, []Statement, func([]int64) error) error { return errReadOnly }
	e.insert = e.batch
	e.migration = func(context.Context, *slog.Logger, func(migrationStep) error) error { return errReadOnly }
	e.commits = func() int64 { return 0 }
	e.saved = e.commits
	return e
}

// openPostgresReadOnly is openPostgres. It does not set default_transaction_read_only:
// an address with target_session_attrs=read-write would then accept no server.
func openPostgresReadOnly(ctx context.Context, location string, failure *storageFailure) (*engine, error) {
	e, err := openPostgres(ctx, location, failure)
	if err != nil {
		return nil, err
	}
	return readOnlyEngine(e), nil
}

// openSQLiteReadOnly opens a database without a change of its files. SQLite creates the
// write-ahead log and its index when it reads a database without them. So a database
// without a log is opened as one that no process writes. If a server starts at that
// moment, a read can fail; the next attempt then finds the log.
func openSQLiteReadOnly(ctx context.Context, location string, _ *storageFailure) (*engine, error) {
	location, err := filepath.Abs(location)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(location); err != nil {
		return nil, err
	}
	options, err := readOnlyOptions(location)
	if err != nil {
		return nil, err
	}
	base, err := sqlite.NewConnector("file:" + (&url.URL{Path: location}).EscapedPath() + "?" + options)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(sqliteConnector{base, []sqlitePragma{{"busy_timeout", "5000", "5000"}, {"query_only", "1", "1"}}})
	if err := db.PingContext(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	read := &prepared{from: db}
	return readOnlyEngine(&engine{
		read:  read,
		close: func() error { return errors.Join(read.close(), db.Close()) },
	}), nil
}

// readOnlyOptions returns the parameters of the address of a database that is only read.
func readOnlyOptions(location string) (string, error) {
	wal, err := os.Stat(location + "-wal")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	_, errIndex := os.Stat(location + "-shm")
	switch {
	case wal != nil && errIndex == nil:
		return "mode=ro", nil
	case wal != nil && wal.Size() > 0:
		return "", fmt.Errorf("%s-wal has commits, and its index %s-shm is missing: run any other command on the database, which makes the index again", location, location)
	}
	return "mode=ro&immutable=1", nil
}
