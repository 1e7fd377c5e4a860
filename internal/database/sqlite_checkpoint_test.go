package database

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"modernc.org/sqlite"
)

// openCheckpointed opens a file with a writer and checkpoints after few pages.
func openCheckpointed(t *testing.T, limits checkpointLimits) (*sqliteWriter, *sql.DB) {
	t.Helper()
	base, err := sqlite.NewConnector("file:" + filepath.Join(t.TempDir(), "a.db"))
	if err != nil {
		t.Fatal(err)
	}
	open := func() *sql.DB { return sql.OpenDB(sqliteConnector{base, sqlitePragmas(false)}) }
	writeDB, other := open(), open()
	conn, err := writeDB.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := newSQLiteWriter(conn, time.Minute, newStorageFailure(func(error) {}))
	c, err := startCheckpoints(t.Context(), open(), w, limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.close()
		if err := errors.Join(c.close(), other.Close(), conn.Close(), writeDB.Close()); err != nil {
			t.Error(err)
		}
	})
	if err := w.update(t.Context(), func(q Querier) error {
		_, err := q.ExecContext(t.Context(), `CREATE TABLE a (b BLOB)`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return w, other
}

// insertUntil commits rows of some pages until a condition holds.
func insertUntil(t *testing.T, w *sqliteWriter, holds func() bool) {
	t.Helper()
	end := time.Now().Add(2 * time.Minute)
	for !holds() {
		if time.Now().After(end) {
			t.Fatal("the log does not become as expected")
		}
		if err := w.update(t.Context(), func(q Querier) error {
			_, err := q.ExecContext(context.WithoutCancel(t.Context()), `INSERT INTO a (b) VALUES (randomblob(20000))`)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
}

func logPages(t *testing.T, db *sql.DB) (pages, copied int) {
	t.Helper()
	pages, copied, err := checkpoint(t.Context(), db, "NOOP")
	if err != nil {
		t.Fatal(err)
	}
	return pages, copied
}

// Commits go on while pages are copied, and the log starts again before it grows without
// a limit.
func TestTheLogIsCopiedAndStartsAgain(t *testing.T) {
	t.Parallel()
	w, db := openCheckpointed(t, checkpointLimits{copyAfter: 20, resetAfter: 200, every: time.Millisecond})
	for range 3 {
		insertUntil(t, w, func() bool { pages, copied := logPages(t, db); return pages >= 100 && copied > 0 })
		insertUntil(t, w, func() bool { pages, _ := logPages(t, db); return pages < 100 })
	}
	var damage string
	if err := db.QueryRowContext(t.Context(), `PRAGMA integrity_check`).Scan(&damage); err != nil || damage != "ok" {
		t.Errorf("the database is damaged: %s, %v", damage, err)
	}
}

// A reader keeps the log from starting again, but neither commits nor checkpoints wait
// for it.
func TestCheckpointsDoNotWaitForReaders(t *testing.T) {
	t.Parallel()
	w, db := openCheckpointed(t, checkpointLimits{copyAfter: 20, resetAfter: 100, every: time.Millisecond})
	tx, err := db.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	var rows int
	if err := tx.QueryRowContext(t.Context(), `SELECT count(*) FROM a`).Scan(&rows); err != nil {
		t.Fatal(err)
	}
	insertUntil(t, w, func() bool { pages, _ := logPages(t, db); return pages > 400 })
	var later int
	if err := tx.QueryRowContext(t.Context(), `SELECT count(*) FROM a`).Scan(&later); err != nil || later != rows {
		t.Errorf("the reader sees %d rows and then %d, %v", rows, later, err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	insertUntil(t, w, func() bool { pages, _ := logPages(t, db); return pages < 100 })
}
