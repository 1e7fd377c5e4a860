package store

import (
	"context"
	"time"
)

// parkedFor is how long the store keeps a message about an unknown document.
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
	_, err := tx.q.ExecContext(ctx, `
		INSERT INTO parked (id, environment, taxpayer_id, source_id, message_id, kind, encf, body, at, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		p.ID, p.Environment, p.TaxpayerID, p.SourceID, p.MessageID, p.Kind, p.ENCF, p.Body, micros(p.At), micros(p.At.Add(parkedFor)))
	return tx.d.wrap("park message", err)
}

// Parked lists the messages about a number that have not expired, the oldest first.
func (r reader) Parked(ctx context.Context, scope Scope, encf string, now time.Time) ([]Parked, error) {
	rows, err := r.q.QueryContext(ctx, `
		SELECT id, source_id, message_id, kind, encf, body, at, expires_at FROM parked
		WHERE environment = $1 AND taxpayer_id = $2 AND encf = $3 AND expires_at > $4 ORDER BY id`,
		scope.Environment, scope.TaxpayerID, encf, micros(now))
	if err != nil {
		return nil, r.d.wrap("read parked messages", err)
	}
	return collect(r.d, "read parked messages", rows, func(row row) (Parked, error) {
		p := Parked{Scope: scope}
		var at, expires int64
		err := row.Scan(&p.ID, &p.SourceID, &p.MessageID, &p.Kind, &p.ENCF, &p.Body, &at, &expires)
		p.At, p.ExpiresAt = fromMicros(at), fromMicros(expires)
		return p, err
	})
}

// Unpark deletes a parked message, and reports whether it was still there.
func (tx *Tx) Unpark(ctx context.Context, scope Scope, id string) (bool, error) {
	return tx.change(ctx, "unpark message", statement{`
		DELETE FROM parked WHERE environment = $1 AND taxpayer_id = $2 AND id = $3`,
		[]any{string(scope.Environment), scope.TaxpayerID, id}})
}

// PurgeParked deletes the expired messages of all taxpayers, and returns how many it
// deleted.
func (s *Store) PurgeParked(ctx context.Context, now time.Time) (n int64, err error) {
	err = s.Update(ctx, func(tx *Tx) error {
		n, err = statement{`DELETE FROM parked WHERE expires_at <= $1`, []any{micros(now)}}.run(ctx, tx.q)
		return tx.d.wrap("purge parked messages", err)
	})
	return n, err
}
