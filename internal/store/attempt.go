package store

import (
	"context"
	"database/sql"
	"math"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// Class is the result of a request to the tax authority or to a buyer, seen from
// the network: whether the other side received it and answered.
type Class string

// The classes of an attempt. An open attempt has none.
const (
	NotReceived  Class = "not_received" // the other side certainly did not receive it
	Conclusive   Class = "conclusive"   // the other side answered
	Inconclusive Class = "inconclusive" // the other side may have received it
)

// Attempt is one sending of a document. It is recorded before the first byte is
// sent.
type Attempt struct {
	Scope
	DocumentID string
	Number     int64
	Kind       string // submit or deliver
	Digest     []byte // SHA-256 of the bytes that were sent
	OpenedAt   time.Time
	ClosedAt   time.Time // zero: open
	Class      Class
	Detail     string
	Replaced   bool // it sent the document under a number that was replaced since
}

// ofReplacedNumber selects the attempts a that sent a document under a number that was
// replaced since.
const ofReplacedNumber = `EXISTS (SELECT 1 FROM issued r WHERE r.former_document_id = a.document_id AND r.sent_sha256 = a.sha256)`

// Attempts lists the attempts to send a document, the first one first.
func (r reader) Attempts(ctx context.Context, scope Scope, documentID string) ([]Attempt, error) {
	rows, err := r.q.QueryContext(ctx, `
		SELECT number, kind, sha256, opened_at, closed_at, class, detail,
			`+ofReplacedNumber+`
		FROM attempts a
		WHERE environment = $1 AND taxpayer_id = $2 AND document_id = $3 ORDER BY number`,
		scope.Environment, scope.TaxpayerID, documentID)
	if err != nil {
		return nil, r.d.wrap("read attempts", err)
	}
	return collect(r.d, "read attempts", rows, func(row row) (Attempt, error) {
		a := Attempt{Scope: scope, DocumentID: documentID}
		var opened int64
		var closed sql.NullInt64
		err := row.Scan(&a.Number, &a.Kind, &a.Digest, &opened, &closed, &a.Class, &a.Detail, &a.Replaced)
		a.OpenedAt, a.ClosedAt = fromMicros(opened), fromOptionalMicros(closed)
		return a, err
	})
}

// OpenAttempt records that the service is about to send a document. Attempts are
// numbered from 1.
func (b *Batch) OpenAttempt(a Attempt) *Batch {
	return b.add(statement{`
		INSERT INTO attempts (document_id, number, environment, taxpayer_id, kind, sha256, opened_at, closed_at, class, detail)
		VALUES ($1, $2, $3, $4, $5, $6, $7, NULL, '', '')`, []any{
		a.DocumentID, a.Number, string(a.Environment), a.TaxpayerID, a.Kind, a.Digest, micros(a.OpenedAt),
	}}, nil)
}

// CloseAttempt records how an attempt ended. It does not change a closed attempt.
func (b *Batch) CloseAttempt(a Attempt) *Batch {
	return b.add(statement{`
		UPDATE attempts SET closed_at = $5, class = $6, detail = $7
		WHERE environment = $1 AND taxpayer_id = $2 AND document_id = $3 AND number = $4 AND closed_at IS NULL`, []any{
		string(a.Environment), a.TaxpayerID, a.DocumentID, a.Number, micros(a.ClosedAt), string(a.Class), a.Detail,
	}}, nil)
}

// HasSent reports whether the database has an attempt to send any document of the
// environment to the tax authority.
func (r reader) HasSent(ctx context.Context, env fiscal.Environment) (bool, error) {
	var one int64
	err := r.q.QueryRowContext(ctx, `SELECT 1 FROM attempts WHERE environment = $1 AND kind = 'submit' LIMIT 1`, env).Scan(&one)
	return r.rowExists("find attempts", err)
}

// Unsent selects documents of a number range that wait to be sent to the tax authority.
type Unsent struct {
	UpTo string    // the highest number, an e-NCF; empty: all numbers
	Idle time.Time // only jobs whose lease has ended then; zero: all jobs
}

// OpenLostAttempts opens an attempt for each of the selected documents that has none
// open: the database may have lost the record that the document was sent. A worker then
// asks the tax authority before it sends the document.
func (tx *Tx) OpenLostAttempts(ctx context.Context, n NumberRange, u Unsent, at time.Time) error {
	idle := int64(math.MaxInt64)
	if !u.Idle.IsZero() {
		idle = micros(u.Idle)
	}
	_, err := tx.q.ExecContext(ctx, `
		INSERT INTO attempts (document_id, number, environment, taxpayer_id, kind, sha256, opened_at, closed_at, class, detail)
		SELECT i.document_id, coalesce((SELECT max(a.number) FROM attempts a WHERE a.document_id = i.document_id), 0) + 1,
			i.environment, i.taxpayer_id, 'submit', i.sent_sha256, cast($6 AS bigint), NULL, '', cast($7 AS text)
		FROM jobs j JOIN issued i ON i.document_id = j.document_id
		WHERE j.environment = $1 AND j.taxpayer_id = $2 AND j.stage = 'submit' AND j.lease_until <= $3
			AND i.environment = $1 AND i.taxpayer_id = $2 AND i.sequence_id = $4
			AND (cast($5 AS text) = '' OR i.encf <= $5)
			AND NOT EXISTS (SELECT 1 FROM attempts o WHERE o.document_id = i.document_id AND o.closed_at IS NULL)
		ON CONFLICT DO NOTHING`, // a worker has opened one at the same moment
		n.Environment, n.TaxpayerID, idle, n.ID, u.UpTo, micros(at), "the database may have lost the record of this attempt")
	return tx.d.wrap("open lost attempts", err)
}
