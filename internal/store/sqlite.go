package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

func sqliteDialect() *dialect {
	return &dialect{
		name: "sqlite",
		open: openSQLite,
		unavailable: func(err error) bool {
			switch sqliteCode(err) {
			case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_INTERRUPT,
				sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR:
				return true
			}
			return errors.Is(err, sql.ErrConnDone)
		},
		broken: func(err error) bool {
			code := sqliteCode(err)
			return code == sqlite3.SQLITE_IOERR || code == sqlite3.SQLITE_CORRUPT || code == sqlite3.SQLITE_NOTADB
		},
	}
}

// sqliteCode is the primary result code of an error, 0 when it is not SQLite's.
func sqliteCode(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

// sqlitePragma is a setting that durability or correctness rests on, and what
// it must read back as.
type sqlitePragma struct{ name, set, want string }

func sqlitePragmas(readOnly bool) []sqlitePragma {
	queryOnly := "0"
	if readOnly {
		queryOnly = "1"
	}
	return []sqlitePragma{
		{"busy_timeout", "5000", "5000"},
		{"journal_mode", "WAL", "wal"},
		{"synchronous", "FULL", "2"},
		{"foreign_keys", "ON", "1"},
		{"wal_autocheckpoint", "4000", "4000"},
		{"cache_size", "-16384", "-16384"},
		{"query_only", queryOnly, queryOnly},
	}
}

// sqliteConnector sets and reads back the pragmas on every new connection.
type sqliteConnector struct {
	driver.Connector
	readOnly bool
}

// Connect opens one connection.
func (c sqliteConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range sqlitePragmas(c.readOnly) {
		if err := patiently(ctx, func() error { return setPragma(ctx, conn, p) }); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return conn, nil
}

// patiently repeats what finds the database locked. Turning the write-ahead log
// on does not wait for others that do the same on a new file, although it was
// told how long to wait.
func patiently(ctx context.Context, do func() error) error {
	ctx, cancel := context.WithTimeout(ctx, sqliteWait)
	defer cancel()
	for {
		err := do()
		if sqliteCode(err) != sqlite3.SQLITE_BUSY {
			return err
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

func setPragma(ctx context.Context, conn driver.Conn, p sqlitePragma) error {
	if _, err := pragma(ctx, conn, p.name+" = "+p.set); err != nil {
		return err
	}
	got, err := pragma(ctx, conn, p.name)
	if err != nil {
		return err
	}
	if got != p.want {
		return fmt.Errorf("sqlite keeps %s at %s, and %s is needed", p.name, got, p.want)
	}
	return nil
}

func pragma(ctx context.Context, conn driver.Conn, text string) (string, error) {
	q, ok := conn.(driver.QueryerContext)
	if !ok {
		return "", errors.New("sqlite driver cannot query")
	}
	rows, err := q.QueryContext(ctx, "PRAGMA "+text, nil)
	if err != nil {
		return "", fmt.Errorf("pragma %s: %w", text, err)
	}
	defer func() { _ = rows.Close() }() // all rows are read
	values := make([]driver.Value, len(rows.Columns()))
	if len(values) == 0 {
		return "", nil
	}
	if err := rows.Next(values); errors.Is(err, io.EOF) {
		return "", nil
	} else if err != nil {
		return "", fmt.Errorf("pragma %s: %w", text, err)
	}
	return fmt.Sprint(values[0]), nil
}

// openSQLite opens a writer of one connection and a pool of readers.
func openSQLite(ctx context.Context, location string) (*engine, error) {
	location, err := filepath.Abs(location)
	if err != nil {
		return nil, err
	}
	base, err := sqlite.NewConnector("file:" + (&url.URL{Path: location}).EscapedPath())
	if err != nil {
		return nil, err
	}
	writeDB := sql.OpenDB(sqliteConnector{base, false})
	writeDB.SetMaxOpenConns(1)
	conn, err := writeDB.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, writeDB.Close())
	}
	if err := assertSQLiteVersion(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close(), writeDB.Close())
	}
	readDB := sql.OpenDB(sqliteConnector{base, true})
	readers := max(4, 2*runtime.GOMAXPROCS(0))
	readDB.SetMaxOpenConns(readers)
	readDB.SetMaxIdleConns(readers)

	writer := &prepared{from: conn}
	w := newSQLiteWriter(writer, sqliteWait)
	return &engine{
		read:   &prepared{from: readDB},
		update: w.update,
		batch:  w.batch,
		close: func() error {
			w.close()
			return errors.Join(readDB.Close(), writer.close(), conn.Close(), writeDB.Close())
		},
	}, nil
}

// sqliteWait is how long a transaction waits for its turn.
const sqliteWait = 5 * time.Second

// assertSQLiteVersion refuses the libraries in which resetting the write-ahead
// log could corrupt the database, and 3.52.0, which was withdrawn.
func assertSQLiteVersion(ctx context.Context, q *sql.Conn) error {
	var version string
	if err := q.QueryRowContext(ctx, `SELECT sqlite_version()`).Scan(&version); err != nil {
		return err
	}
	if !sqliteVersionUsable(version) {
		return fmt.Errorf("sqlite %s is not safe here: 3.51.3 or newer is needed, and not 3.52.0", version)
	}
	return nil
}

func sqliteVersionUsable(version string) bool {
	if version == "3.52.0" {
		return false
	}
	least := []int{3, 51, 3}
	for i, part := range strings.SplitN(version, ".", 4) {
		n, err := strconv.Atoi(part)
		if err != nil || i >= len(least) {
			return err == nil
		}
		if n != least[i] {
			return n > least[i]
		}
	}
	return true
}

// preparer is a pool or a connection that can prepare a statement.
type preparer interface {
	querier
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// prepared keeps every statement prepared: SQLite would compile its text anew
// each time. There are only as many texts as this package writes.
type prepared struct {
	from  preparer
	mu    sync.RWMutex
	stmts map[string]*sql.Stmt
}

func (p *prepared) stmt(ctx context.Context, query string) (*sql.Stmt, error) {
	p.mu.RLock()
	s := p.stmts[query]
	p.mu.RUnlock()
	if s != nil {
		return s, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.stmts[query]; s != nil {
		return s, nil
	}
	s, err := p.from.PrepareContext(context.WithoutCancel(ctx), query)
	if err != nil {
		return nil, err
	}
	if p.stmts == nil {
		p.stmts = make(map[string]*sql.Stmt)
	}
	p.stmts[query] = s
	return s, nil
}

// close ends the statements. Those of a single connection do not end with it,
// and while one is left SQLite keeps the file open and its log as it is.
func (p *prepared) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, s := range p.stmts {
		errs = append(errs, s.Close())
	}
	p.stmts = nil
	return errors.Join(errs...)
}

// ExecContext runs a statement; one without arguments may be a script and is
// not kept.
func (p *prepared) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if len(args) == 0 {
		return p.from.ExecContext(ctx, query)
	}
	s, err := p.stmt(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.ExecContext(ctx, args...)
}

// QueryContext runs a query.
func (p *prepared) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	s, err := p.stmt(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.QueryContext(ctx, args...)
}

// QueryRowContext runs a query of one row. A statement that cannot be prepared
// is left to the connection, whose Row carries the error.
func (p *prepared) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	s, err := p.stmt(ctx, query)
	if err != nil {
		return p.from.QueryRowContext(ctx, query, args...)
	}
	return s.QueryRowContext(ctx, args...)
}
