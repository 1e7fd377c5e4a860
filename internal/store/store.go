// Package store owns every table and every statement of the service. Package database
// runs them, on SQLite and on PostgreSQL.
//
// Correctness depends on unique constraints, row locks and leases, which both
// engines have. It never depends on the isolation level.
package store

import (
	"context"
	"embed"
	"io/fs"
	"time"

	"github.com/google/uuid"

	"github.com/fiscalhub/fiscalhub/internal/database"
)

//go:embed migrations
var migrations embed.FS

// Options are the options of the database.
type Options = database.Options

// Store has the tables of an open database. Its reads see committed rows. Update, Commit
// and the methods that use them write.
type Store struct {
	reader
	*database.DB
}

// reader has the methods that read. They are the same outside and inside a
// transaction.
type reader struct {
	q database.Querier
	d *dialect
}

// Tx is a transaction. The engine commits all of its writes, or none.
type Tx struct {
	reader
	now func() time.Time
}

// Open opens a database with the tables of this package, see database.Open.
func Open(ctx context.Context, address string, opt Options) (*Store, error) {
	tables, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	db, err := database.Open(ctx, address, tables, opt)
	if err != nil {
		return nil, err
	}
	return &Store{reader{db.Reader(), newDialect(db.Dialect())}, db}, nil
}

// Update runs fn in a transaction and returns when the writes are durable. fn must
// only run statements, because the engine may run it more than once. When fn
// returns an error, Update rolls everything back and returns that error.
//
// A context that ends before the transaction starts cancels the call. After the
// start the transaction runs to its end, even when the caller gives up.
func (s *Store) Update(ctx context.Context, fn func(*Tx) error) error {
	return s.DB.Update(ctx, func(q database.Querier) error { return fn(&Tx{reader{q, s.d}, s.Now}) })
}

// MaxClockSkew is how far the clock of a node may be from the database's clock. Beyond it
// the node is not ready, and signs and sends nothing.
const MaxClockSkew = 5 * time.Second

// UnknownTimeline is the result of Timeline when the role may not read it.
const UnknownTimeline = database.UnknownTimeline

// Timeline names the history of commits that the database continues, see
// database.DB.Timeline. On SQLite it is the DatabaseID.
func (s *Store) Timeline(ctx context.Context) (string, error) {
	name, err := s.DB.Timeline(ctx)
	if err == nil && name == "" {
		return s.DatabaseID(ctx)
	}
	return name, err
}

// DatabaseID returns the random name that the database has from its creation on. A restored
// copy has the same name.
func (r reader) DatabaseID(ctx context.Context) (string, error) {
	return one(r.rows(ctx, "read the name of the database", `SELECT id FROM database_identity`), only[string])
}

// NewID returns a new key: a UUID. Keys sort by the time of their creation.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }
