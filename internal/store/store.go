// Package store owns every table and every statement of the service, on SQLite
// and on PostgreSQL. It is the only package that knows SQL.
//
// SQLite is embedded and serves one node; concurrent transactions share a
// commit, because the fsync is the cost. PostgreSQL serves several nodes.
// Correctness rests on unique constraints, row locks and leases, which both
// engines keep, and never on the isolation level.
package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Options are what a store needs besides its address.
type Options struct {
	Now func() time.Time // the clock of the service
	Log *slog.Logger
}

// Store is an open database. Its reads see what is committed; all writing goes
// through Update.
type Store struct {
	reader
	e      *engine
	now    func() time.Time
	log    *slog.Logger
	broken chan struct{}
	breaks sync.Once
}

// reader holds the reads. They work alike outside and inside a transaction.
type reader struct {
	q querier
	d *dialect
}

// Tx is a transaction: all of it is committed, or nothing.
type Tx struct {
	reader
}

// Open connects to a database and brings its tables up to date. The address is
// sqlite:PATH or postgres://….
func Open(ctx context.Context, address string, opt Options) (*Store, error) {
	d, location, err := parseAddress(address)
	if err != nil {
		return nil, err
	}
	e, err := d.open(ctx, location)
	if err != nil {
		return nil, d.wrap("open "+d.name+" database", err)
	}
	s := &Store{
		reader: reader{q: e.read, d: d},
		e:      e, now: opt.Now, log: opt.Log, broken: make(chan struct{}),
	}
	if err := s.migrate(ctx); err != nil {
		return nil, errors.Join(err, e.close())
	}
	return s, nil
}

// parseAddress finds the engine by the scheme. A SQLite path is cut off, not
// parsed: a path may hold any character.
func parseAddress(address string) (*dialect, string, error) {
	if path, ok := strings.CutPrefix(address, "sqlite:"); ok && path != "" {
		return sqliteDialect(), path, nil
	}
	if strings.HasPrefix(address, "postgres://") || strings.HasPrefix(address, "postgresql://") {
		return postgresDialect(), address, nil
	}
	return nil, "", errors.New("store: a database address is sqlite:PATH or postgres://USER:PASSWORD@HOST/NAME")
}

// Update runs fn in a transaction and returns once what it wrote is durable.
// fn holds statements and nothing else; it may run more than once, and when it
// returns an error nothing of it remains. A context that ends before the
// transaction starts ends the call; afterwards the transaction is finished
// whatever the caller does.
func (s *Store) Update(ctx context.Context, fn func(*Tx) error) error {
	return s.judge(s.e.update(ctx, func(q querier) error {
		return fn(&Tx{reader{q: attached{q}, d: s.d}})
	}))
}

// batch is Update for statements whose results only decide whether to commit.
func (s *Store) batch(ctx context.Context, statements []statement, judge func(rows []int64) error) error {
	return s.judge(s.e.batch(ctx, statements, judge))
}

// judge tells the service to stop when its storage can no longer be trusted.
func (s *Store) judge(err error) error {
	if err == nil || !s.d.broken(err) {
		return err
	}
	s.breaks.Do(func() {
		s.log.Error("storage failed; the service must stop", "error", err.Error())
		close(s.broken)
	})
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// Broken is closed when the storage failed in a way after which nothing may be
// acknowledged any more. The process must end: repeating a failed fsync can
// report success for data that is gone.
func (s *Store) Broken() <-chan struct{} { return s.broken }

// Shared tells whether other nodes may be using the same database.
func (s *Store) Shared() bool { return s.d.shared }

// Engine names the engine: sqlite or postgres.
func (s *Store) Engine() string { return s.d.name }

// Close waits for transactions under way and closes the database.
func (s *Store) Close() error {
	s.d.closed.Store(true)
	return s.e.close()
}

// NewID makes a key: a UUID that sorts by the time it was made.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }
