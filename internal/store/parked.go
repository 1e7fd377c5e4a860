package store

import (
	"context"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// parkedFor is how long the store keeps a message about an unknown document. Purge
// deletes it afterwards.
const parkedFor = 30 * 24 * time.Hour

// Parked is a message about a document that the service does not know yet.
type Parked struct {
	Scope
	ID        string
	SourceID  string
	MessageID string
	Kind      string
	ENCF      string
	Body      []byte
	At        time.Time
	ExpiresAt time.Time // thirty days after At
}

// Park stores a message about an unknown document for thirty days.
func (tx *Tx) Park(ctx context.Context, p Parked) error {
	return tx.exec(ctx, "park message", `
		INSERT INTO parked (id, environment, taxpayer_id, source_id, message_id, kind, encf, body, at, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		p.ID, p.Environment, p.TaxpayerID, p.SourceID, p.MessageID, p.Kind, p.ENCF, p.Body, micros(p.At), micros(p.At.Add(parkedFor)))
}

// Parked lists the messages about a number that have not expired, the oldest first.
func (r reader) Parked(ctx context.Context, scope Scope, encf string, now time.Time) ([]Parked, error) {
	return collect(r.rows(ctx, "read parked messages", `
		SELECT id, source_id, message_id, kind, encf, body, at, expires_at FROM parked
		WHERE environment = $1 AND taxpayer_id = $2 AND encf = $3 AND expires_at > $4 ORDER BY id`,
		scope.Environment, scope.TaxpayerID, encf, micros(now)), func(p *Parked) []any {
		p.Scope = scope
		return p.columns()
	})
}

// ParkedWithDocument lists parked messages of all taxpayers of an environment whose
// document exists by now, the oldest first. after is the last message of the page
// before; its zero value starts with the oldest.
func (r reader) ParkedWithDocument(ctx context.Context, env fiscal.Environment, after Parked, now time.Time, limit int) ([]Parked, error) {
	return collect(r.rows(ctx, "read parked messages", `
		SELECT p.taxpayer_id, p.id, p.source_id, p.message_id, p.kind, p.encf, p.body, p.at, p.expires_at
		FROM parked p JOIN taxpayers t ON t.id = p.taxpayer_id
			JOIN issued_documents i ON i.environment = p.environment AND i.rnc = t.rnc AND i.encf = p.encf AND i.taxpayer_id = p.taxpayer_id AND i.former_document_id IS NULL
		WHERE p.environment = $1 AND p.expires_at > $2 AND (p.expires_at, p.id) > ($3, $4)
		ORDER BY p.expires_at, p.id LIMIT $5`, env, micros(now), micros(after.ExpiresAt), after.ID, limit), func(p *Parked) []any {
		p.Environment = env
		return append([]any{&p.TaxpayerID}, p.columns()...)
	})
}

func (p *Parked) columns() []any {
	return []any{&p.ID, &p.SourceID, &p.MessageID, &p.Kind, &p.ENCF, &p.Body, instant(&p.At), instant(&p.ExpiresAt)}
}

// Unpark deletes a parked message, and reports whether it was still there. The caller
// applies the message in the same transaction, so that it has its effect once.
func (tx *Tx) Unpark(ctx context.Context, scope Scope, id string) (bool, error) {
	return tx.write(ctx, "unpark message", do(`
		DELETE FROM parked WHERE environment = $1 AND taxpayer_id = $2 AND id = $3`,
		string(scope.Environment), scope.TaxpayerID, id))
}
