package store

import (
	"context"
	"database/sql"
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
}

// Attempts lists the attempts to send a document, the first one first.
func (r reader) Attempts(ctx context.Context, scope Scope, documentID string) ([]Attempt, error) {
	rows, err := r.q.QueryContext(ctx, `
		SELECT number, kind, sha256, opened_at, closed_at, class, detail FROM attempts
		WHERE environment = $1 AND taxpayer_id = $2 AND document_id = $3 ORDER BY number`,
		scope.Environment, scope.TaxpayerID, documentID)
	if err != nil {
		return nil, r.d.wrap("read attempts", err)
	}
	return collect(r.d, "read attempts", rows, func(row row) (Attempt, error) {
		a := Attempt{Scope: scope, DocumentID: documentID}
		var opened int64
		var closed sql.NullInt64
		err := row.Scan(&a.Number, &a.Kind, &a.Digest, &opened, &closed, &a.Class, &a.Detail)
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
