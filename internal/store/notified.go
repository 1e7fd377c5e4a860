package store

import (
	"context"
	"time"
)

// MarkNotified records that a taxpayer was warned of something at a mark, such as
// of a certificate at thirty days, and tells whether that is new.
func (tx *Tx) MarkNotified(ctx context.Context, scope Scope, subject, mark string, at time.Time) (fresh bool, err error) {
	n, err := statement{`
		INSERT INTO notified (environment, taxpayer_id, subject, mark, at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT DO NOTHING`, []any{string(scope.Environment), scope.TaxpayerID, subject, mark, micros(at)}}.run(ctx, tx.q)
	return n > 0, tx.d.wrap("mark notified", err)
}
