package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// Class is how an exchange with the authority or a buyer ended.
type Class string

// The classes of an exchange. An attempt that is open has none.
const (
	NotReceived  Class = "not_received"
	Conclusive   Class = "conclusive"
	Inconclusive Class = "inconclusive"
)

// Attempt is one time that a document was sent, recorded before the first byte
// leaves.
type Attempt struct {
	Scope
	DocumentID string
	Number     int64
	Kind       string // submit or deliver
	Digest     []byte // SHA-256 of what was sent
	OpenedAt   time.Time
	ClosedAt   time.Time // zero: open
	Class      Class
	Detail     string
}

// Attempts lists how often a document was sent, the first attempt first.
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
		a.OpenedAt = fromMicros(opened)
		if closed.Valid {
			a.ClosedAt = fromMicros(closed.Int64)
		}
		return a, err
	})
}

// OpenAttempt records that a document is about to be sent. Numbers count from 1.
func (b *Batch) OpenAttempt(a Attempt) *Batch {
	return b.add(statement{`
		INSERT INTO attempts (document_id, number, environment, taxpayer_id, kind, sha256, opened_at, closed_at, class, detail)
		VALUES ($1, $2, $3, $4, $5, $6, $7, NULL, '', '')`, []any{
		a.DocumentID, a.Number, string(a.Environment), a.TaxpayerID, a.Kind, a.Digest, micros(a.OpenedAt),
	}}, nil)
}

// CloseAttempt records how an attempt ended. One that is closed stays as it is.
func (b *Batch) CloseAttempt(a Attempt) *Batch {
	return b.add(statement{`
		UPDATE attempts SET closed_at = $5, class = $6, detail = $7
		WHERE environment = $1 AND taxpayer_id = $2 AND document_id = $3 AND number = $4 AND closed_at IS NULL`, []any{
		string(a.Environment), a.TaxpayerID, a.DocumentID, a.Number, micros(a.ClosedAt), string(a.Class), a.Detail,
	}}, nil)
}

// HasSent tells whether any document of an environment was ever sent to the
// authority, as far as the database knows.
func (r reader) HasSent(ctx context.Context, env fiscal.Environment) (bool, error) {
	var one int64
	err := r.q.QueryRowContext(ctx, `SELECT 1 FROM attempts WHERE environment = $1 AND kind = 'submit' LIMIT 1`, env).Scan(&one)
	return r.some("look for attempts", err)
}
