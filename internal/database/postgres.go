package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

func postgresDialect() *Dialect {
	return &Dialect{
		Name:         "postgres",
		SkipLocked:   "FOR UPDATE SKIP LOCKED",
		shared:       true,
		open:         openPostgres,
		openReadOnly: openPostgresReadOnly,
		timeline:     postgresTimeline,
		TimelineText: timelineText,
		replication:  postgresReplication,
		session:      postgresSession,
		unavailable:  postgresUnavailable,
		broken:       postgresBroken,
		denied:       func(err error) bool { return postgresCode(err) == "42501" },
	}
}

// postgresBroken reports whether the server reports a failure of its disk (58030) or
// damaged tables or indexes (XX001, XX002): a unique index that is damaged no longer
// keeps a number from being issued twice. After a failed fsync the server itself
// restarts, and recovers what it had committed.
func postgresBroken(err error) bool {
	switch postgresCode(err) {
	case "58030", "XX001", "XX002":
		return true
	}
	return false
}

func postgresCode(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// postgresUnavailable reports whether a failure is temporary. These are the error
// classes connection (08), resources (53) and operator intervention (57), the errors
// lock not available (55P03), idle transaction (25P03) and read-only (25006), every
// failure of the network, and the end of a transaction that exceeded updateTime.
func postgresUnavailable(err error) bool {
	var connect *pgconn.ConnectError
	if errors.As(err, &connect) {
		return true // no server answers now, whatever the reason
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
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, sql.ErrTxDone) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// postgresCollision reports whether the server rolled back a transaction because of
// another one (serialization failure, deadlock). The transaction can run again at once.
func postgresCollision(err error) bool {
	code := postgresCode(err)
	return code == "40001" || code == "40P01"
}

// postgresConns is how many connections a node uses. More bring no gain, because the
// server already groups the commits of this number.
const postgresConns = 16

func openPostgres(ctx context.Context, location string, _ *storageFailure) (*engine, error) {
	config, err := pgx.ParseConfig(location)
	if err != nil {
		// The message of the parser may contain the password.
		return nil, errors.New("the postgres address is not valid: it must be postgres://USER:PASSWORD@HOST:PORT/NAME")
	}
	return openPostgresConfig(ctx, config)
}

func openPostgresConfig(ctx context.Context, config *pgx.ConnConfig) (*engine, error) {
	for name, value := range map[string]string{
		"application_name":                    "fiscalhub",
		"lock_timeout":                        "5s",
		"statement_timeout":                   "10s",
		"idle_in_transaction_session_timeout": "15s",
		"default_transaction_isolation":       "read committed",
		"timezone":                            "UTC",
		// Every statement has an index. The server plans each statement once until
		// renewPlans, and never chooses to scan a table because it is still small.
		"plan_cache_mode": "force_generic_plan",
		"enable_seqscan":  "off",
		// A scan that cannot be avoided counts as very expensive, so the server would compile
		// its statement for tens of milliseconds. Our statements take less than that.
		"jit": "off",
	} {
		config.RuntimeParams[name] = value
	}
	config.ConnectTimeout = connectionWait
	limited := config.Copy()
	limitConnection(limited)
	p := &postgres{config: config}
	db := sql.OpenDB(wholeConnector{stdlib.GetConnector(*limited, stdlib.OptionAfterConnect(chooseCompression), p.lost.resetSession())})
	db.SetMaxOpenConns(postgresConns)
	db.SetMaxIdleConns(postgresConns)
	if err := assertPostgresSettings(ctx, db); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	p.db = db
	shared := newSharedBatches(p.batch)
	return &engine{
		read:      readsAgain{db, &p.lost},
		update:    p.update,
		batch:     p.batch,
		insert:    shared.batch,
		saved:     shared.saved.Load,
		migration: p.migration,
		clock:     p.clock,
		commits:   p.commits.Load,
		close:     p.close,
	}, nil
}

// chooseCompression makes the server compress large values with LZ4 on this connection.
// Its own method takes about ten times the processor time: 40 ms for 1 MiB. It changes
// nothing on a server without LZ4. Values of both methods can always be read.
func chooseCompression(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `
		SELECT set_config(name, 'lz4', false) FROM pg_settings
		WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)`)
	return err
}

// renewPlans makes the server plan the statements of a connection again when it has been
// used 16, 32, 64 … times. In a small table every index looks equally good to the server.
// It would keep such a plan until it collects statistics, a minute later or more, and each
// execution would read all rows that the table has by then.
func renewPlans(ctx context.Context, conn *pgx.Conn) error {
	data := conn.PgConn().CustomData()
	uses, ok := data["uses"].(*uint)
	if !ok {
		uses = new(uint)
		data["uses"] = uses
	}
	if *uses++; *uses < 16 || bits.OnesCount(*uses) != 1 {
		return nil
	}
	return conn.PgConn().Exec(ctx, `DISCARD PLANS`).Close()
}

// assertPostgresSettings returns an error when the settings of the server could lose
// committed rows.
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
			return fmt.Errorf("the server has %s = %s, which can lose acknowledged invoices: set it to %s", s.name, got, s.want)
		}
	}
	return nil
}

