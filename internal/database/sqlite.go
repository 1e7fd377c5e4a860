package database

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

func sqliteDialect() *Dialect {
	return &Dialect{
		Name:         "sqlite",
		open:         openSQLite,
		openReadOnly: openSQLiteReadOnly,
		protect:      protectSQLite,
		timeline:     func(context.Context, Querier) (string, error) { return "", nil },
		replication:  func(context.Context, Querier) (Replication, error) { return Replication{Known: true}, nil },
		session:      func(context.Context, Querier) (Session, error) { return Session{Local: true}, nil },
		unavailable: func(err error) bool {
			switch sqliteCode(err) {
			case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_INTERRUPT,
				sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR:
				return true
			}
			return errors.Is(err, sql.ErrConnDone)
		},
		broken: func(err error) bool {
			switch sqliteCode(err) {
			case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
				return true
			case sqlite3.SQLITE_IOERR:
				return !temporaryIOError(err)
			}
			return false
		},
		denied: func(error) bool { return false }, // SQLite has no roles
	}
}

// sqliteCode returns the primary result code of an error of SQLite, and 0 for any other
// error.
func sqliteCode(err error) int { return sqliteExtendedCode(err) & 0xff }

func sqliteExtendedCode(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

// temporaryIOError reports whether an I/O error of SQLite concerns memory, a lock, or a
// temporary file of the database. The content of the database is then not in doubt.
func temporaryIOError(err error) bool {
	switch sqliteExtendedCode(err) {
	case sqlite3.SQLITE_IOERR_NOMEM, sqlite3.SQLITE_IOERR_BLOCKED, sqlite3.SQLITE_IOERR_ACCESS,
		sqlite3.SQLITE_IOERR_LOCK, sqlite3.SQLITE_IOERR_UNLOCK, sqlite3.SQLITE_IOERR_RDLOCK, sqlite3.SQLITE_IOERR_CHECKRESERVEDLOCK,
		sqlite3.SQLITE_IOERR_SHMOPEN, sqlite3.SQLITE_IOERR_SHMLOCK, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMMAP,
		sqlite3.SQLITE_IOERR_GETTEMPPATH, sqlite3.SQLITE_IOERR_CONVPATH:
		return true
	}
	return false
}

// brokenCommit reports whether a failed COMMIT leaves in doubt what the disk holds. It
// does, unless SQLite refused the commit before it wrote: the file was locked, the disk
// was full, memory was short, or a constraint did not hold.
func brokenCommit(err error) bool {
	switch sqliteCode(err) {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_NOMEM,
		sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY:
		return false
	}
	return !temporaryIOError(err)
}

// sqlitePragma is a setting that durability or correctness depends on, and the value
// that SQLite must report after it was set.
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
		{"wal_autocheckpoint", "0", "0"}, // sqliteCheckpointer copies the pages
		{"cache_size", "-16384", "-16384"},
		{"query_only", queryOnly, queryOnly},
	}
}

// sqliteConnector sets and checks the pragmas of every new connection.
type sqliteConnector struct {
	driver.Connector
	pragmas []sqlitePragma
}

