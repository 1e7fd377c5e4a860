package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// migrationLock is the advisory lock that migrations of this service take.
const migrationLock = `SELECT pg_advisory_xact_lock(7305130190131)`

func postgresDialect() *dialect {
	return &dialect{
		name:        "postgres",
		skipLocked:  "FOR UPDATE SKIP LOCKED",
		lock:        migrationLock,
		shared:      true,
		open:        openPostgres,
		unavailable: postgresUnavailable,
		broken:      func(error) bool { return false }, // the server looks after its own disk
	}
}

func postgresCode(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// postgresUnavailable knows the classes of faults that pass: connection (08),
// resources (53), operator intervention (57), lock not available (55P03),
// and everything that is no answer of the server at all.
func postgresUnavailable(err error) bool {
	var connect *pgconn.ConnectError
	if errors.As(err, &connect) {
		return true // whatever the reason, there is no server for us now
	}
	if code := postgresCode(err); code != "" {
		switch code[:2] {
		case "08", "53", "57":
			return true
		}
		return code == "55P03" || code == "25P03" || code == "25006" || postgresCollision(err)
	}
	var network net.Error
	return errors.As(err, &network) || pgconn.SafeToRetry(err) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// postgresCollision tells that the server undid a transaction because of
// another one (serialization failure, deadlock): it may be run again at once.
func postgresCollision(err error) bool {
	code := postgresCode(err)
	return code == "40001" || code == "40P01"
}

// postgresConns is how many connections a node uses: more gain nothing, since
// the server's own commits overlap well before that.
const postgresConns = 16

func openPostgres(ctx context.Context, location string) (*engine, error) {
	config, err := pgx.ParseConfig(location)
	if err != nil {
		// The parser's message may show the password.
		return nil, errors.New("the postgres address cannot be read; the form is postgres://USER:PASSWORD@HOST:PORT/NAME")
	}
	for name, value := range map[string]string{
		"application_name":                    "fiscalhub",
		"lock_timeout":                        "5s",
		"statement_timeout":                   "10s",
		"idle_in_transaction_session_timeout": "15s",
		"default_transaction_isolation":       "read committed",
		"timezone":                            "UTC",
		// Every statement has its index, whatever the values and however small
		// the tables still are: they are planned once, and never to scan.
		"plan_cache_mode": "force_generic_plan",
		"enable_seqscan":  "off",
	} {
		config.RuntimeParams[name] = value
	}
	config.ConnectTimeout = 5 * time.Second
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(postgresConns)
	db.SetMaxIdleConns(postgresConns)
	if err := assertPostgresSettings(ctx, db); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	p := &postgres{db: db}
	return &engine{
		read:   db,
		update: p.update,
		batch:  p.batch,
		close:  p.close,
	}, nil
}

// assertPostgresSettings refuses a server that could forget what it committed.
func assertPostgresSettings(ctx context.Context, db *sql.DB) error {
	for _, s := range []struct{ name, bad, want string }{
		{"fsync", "off", "on"},
		{"full_page_writes", "off", "on"},
		{"synchronous_commit", "off", "on, local, remote_write or remote_apply"},
	} {
		var got string
		if err := db.QueryRowContext(ctx, `SELECT current_setting($1)`, s.name).Scan(&got); err != nil {
			return err
		}
		if strings.EqualFold(got, s.bad) {
			return fmt.Errorf("the server has %s = %s: set it to %s, or acknowledged invoices could be lost", s.name, got, s.want)
		}
	}
	return nil
}

type postgres struct {
	db   *sql.DB
	busy sync.RWMutex // held for reading by transactions, so that close waits for them
}

func (p *postgres) close() error {
	p.busy.Lock()
	defer p.busy.Unlock()
	return p.db.Close()
}

// updateAttempts bounds how often a transaction that collided is run again.
const updateAttempts = 4

// updateTime bounds a whole transaction; it is above every server-side limit.
// connectionWait bounds the wait for a connection before it.
const (
	updateTime     = 12 * time.Second
	connectionWait = 5 * time.Second
)

// update runs fn in a transaction. Once it has begun the caller's cancellation
// no longer reaches it: half a registration helps nobody.
func (p *postgres) update(ctx context.Context, fn func(querier) error) error {
	return p.again(ctx, func(ctx context.Context, conn *sql.Conn) error {
		tx, err := conn.BeginTx(ctx, nil)
		if err != nil {
			return fmt.Errorf("store: begin: %w: %w", ErrUnavailable, err)
		}
		defer tx.Rollback() // of a function that panics; any other is over by then
		if err := fn(tx); err != nil {
			if undo := tx.Rollback(); undo != nil && !errors.Is(undo, sql.ErrTxDone) {
				return errors.Join(err, undo)
			}
			return err
		}
		if err := tx.Commit(); err != nil {
			return unknownCommit(err)
		}
		return nil
	})
}

// batch sends everything up to the commit in one exchange, and the commit in
// another: a transaction waits for the network twice, however many statements
// it has.
func (p *postgres) batch(ctx context.Context, statements []statement, judge func([]int64) error) error {
	return p.again(ctx, func(ctx context.Context, conn *sql.Conn) error {
		return conn.Raw(func(driver any) error {
			c, ok := driver.(*stdlib.Conn)
			if !ok {
				return errors.New("store: the driver is not pgx")
			}
			return runBatch(ctx, c.Conn(), statements, judge)
		})
	})
}

func runBatch(ctx context.Context, c *pgx.Conn, statements []statement, judge func([]int64) error) error {
	var batch pgx.Batch
	batch.Queue("begin")
	rows := make([]int64, len(statements))
	for i, s := range statements {
		batch.Queue(s.text, s.args...).Exec(func(tag pgconn.CommandTag) error {
			rows[i] = tag.RowsAffected()
			return nil
		})
	}
	err := c.SendBatch(ctx, &batch).Close()
	if err == nil {
		err = judge(rows)
	}
	if err != nil {
		if _, undo := c.Exec(ctx, "rollback"); undo != nil && !c.IsClosed() {
			return errors.Join(err, undo, c.Close(ctx)) // a connection in an unknown state serves nobody
		}
		return err
	}
	if _, err := c.Exec(ctx, "commit"); err != nil {
		return unknownCommit(err)
	}
	return nil
}

// again runs a transaction on a connection of its own, and runs it anew when
// the server has undone it because of another one. The caller may give up while
// it waits for a connection, and no longer afterwards.
func (p *postgres) again(ctx context.Context, transaction func(context.Context, *sql.Conn) error) error {
	p.busy.RLock()
	defer p.busy.RUnlock()
	for attempt := 1; ; attempt++ {
		err := p.once(ctx, transaction)
		if !postgresCollision(err) || attempt == updateAttempts {
			return err
		}
	}
}

func (p *postgres) once(ctx context.Context, transaction func(context.Context, *sql.Conn) error) (err error) {
	waiting, stop := context.WithTimeout(ctx, connectionWait)
	conn, err := p.db.Conn(waiting)
	stop()
	if err != nil {
		return fmt.Errorf("store: no connection: %w: %w", ErrUnavailable, err)
	}
	// A connection that was found to be broken has been closed.
	defer func() { _ = conn.Close() }()
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), updateTime)
	defer cancel()
	return transaction(bounded, conn)
}