// postgres runs transactions on a pool of connections.
type postgres struct {
	db     *sql.DB
	config *pgx.ConnConfig
	busy   sync.RWMutex // transactions hold it for reading, so that close waits for them
	lost   lostConnections

	commits atomic.Int64
}

// clock reads the clock of the server on one connection, so that a sample does not
// include the wait for a connection.
func (p *postgres) clock(ctx context.Context, fn func(read func(context.Context) (time.Time, error)) error) error {
	conn, err := p.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // the driver has already closed a broken connection
	return fn(func(ctx context.Context) (time.Time, error) {
		var at int64
		err := conn.QueryRowContext(ctx, `SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint`).Scan(&at)
		return time.UnixMicro(at).UTC(), err
	})
}

// close waits for the transactions that run, and closes the connections. An error of that
// means that a connection was closed before: a caller had stopped waiting for its query.
// Nothing is written any more, so nothing is lost with it.
func (p *postgres) close() error {
	p.busy.Lock()
	defer p.busy.Unlock()
	_ = p.db.Close()
	return nil
}

// updateAttempts limits how often a transaction runs that collides with others.
const updateAttempts = 4

// updateTime limits a whole transaction; it is longer than every time limit of the
// server. connectionWait limits the wait for a connection before that.
const (
	updateTime     = 12 * time.Second
	connectionWait = 5 * time.Second
)

// update runs fn in a transaction. The caller can cancel it only before it begins.
func (p *postgres) update(ctx context.Context, fn func(Querier) error) error {
	return p.retry(ctx, func(ctx context.Context, conn *sql.Conn) error { return runTransaction(ctx, conn, fn) })
}

func runTransaction(ctx context.Context, conn *sql.Conn, fn func(Querier) error) error {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("database: begin: %w: %w", ErrUnavailable, err)
	}
	defer tx.Rollback() // for a panic of fn; otherwise the transaction has ended
	if err := fn(tx); err != nil {
		if undo := tx.Rollback(); undo != nil && !errors.Is(undo, sql.ErrTxDone) {
			return errors.Join(err, undo)
		}
		return err
	}
	if err := tx.Commit(); err != nil {
		return unknownCommit(err) // whatever the driver says: it may have been sent
	}
	return nil
}

// batch sends all statements in one round trip and the commit in a second one.
func (p *postgres) batch(ctx context.Context, statements []Statement, check func([]int64) error) error {
	return p.retry(ctx, func(ctx context.Context, conn *sql.Conn) error {
		return conn.Raw(func(driver any) error {
			c, ok := driver.(wholeConn)
			if !ok {
				return errors.New("database: the driver is not pgx")
			}
			return runBatch(ctx, c.Conn.Conn(), statements, check)
		})
	})
}

func runBatch(ctx context.Context, c *pgx.Conn, statements []Statement, check func([]int64) error) error {
	var batch pgx.Batch
	batch.Queue("begin")
	rows := make([]int64, len(statements))
	for i, s := range statements {
		batch.Queue(s.Text, s.Args...).Exec(func(tag pgconn.CommandTag) error {
			rows[i] = tag.RowsAffected()
			return nil
		})
	}
	err := c.SendBatch(ctx, &batch).Close()
	if err == nil {
		err = check(rows)
	}
	if err != nil {
		if _, undo := c.Exec(ctx, "rollback"); undo != nil && !c.IsClosed() {
			return errors.Join(err, undo, c.Close(ctx)) // the pool must not use a connection in an unknown state
		}
		return err
	}
	if _, err := c.Exec(ctx, "commit"); err != nil {
		return unknownCommit(err)
	}
	return nil
}

// retry runs a transaction on its own connection. It runs it again when it collides with
// another one, and when its connection has died before the commit was sent. The caller can
// cancel only the wait for the connection.
func (p *postgres) retry(ctx context.Context, transaction func(context.Context, *sql.Conn) error) error {
	p.busy.RLock()
	defer p.busy.RUnlock()
	for attempt := 1; ; attempt++ {
		err := p.once(ctx, transaction)
		if err == nil {
			p.commits.Add(1)
		}
		again := postgresCollision(err) && attempt < updateAttempts ||
			!errors.Is(err, ErrOutcomeUnknown) && p.lost.again(err, attempt)
		if !again {
			return err
		}
	}
}

func (p *postgres) once(ctx context.Context, transaction func(context.Context, *sql.Conn) error) (err error) {
	waiting, stop := context.WithTimeout(ctx, connectionWait)
	conn, err := p.db.Conn(waiting)
	stop()
	if err != nil {
		return fmt.Errorf("database: no connection: %w: %w", ErrUnavailable, err)
	}
	// The driver has already closed a broken connection.
	defer func() { _ = conn.Close() }()
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), updateTime)
	defer cancel()
	return transaction(bounded, conn)
}