// Connect opens one connection.
func (c sqliteConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range c.pragmas {
		if err := retryBusy(ctx, func() error { return setPragma(ctx, conn, p) }); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return conn, nil
}

// retryBusy repeats do while the database is locked, for at most sqliteWait. SQLite
// ignores busy_timeout when two connections turn on the write-ahead log of a new file at
// the same time.
func retryBusy(ctx context.Context, do func() error) error {
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
		return fmt.Errorf("sqlite has %s = %s, but the service needs %s", p.name, got, p.want)
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
	defer func() { _ = rows.Close() }() // the rows were read, so an error of Close does not matter
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

// openSQLite opens one connection that writes and a pool of connections that read.
func openSQLite(ctx context.Context, location string, failure *storageFailure) (*engine, error) {
	location, err := filepath.Abs(location)
	if err != nil {
		return nil, err
	}
	base, err := sqlite.NewConnector("file:" + (&url.URL{Path: location}).EscapedPath())
	if err != nil {
		return nil, err
	}
	return openSQLiteConnector(ctx, base, failure)
}

func openSQLiteConnector(ctx context.Context, base driver.Connector, failure *storageFailure) (*engine, error) {
	writeDB := sql.OpenDB(sqliteConnector{base, sqlitePragmas(false)})
	writeDB.SetMaxOpenConns(1)
	conn, err := writeDB.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, writeDB.Close())
	}
	if err := assertSQLiteVersion(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close(), writeDB.Close())
	}
	readDB := sql.OpenDB(sqliteConnector{base, sqlitePragmas(true)})
	readers := max(4, 2*runtime.GOMAXPROCS(0))
	readDB.SetMaxOpenConns(readers)
	readDB.SetMaxIdleConns(readers)

	writer := &prepared{from: conn}
	w := newSQLiteWriter(writer, sqliteWait, failure)
	checkpoints, err := startCheckpoints(ctx, sql.OpenDB(sqliteConnector{base, sqlitePragmas(false)}), w, defaultCheckpointLimits())
	if err != nil {
		w.close()
		return nil, errors.Join(err, conn.Close(), writeDB.Close(), readDB.Close())
	}
	return &engine{
		read:      &prepared{from: readDB},
		update:    w.update,
		batch:     w.batch,
		insert:    w.batch, // all transactions share commits
		saved:     func() int64 { return 0 },
		migration: w.migration,
		commits:   w.commits.Load,
		close: func() error {
			w.close()
			return errors.Join(checkpoints.close(), readDB.Close(), writer.close(), conn.Close(), writeDB.Close())
		},
	}, nil
}

// sqliteWait is how long a transaction waits before it can start.
const sqliteWait = 5 * time.Second

// assertSQLiteVersion returns an error for the versions of SQLite in which a reset of the
// write-ahead log can corrupt the database, and for 3.52.0, which was withdrawn.
func assertSQLiteVersion(ctx context.Context, q *sql.Conn) error {
	var version string
	if err := q.QueryRowContext(ctx, `SELECT sqlite_version()`).Scan(&version); err != nil {
		return err
	}
	if !sqliteVersionUsable(version) {
		return fmt.Errorf("sqlite %s can corrupt the database: use 3.51.3 or newer, but not 3.52.0", version)
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
	Querier
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// prepared keeps every statement prepared, so that SQLite compiles each text once. Their
// number is limited by the texts in the program.
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
	s, err := p.from.PrepareContext(context.WithoutCancel(ctx), unnamed(query))
	if err != nil {
		return nil, err
	}
	if p.stmts == nil {
		p.stmts = make(map[string]*sql.Stmt)
	}
	p.stmts[query] = s
	return s, nil
}

// unnamed returns a statement with parameters without names, if it names $1, $2 and so on
// once each and in this order. The driver asks SQLite for the name of each parameter, and
// SQLite searches the list of all names for it: with 832 parameters that takes longer than
// the statement.
func unnamed(query string) string {
	n := 0
	ordered := true
	text := parameter.ReplaceAllStringFunc(query, func(name string) string {
		n++
		ordered = ordered && name == "$"+strconv.Itoa(n)
		return "?"
	})
	if !ordered {
		return query
	}
	return text
}

// close closes the statements. The statements of a single connection do not close with
// it, and SQLite keeps the file and its log open until the last one is closed.
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

// ExecContext runs a statement. It does not prepare a statement without arguments, which
// may be a script of several statements.
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

// QueryRowContext runs a query of one row. When it cannot prepare the statement, it
// passes the query to the connection, whose Row returns the error.
func (p *prepared) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	s, err := p.stmt(ctx, query)
	if err != nil {
		return p.from.QueryRowContext(ctx, query, args...)
	}
	return s.QueryRowContext(ctx, args...)
}
