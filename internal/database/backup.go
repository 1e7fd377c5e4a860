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
	"time"

	"modernc.org/sqlite"

	"github.com/fiscalhub/fiscalhub/internal/atomicfile"
)

// ErrHasOwnTools is the error of a backup of PostgreSQL, which has its own backup
// tools.
var ErrHasOwnTools = errors.New("database: PostgreSQL has its own backup tools; use pg_dump or pg_basebackup")

// Backup copies a SQLite database into a new file while other processes use it. The
// copy shows the database at one moment. Backup does not migrate the database. When
// it returns, the copy is on disk and only its owner can read it. The error is
// fs.ErrNotExist when there is no database, fs.ErrExist when the file exists, and
// ErrHasOwnTools on PostgreSQL. When ctx ends, Backup removes what it has written.
//
// Backup calls progress, which may be nil, with the bytes that are written and about how
// many they will be.
func Backup(ctx context.Context, address, file string, progress func(done, total int64)) (bytes int64, err error) {
	d, location, err := parseAddress(address)
	if err != nil {
		return 0, err
	}
	if d.shared {
		return 0, ErrHasOwnTools
	}
	if location, err = filepath.Abs(location); err != nil {
		return 0, err
	}
	if err := checkNotFolder(location); err != nil {
		return 0, err
	}
	if _, err := os.Stat(location); err != nil {
		return 0, fmt.Errorf("database: backup: %w", err)
	}
	if err := protectSQLite(location, slog.New(slog.DiscardHandler)); err != nil { // SQLite may create files in its folder
		return 0, err
	}
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("database: backup: %s: %w", file, errors.Join(err, fs.ErrExist))
	}
	tmp, err := atomicfile.CreateTemp(file)
	if err != nil {
		return 0, fmt.Errorf("database: backup: %w", err)
	}
	defer func() { err = errors.Join(err, tmp.Close(), os.Remove(tmp.Name())) }()
	if err := copySQLite(ctx, location, tmp.Name(), progress); err != nil {
		return 0, d.Wrap("database: backup", err)
	}
	if err := tmp.Sync(); err != nil {
		return 0, fmt.Errorf("database: backup: %w", err)
	}
	info, err := tmp.Stat()
	if err != nil {
		return 0, fmt.Errorf("database: backup: %w", err)
	}
	// os.Link fails when the file exists; os.Rename would replace it.
	if err := os.Link(tmp.Name(), file); err != nil {
		return 0, fmt.Errorf("database: backup: %w", err)
	}
	return info.Size(), atomicfile.SyncDir(filepath.Dir(file))
}

// copySQLite writes the database, as one read transaction sees it, into an empty
// file. Writers do not wait for it.
func copySQLite(ctx context.Context, from, to string, progress func(done, total int64)) (err error) {
	base, err := sqlite.NewConnector("file:" + (&url.URL{Path: from}).EscapedPath() + "?mode=rw")
	if err != nil {
		return err
	}
	db := sql.OpenDB(base)
	defer func() { err = errors.Join(err, db.Close()) }()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if _, err := conn.ExecContext(ctx, `PRAGMA busy_timeout = 5000`); err != nil {
		return err
	}
	// Fail when the file is a database of another program.
	var version int64
	if err := conn.QueryRowContext(ctx, `SELECT coalesce(max(version), 0) FROM schema_versions`).Scan(&version); err != nil {
		return err
	}
	if progress != nil {
		var total int64
		err := conn.QueryRowContext(ctx, `
			SELECT (p.page_count - f.freelist_count) * s.page_size
			FROM pragma_page_count p, pragma_freelist_count f, pragma_page_size s`).Scan(&total)
		if err != nil {
			return err
		}
		progress(0, total)
		defer watchSize(to, total, progress)()
	}
	_, err = conn.ExecContext(ctx, `VACUUM INTO $1`, to)
	return err
}

// sizeInterval is how often the size of a copy is reported.
const sizeInterval = 100 * time.Millisecond

// watchSize reports the size of a growing file until the function that it returns is
// called.
func watchSize(file string, total int64, report func(done, total int64)) (stop func()) {
	ended, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(sizeInterval)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
			}
			if info, err := os.Stat(file); err == nil {
				report(min(info.Size(), total), total)
			}
		}
	}()
	return func() {
		close(ended)
		<-stopped
	}
}
