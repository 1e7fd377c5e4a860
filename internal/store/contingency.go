package store

import (
	"context"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// Contingency is a period in which the service could not reach the tax authority.
type Contingency struct {
	Environment fiscal.Environment
	StartedAt   time.Time
	EndedAt     time.Time // zero: it has not ended
}

// Deadline returns when a document that waited during the contingency must have been
// sent. It returns the zero time for other documents, and while the contingency lasts.
func (c Contingency) Deadline(status fiscal.Status, createdAt time.Time) time.Time {
	if status != fiscal.Queued || c.EndedAt.IsZero() || createdAt.After(c.EndedAt) {
		return time.Time{}
	}
	return c.EndedAt.Add(fiscal.ContingencyTime)
}

// Contingency reads the contingency of an environment that has not ended, or the last one.
// The error is ErrNotFound when there was none.
func (r reader) Contingency(ctx context.Context, env fiscal.Environment) (Contingency, error) {
	return one(r.rows(ctx, "read contingency", `
		SELECT started_at, ended_at FROM contingencies WHERE environment = $1
		ORDER BY CASE WHEN ended_at IS NULL THEN 0 ELSE 1 END, started_at DESC LIMIT 1`, env), contingencyOf(env))
}

// contingencyOf returns the destinations of a row of an environment.
func contingencyOf(env fiscal.Environment) func(*Contingency) []any {
	return func(c *Contingency) []any {
		c.Environment = env
		return []any{instant(&c.StartedAt), instant(&c.EndedAt)}
	}
}

// StartContingency records the start of a contingency and returns true. It records
// nothing and returns false while another contingency has not ended. When two nodes
// start one at the same moment, one of them returns false.
func (tx *Tx) StartContingency(ctx context.Context, env fiscal.Environment, at time.Time) (bool, error) {
	return tx.write(ctx, "start contingency", do(`
		INSERT INTO contingencies (environment, started_at, ended_at)
		SELECT cast($1 AS text), cast($2 AS bigint), NULL
		WHERE NOT EXISTS (SELECT 1 FROM contingencies WHERE environment = $1 AND ended_at IS NULL)
		ON CONFLICT DO NOTHING`, string(env), micros(at)))
}

// EndContingency records the end of the current contingency and returns true. It
// returns false when there was no contingency.
func (tx *Tx) EndContingency(ctx context.Context, env fiscal.Environment, at time.Time) (bool, error) {
	return tx.write(ctx, "end contingency", do(`
		UPDATE contingencies SET ended_at = $2 WHERE environment = $1 AND ended_at IS NULL`, string(env), micros(at)))
}
