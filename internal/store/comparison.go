package store

import (
	"cmp"
	"context"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// Comparison is how far an environment has come with comparing its accepted and rejected
// documents with what the tax authority shows. All nodes share it: the node that has claimed it
// compares one document.
type Comparison struct {
	Environment fiscal.Environment
	NextAt      time.Time // no node compares before
	Turn        int64     // number of documents that were compared or skipped
	Attempt     int64     // failed attempts to compare the next document
	// First is the last document of the walk that compares each document once.
	First Position
	// Again is the last document of the walk over older documents, which began at
	// AgainSince and ends with the documents of AgainUntil.
	Again                  Position
	AgainSince, AgainUntil time.Time
	ComparedAt             time.Time // the last answer of the authority; zero: none yet
}

// Position is the place of a document in the order of the walks: when the
// document changed last, and its id. The zero position is before all documents.
type Position struct {
	At         time.Time
	DocumentID string
}

// Before reports whether a position comes before another one in the order of the walks.
func (p Position) Before(other Position) bool {
	return cmp.Or(cmp.Compare(p.micros(), other.micros()), cmp.Compare(p.DocumentID, other.DocumentID)) < 0
}

// micros returns the stored form of the time of a position.
func (p Position) micros() int64 {
	if p.At.IsZero() {
		return 0
	}
	return micros(p.At)
}

// Comparison reads the comparison of an environment. The error is ErrNotFound before
// StartComparison.
func (r reader) Comparison(ctx context.Context, env fiscal.Environment) (Comparison, error) {
	return one(r.rows(ctx, "read comparison", `
		SELECT next_at, turn, attempt, first_at, first_id, again_at, again_id, again_since, again_until, compared_at
		FROM comparisons WHERE environment = $1`, env), func(c *Comparison) []any {
		c.Environment = env
		return []any{
			instant(&c.NextAt), &c.Turn, &c.Attempt, instant(&c.First.At), &c.First.DocumentID, instant(&c.Again.At), &c.Again.DocumentID,
			instant(&c.AgainSince), instant(&c.AgainUntil), instant(&c.ComparedAt),
		}
	})
}

// StartComparison stores the comparison of an environment, unless it has one.
func (tx *Tx) StartComparison(ctx context.Context, c Comparison) error {
	return tx.exec(ctx, "start comparison", `
		INSERT INTO comparisons (environment, next_at, holder, turn, attempt, first_at, first_id, again_at, again_id, again_since, again_until, compared_at)
		VALUES ($1, $2, '', 0, 0, $3, $4, $5, $6, $7, $8, NULL)
		ON CONFLICT DO NOTHING`,
		c.Environment, micros(c.NextAt), c.First.micros(), c.First.DocumentID, c.Again.micros(), c.Again.DocumentID,
		micros(c.AgainSince), micros(c.AgainUntil))
}

// ClaimComparison lets a holder compare the next document. It changes nothing and
// returns false when another node has claimed the comparison since c was read. When the
// holder dies, other nodes continue at until.
func (tx *Tx) ClaimComparison(ctx context.Context, c Comparison, holder string, until time.Time) (bool, error) {
	return tx.write(ctx, "claim comparison", do(`
		UPDATE comparisons SET holder = $4, next_at = $5 WHERE environment = $1 AND turn = $2 AND next_at = $3`,
		string(c.Environment), c.Turn, micros(c.NextAt), holder, micros(until)))
}

// FinishComparison stores the progress of a holder and ends its claim. It changes
// nothing and returns false when the holder's claim is over.
func (tx *Tx) FinishComparison(ctx context.Context, c Comparison, holder string) (bool, error) {
	return tx.write(ctx, "finish comparison", do(`
		UPDATE comparisons SET holder = '', next_at = $3, turn = $4, attempt = $5, first_at = $6, first_id = $7,
			again_at = $8, again_id = $9, again_since = $10, again_until = $11, compared_at = $12
		WHERE environment = $1 AND holder = $2`,
		string(c.Environment), holder, micros(c.NextAt), c.Turn, c.Attempt, c.First.micros(), c.First.DocumentID,
		c.Again.micros(), c.Again.DocumentID, micros(c.AgainSince), micros(c.AgainUntil), optionalMicros(c.ComparedAt)))
}

// AcceptedAfter returns the accepted document of an environment that follows a
// position, and did not change after until. The error is ErrNotFound when there is
// none. It costs the same however many documents there are.
func (r reader) AcceptedAfter(ctx context.Context, env fiscal.Environment, after Position, until time.Time) (Position, error) {
	return r.documentAfter(ctx, `status IN ('accepted', 'accepted_conditional', 'delivered')`, env, after, until)
}

// RejectedAfter is AcceptedAfter for documents that were sent and rejected.
func (r reader) RejectedAfter(ctx context.Context, env fiscal.Environment, after Position, until time.Time) (Position, error) {
	return r.documentAfter(ctx, `status = 'rejected'`, env, after, until)
}

func (r reader) documentAfter(ctx context.Context, status string, env fiscal.Environment, after Position, until time.Time) (Position, error) {
	// An index has the condition on encf and status.
	return one(r.rows(ctx, "find judged document", `
		SELECT updated_at, document_id FROM documents
		WHERE environment = $1 AND encf IS NOT NULL AND `+status+`
			AND (updated_at, document_id) > ($2, $3) AND updated_at <= $4
		ORDER BY updated_at, document_id LIMIT 1`, env, after.micros(), after.DocumentID, micros(until)), func(p *Position) []any {
		return []any{instant(&p.At), &p.DocumentID}
	})
}
