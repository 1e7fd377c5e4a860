package store

import (
	"context"
	"time"
)

// Inbound is a message of a source, of which the same is heard once.
type Inbound struct {
	Scope
	SourceID   string
	MessageID  string
	At         time.Time
	Kind       string
	Outcome    string // what it led to, in one word
	DocumentID string // empty: it named none that we know
}

// ReceiveInbound records a message of a source, and tells whether it is new. One
// that comes at the same time is waited for.
func (tx *Tx) ReceiveInbound(ctx context.Context, m Inbound) (fresh bool, err error) {
	n, err := statement{`
		INSERT INTO inbound (source_id, message_id, environment, taxpayer_id, at, kind, outcome, document_id)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT DO NOTHING`, []any{
		m.SourceID, m.MessageID, string(m.Environment), m.TaxpayerID, micros(m.At), m.Kind, m.Outcome, m.DocumentID,
	}}.run(ctx, tx.q)
	return n > 0, tx.d.wrap("hear message", err)
}

// HasReceived tells whether a message of a source was heard before.
func (r reader) HasReceived(ctx context.Context, scope Scope, sourceID, messageID string) (bool, error) {
	var n int64
	err := r.q.QueryRowContext(ctx, `
		SELECT count(*) FROM inbound WHERE environment = $1 AND taxpayer_id = $2 AND source_id = $3 AND message_id = $4`,
		scope.Environment, scope.TaxpayerID, sourceID, messageID).Scan(&n)
	return n > 0, r.d.wrap("look for message", err)
}
