package store

import (
	"context"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// Node is a running process of the service, which serves one environment.
type Node struct {
	ID          string
	Environment fiscal.Environment
	HasWitness  bool // it records the numbers that it sends outside of the database
	SeenAt      time.Time
}

// RecordHeartbeat records that a node is alive.
func (tx *Tx) RecordHeartbeat(ctx context.Context, n Node) error {
	_, err := tx.q.ExecContext(ctx, `
		INSERT INTO nodes (id, environment, has_witness, seen_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (id) DO UPDATE SET has_witness = excluded.has_witness, seen_at = excluded.seen_at`,
		n.ID, n.Environment, oneIf(n.HasWitness), micros(n.SeenAt))
	return tx.d.wrap("record heartbeat", err)
}

// DeleteNodes deletes a node, and the nodes whose last heartbeat was before the given
// moment.
func (tx *Tx) DeleteNodes(ctx context.Context, id string, before time.Time) error {
	_, err := tx.q.ExecContext(ctx, `DELETE FROM nodes WHERE id = $1 OR seen_at < $2`, id, micros(before))
	return tx.d.wrap("delete nodes", err)
}

// WitnessAlive reports whether a node of the environment that has a witness sent a
// heartbeat since the given moment.
func (r reader) WitnessAlive(ctx context.Context, env fiscal.Environment, since time.Time) (bool, error) {
	var one int64
	err := r.q.QueryRowContext(ctx, `
		SELECT 1 FROM nodes WHERE environment = $1 AND has_witness = 1 AND seen_at >= $2 LIMIT 1`, env, micros(since)).Scan(&one)
	return r.rowExists("find nodes", err)
}
