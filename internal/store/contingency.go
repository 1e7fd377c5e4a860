package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// Contingency is a time in which the authority could not be reached.
type Contingency struct {
	Environment fiscal.Environment
	StartedAt   time.Time
	EndedAt     time.Time // zero: it goes on
}

// Contingency reads the last one of an environment. ErrNotFound: there was none.
func (r reader) Contingency(ctx context.Context, env fiscal.Environment) (Contingency, error) {
	c := Contingency{Environment: env}
	var started int64
	var ended sql.NullInt64
	err := r.q.QueryRowContext(ctx, `
		SELECT started_at, ended_at FROM contingencies WHERE environment = $1 ORDER BY started_at DESC LIMIT 1`, env).Scan(&started, &ended)
	c.StartedAt = fromMicros(started)
	if ended.Valid {
		c.EndedAt = fromMicros(ended.Int64)
	}
	return c, r.d.wrap("read contingency", err)
}

// StartContingency records that the authority has been out of reach for long,
// unless that is recorded already. It tells whether it was new.
func (tx *Tx) StartContingency(ctx context.Context, env fiscal.Environment, at time.Time) (bool, error) {
	done, err := tx.q.ExecContext(ctx, `
		INSERT INTO contingencies (environment, started_at, ended_at)
		SELECT cast($1 AS text), cast($2 AS bigint), NULL
		WHERE NOT EXISTS (SELECT 1 FROM contingencies WHERE environment = $1 AND ended_at IS NULL)
		ON CONFLICT DO NOTHING`, string(env), micros(at))
	if err != nil {
		return false, tx.d.wrap("start contingency", err)
	}
	n, err := done.RowsAffected()
	return n > 0, tx.d.wrap("start contingency", err)
}

// EndContingency records that the authority answers again, and makes everything
// that waits to be sent due, the oldest first. It tells whether one was going on.
func (tx *Tx) EndContingency(ctx context.Context, env fiscal.Environment, stage string, at time.Time) (bool, error) {
	done, err := tx.q.ExecContext(ctx, `
		UPDATE contingencies SET ended_at = $2 WHERE environment = $1 AND ended_at IS NULL`, env, micros(at))
	if err != nil {
		return false, tx.d.wrap("end contingency", err)
	}
	n, err := done.RowsAffected()
	if err != nil || n == 0 {
		return false, tx.d.wrap("end contingency", err)
	}
	_, err = tx.q.ExecContext(ctx, `
		UPDATE jobs SET run_at = created_at WHERE environment = $1 AND stage = $2 AND run_at > $3 AND lease_until <= $3`,
		env, stage, micros(at))
	return true, tx.d.wrap("end contingency", err)
}
