package store

import (
	"context"
	"slices"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// Node is a running process of the service, which serves one environment.
type Node struct {
	ID          string
	Environment fiscal.Environment
	HasWitness  bool // it records the numbers that it shows and sends outside of the database
	SeenAt      time.Time
	Witness     string // the name of its witness; empty: the node is of an earlier release
	// Timeline is the timeline of the database on which the node has reported what its witness
	// knows, see ReportSeen; empty: none, or it cannot be known.
	Timeline string
}

// RecordHeartbeat records that a node is alive.
func (tx *Tx) RecordHeartbeat(ctx context.Context, n Node) error {
	return tx.exec(ctx, "record heartbeat", `
		INSERT INTO nodes (id, environment, has_witness, seen_at, witness, timeline) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (id) DO UPDATE SET has_witness = excluded.has_witness, seen_at = excluded.seen_at,
			witness = excluded.witness, timeline = excluded.timeline`,
		n.ID, n.Environment, oneIf(n.HasWitness), micros(n.SeenAt), n.Witness, n.Timeline)
}

// Nodes lists the nodes of an environment that have a witness.
func (r reader) Nodes(ctx context.Context, env fiscal.Environment) ([]Node, error) {
	return collect(r.rows(ctx, "list nodes", `
		SELECT id, seen_at, witness, timeline FROM nodes WHERE environment = $1 AND has_witness = 1 ORDER BY id`, env), func(n *Node) []any {
		n.Environment, n.HasWitness = env, true
		return []any{&n.ID, instant(&n.SeenAt), &n.Witness, &n.Timeline}
	})
}

// DeleteNodes deletes a node, and the nodes whose last heartbeat was before the given
// moment.
func (tx *Tx) DeleteNodes(ctx context.Context, id string, before time.Time) error {
	return tx.exec(ctx, "delete nodes", `DELETE FROM nodes WHERE id = $1 OR seen_at < $2`, id, micros(before))
}

// LatestHeartbeat returns the newest heartbeat of a node of the environment that has a
// witness; the zero time when there is none.
func (r reader) LatestHeartbeat(ctx context.Context, env fiscal.Environment) (time.Time, error) {
	return one(r.rows(ctx, "read heartbeats", `SELECT max(seen_at) FROM nodes WHERE environment = $1 AND has_witness = 1`, env),
		func(latest *time.Time) []any { return []any{instant(latest)} })
}

// RecordTimeline records on which timeline the database of an environment is known to be
// complete: the nodes have seen what was sent, or fenced every range.
func (tx *Tx) RecordTimeline(ctx context.Context, env fiscal.Environment, timeline string) error {
	return tx.exec(ctx, "record the timeline", `
		INSERT INTO timelines (environment, timeline) VALUES ($1, $2)
		ON CONFLICT (environment) DO UPDATE SET timeline = excluded.timeline`, env, timeline)
}

// RecordedTimeline returns what RecordTimeline recorded; empty when nothing is recorded.
func (r reader) RecordedTimeline(ctx context.Context, env fiscal.Environment) (timeline string, err error) {
	timeline, err = one(r.rows(ctx, "read the recorded timeline", `SELECT timeline FROM timelines WHERE environment = $1`, env), only[string])
	return timeline, ifFound(err)
}

// SentNumbers is the highest number of a range that was sent in a while.
type SentNumbers struct {
	RNC     string
	Range   NumberRange
	Highest string // e-NCF
}

// sentChunk is how many documents one statement of SentSince reads.
const sentChunk = 512

// SentSince lists the ranges of an environment of which numbers were sent since the
// given moment, by any node. A range may be listed more than once.
//
// It reads the documents by their ids. In one statement PostgreSQL, which does not know the
// moment when it makes the plan, may join all documents.
func (r reader) SentSince(ctx context.Context, env fiscal.Environment, since time.Time) (sent []SentNumbers, err error) {
	documents, err := collect(r.rows(ctx, "read sent numbers", `
		SELECT document_id FROM attempts a WHERE environment = $1 AND opened_at >= $2 AND kind = 'submit' AND NOT `+ofReplacedNumber+`
		ORDER BY opened_at`, env, micros(since)), only[string])
	if err != nil {
		return nil, err
	}
	for some := range slices.Chunk(documents, sentChunk) {
		ids, args := placeholders(some)
		part, err := collect(r.rows(ctx, "read sent numbers", `
			SELECT i.rnc, s.taxpayer_id, s.id, s.ecf_type, s.first_number, s.last_number, max(i.encf)
			FROM issued_documents i JOIN number_ranges s ON s.environment = i.environment AND s.taxpayer_id = i.taxpayer_id AND s.id = i.range_id
			WHERE i.document_id IN (`+ids+`)
			GROUP BY i.rnc, s.taxpayer_id, s.id, s.ecf_type, s.first_number, s.last_number`, args...), func(one *SentNumbers) []any {
			one.Range = NumberRange{Scope: Scope{Environment: env}}
			return []any{&one.RNC, &one.Range.TaxpayerID, &one.Range.ID, &one.Range.Type, &one.Range.First, &one.Range.Last, &one.Highest}
		})
		if err != nil {
			return nil, err
		}
		sent = append(sent, part...)
	}
	return sent, nil
}
