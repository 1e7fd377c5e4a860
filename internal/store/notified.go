package store

import (
	"context"
	"time"
)

// MarkNotified records that a taxpayer got a warning about a subject at a mark, for
// example about a certificate thirty days before it expires. It reports whether this
// is the first time.
func (tx *Tx) MarkNotified(ctx context.Context, scope Scope, subject, mark string, at time.Time) (fresh bool, err error) {
	return tx.write(ctx, "mark notified", do(`
		INSERT INTO notified (environment, taxpayer_id, subject, mark, at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT DO NOTHING`, string(scope.Environment), scope.TaxpayerID, subject, mark, micros(at)))
}
