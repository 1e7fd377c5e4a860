package store

import (
	"context"
	"time"
)

// Inbound is a message that a source has sent. The service processes each message once.
type Inbound struct {
	Scope
	SourceID   string
	MessageID  string
	At         time.Time
	Kind       string
	Outcome    string // the result, in one word
	DocumentID string // empty: the message names no known document
}

// ReceiveInbound records a message of a source, and reports whether it is new. It waits
// for a running transaction that records the same message.
func (tx *Tx) ReceiveInbound(ctx context.Context, m Inbound) (fresh bool, err error) {
	return tx.write(ctx, "record message", do(`
		INSERT INTO inbound (source_id, message_id, environment, taxpayer_id, at, kind, outcome, document_id)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT DO NOTHING`,
		m.SourceID, m.MessageID, string(m.Environment), m.TaxpayerID, micros(m.At), m.Kind, m.Outcome, m.DocumentID))
}

// HasReceived reports whether a message of a source is recorded.
func (r reader) HasReceived(ctx context.Context, scope Scope, sourceID, messageID string) (bool, error) {
	n, err := one(r.rows(ctx, "find message", `
		SELECT count(*) FROM inbound WHERE environment = $1 AND taxpayer_id = $2 AND source_id = $3 AND message_id = $4`,
		scope.Environment, scope.TaxpayerID, sourceID, messageID), only[int64])
	return n > 0, err
}
