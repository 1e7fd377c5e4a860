package database

import (
	"bytes"
	"database/sql"
	"database/sql/driver"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// openTemporary opens a database on a new file.
func openTemporary(t *testing.T) *DB {
	t.Helper()
	return openPath(t, filepath.Join(t.TempDir(), "fiscalhub.db"))
}

func openPath(t *testing.T, path string) *DB {
	t.Helper()
	s, err := Open(t.Context(), "sqlite:"+path, testMigrations(), Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestEveryConnectionHasItsSettings(t *testing.T) {
	t.Parallel()
	s := openTemporary(t)
	pool, ok := s.engine.read.(*prepared).from.(*sql.DB)
	if !ok {
		t.Fatal("the connections that read are not a pool")
	}
	want := map[string]string{
		"busy_timeout": "5000", "journal_mode": "wal", "synchronous": "2", "foreign_keys": "1",
		"wal_autocheckpoint": "0", "cache_size": "-16384",
	}
	check := func(who string, q Querier, queryOnly string) {
		t.Helper()
		want["query_only"] = queryOnly
		for name, value := range want {
			var got string
			if err := q.QueryRowContext(t.Context(), `PRAGMA `+name).Scan(&got); err != nil || got != value {
				t.Errorf("%s has %s = %s, %v; want %s", who, name, got, err, value)
			}
		}
	}
	for range pool.Stats().MaxOpenConnections {
		conn, err := pool.Conn(t.Context()) // not returned to the pool, so that the next one is another connection
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		check("a reader", conn, "1")
	}
	err := s.engine.update(t.Context(), func(q Querier) error {
		check("the writer", q, "0")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestASettingThatSQLiteDoesNotTakeIsRefused(t *testing.T) {
	t.Parallel()
	s := openTemporary(t)
	conn, err := s.engine.read.(*prepared).from.(*sql.DB).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	err = conn.Raw(func(c any) error {
		return setPragma(t.Context(), c.(driver.Conn), sqlitePragma{"synchronous", "OFF", "2"})
	})
	if err == nil {
		t.Error("synchronous = OFF was accepted as FULL")
	}
}

// While a connection is open, the write-ahead log is a second file, and a copy of the
// database file alone would miss its rows.
func TestACloseLeavesOneFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "fiscalhub.db")
	s, err := Open(t.Context(), "sqlite:"+path, testMigrations(), Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := addItem(t.Context(), s, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := countItems(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Dir(path) + "/*")
	if err != nil || len(left) != 1 {
		t.Errorf("the folder holds %v, %v; want the database alone", left, err)
	}
}

func TestAReaderCannotWrite(t *testing.T) {
	t.Parallel()
	s := openTemporary(t)
	if _, err := s.read.ExecContext(t.Context(), `DELETE FROM items WHERE id = $1`, "x"); err == nil {
		t.Error("a reader wrote")
	}
}

func TestUnsafeSQLiteVersionsAreRefused(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{
		"3.51.3": true, "3.51.4": true, "3.53.0": true, "3.52.1": true, "4.0.0": true, "3.51.10": true, "3.100.0": true,
		"3.51.2": false, "3.50.9": false, "3.52.0": false, "2.99.99": false, "3.9.9": false, "": false, "x": false, "3.x.9": false,
	}
	for version, want := range tests {
		if got := sqliteVersionUsable(version); got != want {
			t.Errorf("%q is usable: %v, want %v", version, got, want)
		}
	}
}

func TestAPathMayHoldAnyCharacter(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a b", "q?mode=memory", "h#x", "p%20c%", "n&_pragma=foreign_keys(0)", "ñandú", "a+b;c"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "dir "+name)
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, strings.ReplaceAll(name, "?", "")+".db") // Open refuses parameters after the name
			if err := addItem(t.Context(), openPath(t, path), 0); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(path); err != nil {
				t.Error(err)
			}
			all, err := countItems(t.Context(), openPath(t, path))
			if err != nil || all != 1 {
				t.Errorf("opened again it holds %v, %v", all, err)
			}
		})
	}
}

// A limit on the pages of the file simulates a full disk: SQLite returns the same code for
// both.
func TestAFullDiskIsUnavailableUntilThereIsSpace(t *testing.T) {
	t.Parallel()
	s := openTemporary(t)
	limit := func(pages string) {
		t.Helper()
		err := s.engine.update(t.Context(), func(q Querier) error {
			_, err := q.ExecContext(t.Context(), `PRAGMA max_page_count = `+pages)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := addItem(t.Context(), s, 0); err != nil {
		t.Fatal(err)
	}
	limit("1") // SQLite then allows no more pages than the file has
	for range 3 {
		if err := addItem(t.Context(), s, 1<<20); !errors.Is(err, ErrUnavailable) {
			t.Errorf("a full disk: %v, want ErrUnavailable", err)
		}
	}
	if all, err := countItems(t.Context(), s); err != nil || all != 1 {
		t.Errorf("reads on a full disk: %d items, %v", all, err)
	}
	select {
	case <-s.Broken():
		t.Error("a full disk must not stop the service")
	default:
	}
	limit("100000")
	if err := addItem(t.Context(), s, 1<<20); err != nil {
		t.Errorf("when there is space again: %v", err)
	}
}

// Open refuses a file whose header or schema version is damaged. The first transaction
// that reads a damaged table fails, and closes Broken.
func TestADamagedFileIsRefused(t *testing.T) {
	t.Parallel()
	const page = 4096
	damaged := func(t *testing.T, table string) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), "fiscalhub.db")
		s, err := Open(t.Context(), "sqlite:"+path, testMigrations(), Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := addItem(t.Context(), s, 0); err != nil {
			t.Fatal(err)
		}
		root := int64(1)
		if table != "" {
			err := s.read.QueryRowContext(t.Context(), `SELECT rootpage FROM sqlite_schema WHERE name = $1`, table).Scan(&root)
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil { // writes the log into the file
			t.Fatal(err)
		}
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteAt(bytes.Repeat([]byte{0xa5}, page), (root-1)*page); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, table := range map[string]string{"in its header": "", "in its version": "sqlite_autoindex_schema_versions_1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := Open(t.Context(), "sqlite:"+damaged(t, table), testMigrations(), Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
			if err == nil {
				t.Error("it opened", s.Close())
			}
		})
	}
	t.Run("in a table", func(t *testing.T) {
		t.Parallel()
		s := openPath(t, damaged(t, "sqlite_autoindex_items_1"))
		if all, err := countItems(t.Context(), s); err == nil {
			t.Errorf("it reads %v", all)
		}
		if err := addItem(t.Context(), s, 0); err == nil {
			t.Error("it writes")
		}
		select {
		case <-s.Broken():
		default:
			t.Error("Broken is not closed")
		}
	})
}

func TestBrokenIsClosedAfterAStorageFailure(t *testing.T) {
	t.Parallel()
	errDisk := errors.New("disk")
	s := openTemporary(t)
	s.dialect.broken = func(err error) bool { return errors.Is(err, errDisk) }
	for range 2 { // the second failure must not close the channel again
		err := s.Update(t.Context(), func(Querier) error { return errDisk })
		if !errors.Is(err, ErrUnavailable) {
			t.Errorf("got %v, want ErrUnavailable", err)
		}
		select {
		case <-s.Broken():
		default:
			t.Error("Broken is not closed")
		}
	}
}

func TestParametersWithoutNames(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		`INSERT INTO t VALUES ($1, 'x', $2), ($3, 0, $4)`: `INSERT INTO t VALUES (?, 'x', ?), (?, 0, ?)`,
		`UPDATE t SET a = $2 WHERE b = $1`:                `UPDATE t SET a = $2 WHERE b = $1`,
		`SELECT a FROM t WHERE b = $1 OR c = $1`:          `SELECT a FROM t WHERE b = $1 OR c = $1`,
		`SELECT a FROM t WHERE b = $1 AND c = $3`:         `SELECT a FROM t WHERE b = $1 AND c = $3`,
		`SELECT a FROM t`:                                 `SELECT a FROM t`,
	} {
		if got := unnamed(query); got != want {
			t.Errorf("%s becomes %s, want %s", query, got, want)
		}
	}
}
