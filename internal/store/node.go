package store

import (
	"context"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// Node is a process that works on an environment.
type Node struct {
	ID          string
	Environment fiscal.Environment
	HasWitness  bool
	SeenAt      time.Time
}

// RecordHeartbeat records that a node is alive.
func (tx *Tx) RecordHeartbeat(ctx context.Context, n Node) error {
	has := 0
	if n.HasWitness {
		has = 1
	}
	_, err := tx.q.ExecContext(ctx, `
		INSERT INTO nodes (id, environment, has_witness, seen_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (id) DO UPDATE SET has_witness = excluded.has_witness, seen_at = excluded.seen_at`,
		n.ID, n.Environment, has, micros(n.SeenAt))
	return tx.d.wrap("see node", err)
}

// DeleteNodes forgets a node, and those that were last seen before a moment.
func (tx *Tx) DeleteNodes(ctx context.Context, id string, before time.Time) error {
	_, err := tx.q.ExecContext(ctx, `DELETE FROM nodes WHERE id = $1 OR seen_at < $2`, id, micros(before))
	return tx.d.wrap("forget nodes", err)
}

// WitnessAlive tells whether a node with a witness was seen in an environment
// since a moment.
func (r reader) WitnessAlive(ctx context.Context, env fiscal.Environment, since time.Time) (bool, error) {
	var one int64
	err := r.q.QueryRowContext(ctx, `
		SELECT 1 FROM nodes WHERE environment = $1 AND has_witness = 1 AND seen_at >= $2 LIMIT 1`, env, micros(since)).Scan(&one)
	return r.some("look for nodes", err)
}
