package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// FenceBehind fences a range whose next number is not beyond a mark, and tells
// whether it did. One that is fenced stays as it is.
func (tx *Tx) FenceBehind(ctx context.Context, s NumberRange, mark int64, at time.Time) (bool, error) {
	done, err := tx.q.ExecContext(ctx, `
		UPDATE sequences SET fenced_at = $5
		WHERE environment = $1 AND taxpayer_id = $2 AND id = $3 AND next_number <= $4 AND fenced_at IS NULL`,
		s.Environment, s.TaxpayerID, s.ID, mark, micros(at))
	if err != nil {
		return false, tx.d.wrap("fence sequence", err)
	}
	n, err := done.RowsAffected()
	return n > 0, tx.d.wrap("fence sequence", err)
}

// ReleaseNumberRange lets a fenced range be used again, from a number on. The error
// is ErrNumbersMoved when it was released, or fenced anew, since it was read.
func (tx *Tx) ReleaseNumberRange(ctx context.Context, s NumberRange, next int64) error {
	done, err := tx.q.ExecContext(ctx, `
		UPDATE sequences SET fenced_at = NULL, next_number = $6
		WHERE environment = $1 AND taxpayer_id = $2 AND id = $3 AND next_number = $4 AND fenced_at = $5`,
		s.Environment, s.TaxpayerID, s.ID, s.Next, micros(s.FencedAt), next)
	if err != nil {
		return tx.d.wrap("release sequence", err)
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		if err == nil {
			err = ErrNumbersTaken
		}
		return tx.d.wrap("release sequence", err)
	}
	return nil
}

// NumberPresence is what the authority said about a number that was given up.
type NumberPresence string

// What the authority said: that it holds a document under the number, that it
// holds none, or nothing, because it cannot be asked in the environment.
const (
	NumberFound   NumberPresence = "found"
	NumberAbsent  NumberPresence = "absent"
	NumberUnknown NumberPresence = "unknown"
)

// AbandonedNumber is a number that was given up: it may have been used by documents that
// a restored database does not have. It is never issued again.
type AbandonedNumber struct {
	Scope
	RNC, ENCF string
	Presence  NumberPresence
	Detail    string
	At        time.Time
}

// AbandonNumbers adds numbers to the ledger as given up. Those that are there stay.
func (tx *Tx) AbandonNumbers(ctx context.Context, numbers []AbandonedNumber) error {
	for _, b := range numbers {
		_, err := tx.q.ExecContext(ctx, `
			INSERT INTO burned (environment, rnc, encf, taxpayer_id, found, detail, at)
			VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING`,
			b.Environment, b.RNC, b.ENCF, b.TaxpayerID, b.Presence, b.Detail, micros(b.At))
		if err != nil {
			return tx.d.wrap("burn number", err)
		}
	}
	return nil
}

// AbandonedNumbers lists the numbers of a taxpayer that were given up, from one to
// another, the lowest first.
func (r reader) AbandonedNumbers(ctx context.Context, scope Scope, rnc, from, to string) ([]AbandonedNumber, error) {
	rows, err := r.q.QueryContext(ctx, `
		SELECT encf, found, detail, at FROM burned
		WHERE environment = $1 AND taxpayer_id = $2 AND rnc = $3 AND encf >= $4 AND encf <= $5 ORDER BY encf`,
		scope.Environment, scope.TaxpayerID, rnc, from, to)
	if err != nil {
		return nil, r.d.wrap("read burned numbers", err)
	}
	return collect(r.d, "read burned numbers", rows, func(row row) (AbandonedNumber, error) {
		b := AbandonedNumber{Scope: scope, RNC: rnc}
		var at int64
		err := row.Scan(&b.ENCF, &b.Presence, &b.Detail, &at)
		b.At = fromMicros(at)
		return b, err
	})
}

// HasSent tells whether any document of an environment was ever sent to the
// authority, as far as the database knows.
func (r reader) HasSent(ctx context.Context, env fiscal.Environment) (bool, error) {
	var one int64
	err := r.q.QueryRowContext(ctx, `SELECT 1 FROM attempts WHERE environment = $1 AND kind = 'submit' LIMIT 1`, env).Scan(&one)
	return r.some("look for attempts", err)
}

// HighestSent is the highest number from one to another of an RNC that was sent,
// and empty when none was.
func (r reader) HighestSent(ctx context.Context, env fiscal.Environment, rnc, from, to string) (string, error) {
	var encf string
	// The ledger is walked downwards by its key, and ends with the first hit.
	err := r.q.QueryRowContext(ctx, `
		SELECT i.encf FROM issued i
		WHERE i.environment = $1 AND i.rnc = $2 AND i.encf >= $3 AND i.encf <= $4
			AND EXISTS (SELECT 1 FROM attempts a WHERE a.document_id = i.document_id AND a.kind = 'submit')
		ORDER BY i.encf DESC LIMIT 1`, env, rnc, from, to).Scan(&encf)
	_, err = r.some("look for sent numbers", err)
	return encf, err
}

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

// some tells a row from none.
func (r reader) some(what string, err error) (bool, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, r.d.wrap(what, err)
}
