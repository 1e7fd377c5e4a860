package store

import (
	"context"
	"database/sql"
	"time"
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
