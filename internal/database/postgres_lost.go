package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// lostAttempts limits how often a read or a transaction runs whose connection dies each
// time.
const lostAttempts = 8

// postgresLost reports whether a failure means that a connection has died, while the server
// may accept a new one. A server that does not answer in time is not meant: a repetition
// would wait for it again.
func postgresLost(err error) bool {
	var connect *pgconn.ConnectError
	var network net.Error
	switch code := postgresCode(err); {
	case err == nil, errors.As(err, &connect), isContextError(err):
		return false
	case code != "":
		return code == "57P01" || code == "57P02" || code == "57P05" || code[:2] == "08" // the server ended it, or lost it
	case errors.As(err, &network) && network.Timeout():
		return false
	}
	for _, dead := range []error{driver.ErrBadConn, sql.ErrConnDone, io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, dead) {
			return true
		}
	}
	return pgconn.SafeToRetry(err)
}

// lostConnections counts the connections of a pool that have died. When one has, others
// probably have too. So the pool checks each of them once before it uses it again.
type lostConnections struct{ count atomic.Int64 }

// again reports whether what failed with err must run again, because its connection has
// died. attempt counts from 1.
func (l *lostConnections) again(err error, attempt int) bool {
	if !postgresLost(err) {
		return false
	}
	l.count.Add(1)
	return attempt < lostAttempts
}

// check is the check of a connection that was in the pool.
func (l *lostConnections) check(ctx context.Context, conn *pgx.Conn) error {
	data, count := conn.PgConn().CustomData(), l.count.Load()
	if checked, ok := data["lost"].(int64); ok && checked == count || !ok && count == 0 {
		return nil
	}
	if err := conn.PgConn().Ping(ctx); err != nil {
		return driver.ErrBadConn // the pool takes another one
	}
	data["lost"] = count
	return nil
}

// resetSession prepares a connection of the pool for its next use.
func (l *lostConnections) resetSession() stdlib.OptionOpenDB {
	return stdlib.OptionResetSession(func(ctx context.Context, conn *pgx.Conn) error {
		if err := l.check(ctx, conn); err != nil {
			return err
		}
		return renewPlans(ctx, conn)
	})
}

// wholeConnector opens connections that read the whole result of a query before they return
// its first row. So a connection that dies between two rows fails the query, which can be
// repeated, and no caller has seen a part of the result. Every query of the service has a
// limit or few rows, and its caller keeps all of them.
type wholeConnector struct{ driver.Connector }

func (c wholeConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	opened, ok := conn.(*stdlib.Conn)
	if !ok {
		return nil, errors.Join(errors.New("database: the driver is not pgx"), conn.Close())
	}
	return wholeConn{opened}, nil
}

type wholeConn struct{ *stdlib.Conn }

func (c wholeConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.Conn.QueryContext(ctx, query, args)
	if err != nil {
		return nil, err
	}
	whole := &wholeRows{columns: rows.Columns()}
	for {
		row := make([]driver.Value, len(whole.columns))
		switch err := rows.Next(row); {
		case errors.Is(err, io.EOF):
			return whole, rows.Close() // which fails when the connection has died
		case err != nil:
			return nil, errors.Join(err, rows.Close())
		}
		whole.rows = append(whole.rows, row)
	}
}

// wholeRows are all rows of a result.
type wholeRows struct {
	columns []string
	rows    [][]driver.Value
}

func (r *wholeRows) Columns() []string { return r.columns }

func (r *wholeRows) Close() error { return nil }

func (r *wholeRows) Next(dest []driver.Value) error {
	if len(r.rows) == 0 {
		return io.EOF
	}
	copy(dest, r.rows[0])
	r.rows = r.rows[1:]
	return nil
}

// readsAgain is a pool for statements that read. It repeats a statement whose connection has
// died.
type readsAgain struct {
	*sql.DB
	lost *lostConnections
}

func (r readsAgain) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	for attempt := 1; ; attempt++ {
		rows, err := r.DB.QueryContext(ctx, query, args...)
		if err == nil || !r.lost.again(err, attempt) {
			return rows, err
		}
	}
}

func (r readsAgain) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	for attempt := 1; ; attempt++ {
		row := r.DB.QueryRowContext(ctx, query, args...)
		if err := row.Err(); err == nil || !r.lost.again(err, attempt) {
			return row
		}
	}
}
