package store

import (
	"context"
	"encoding/hex"
	"errors"
	"time"

	"github.com/google/uuid"
)

// Event is something that integrators are told: an event in their words. It is
// written with the change that it tells of, and only ever added.
type Event struct {
	Scope
	ID         string
	Kind       string
	DocumentID string // empty: it is of no document
	Revision   int64  // of the document
	At         time.Time
	Body       []byte // exactly as it is sent
	Number     int64  // its place in the feed; 0: none yet
}

// NewEventID makes the id of a notice. It sorts by the time it was made.
func NewEventID() string {
	id := uuid.Must(uuid.NewV7())
	return "evt_" + hex.EncodeToString(id[:])
}

const noticeColumns = `id, environment, taxpayer_id, number, kind, document_id, sequence, at, body`

// addEvent stores a notice, and a delivery for each endpoint that wants it. A
// disabled endpoint gets none: what it missed is delivered by a replay alone.
func addEvent(n Event) []statement {
	scope := []any{string(n.Environment), n.TaxpayerID}
	return []statement{
		{`
		INSERT INTO notices (environment, taxpayer_id, id, kind, document_id, sequence, at, body)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`, append(scope[:2:2],
			n.ID, n.Kind, n.DocumentID, n.Revision, micros(n.At), n.Body)},
		{`
		INSERT INTO deliveries (` + deliveryColumns + `)
		SELECT id, cast($3 AS text), environment, taxpayer_id, cast($4 AS text), cast($5 AS text), cast($6 AS bigint), 'pending', 0,
			cast($7 AS bigint), '', 0, cast($7 AS bigint)
		FROM endpoints
		WHERE environment = $1 AND taxpayer_id = $2 AND status = 'enabled'
			AND (kinds LIKE '%,*,%' OR kinds LIKE cast($8 AS text))`, append(scope[:2:2],
			n.ID, n.Kind, n.DocumentID, n.Revision, micros(n.At), "%,"+n.Kind+",%")},
	}
}

// freshDelivery is how a delivery starts, in the order of deliveryColumns, but
// for when it is due, who holds it, and when it was made.
const freshDelivery = `e.id, n.id, n.environment, n.taxpayer_id, n.kind, n.document_id, n.sequence, 'pending', 0`

// wanted joins an endpoint e to a notice n that it has asked for.
const wanted = `e.environment = n.environment AND e.taxpayer_id = n.taxpayer_id
	AND (e.kinds LIKE '%,*,%' OR e.kinds LIKE '%,' || n.kind || ',%')`

// AddEvent stores a notice with its deliveries.
func (tx *Tx) AddEvent(ctx context.Context, n Event) error {
	for _, s := range addEvent(n) {
		if _, err := s.run(ctx, tx.q); err != nil {
			return tx.d.wrap("add notice", err)
		}
	}
	return nil
}

// AddEvent stores a notice with its deliveries.
func (b *Batch) AddEvent(n Event) *Batch {
	for _, s := range addEvent(n) {
		b.add(s, nil)
	}
	return b
}

// Event reads one notice.
func (r reader) Event(ctx context.Context, scope Scope, id string) (Event, error) {
	n, err := scanEvent(r.q.QueryRowContext(ctx, `
		SELECT id, environment, taxpayer_id, coalesce(number, 0), kind, document_id, sequence, at, body FROM notices
		WHERE environment = $1 AND taxpayer_id = $2 AND id = $3`, scope.Environment, scope.TaxpayerID, id))
	return n, r.d.wrap("read notice", err)
}

func scanEvent(r row) (Event, error) {
	var n Event
	var at int64
	err := r.Scan(&n.ID, &n.Environment, &n.TaxpayerID, &n.Number, &n.Kind, &n.DocumentID, &n.Revision, &at, &n.Body)
	n.At = fromMicros(at)
	return n, err
}

const (
	maxNumbered = 1000        // by one reading of the feed
	numberWait  = time.Second // for a turn to write
)

// Feed reads the notices of a taxpayer behind a place in its feed, in order. What
// is committed and has no place yet gets one first. While the database cannot be
// written it reads what has one.
func (s *Store) Feed(ctx context.Context, scope Scope, after int64, limit int) ([]Event, error) {
	soon, cancel := context.WithTimeout(ctx, numberWait)
	defer cancel()
	if err := s.numberEvents(soon, scope); err != nil && !errors.Is(err, ErrUnavailable) && !isContext(err) {
		return nil, err
	}
	rows, err := s.q.QueryContext(ctx, `
		SELECT `+noticeColumns+` FROM notices
		WHERE environment = $1 AND taxpayer_id = $2 AND number > $3 ORDER BY number LIMIT $4`,
		scope.Environment, scope.TaxpayerID, after, limit)
	if err != nil {
		return nil, s.d.wrap("read feed", err)
	}
	return collect(s.d, "read feed", rows, scanEvent)
}

// HasEvents tells whether a taxpayer's feed has, or will have, something behind a
// place.
func (r reader) HasEvents(ctx context.Context, scope Scope, after int64) (bool, error) {
	var one int64
	err := r.q.QueryRowContext(ctx, `
		SELECT 1 FROM notices WHERE environment = $1 AND taxpayer_id = $2 AND number > $3
		UNION ALL
		SELECT 1 FROM notices WHERE environment = $1 AND taxpayer_id = $2 AND number IS NULL
		LIMIT 1`, scope.Environment, scope.TaxpayerID, after).Scan(&one)
	return r.some("look for news", err)
}

// numberEvents gives places in the feed to notices that have none. Places are given
// under the lock of the feed's row and to committed notices alone, so that they
// appear in their order: whoever has read up to one never misses a lower one.
// Giving them in the transaction of a change would make all changes of a
// taxpayer wait for each other.
func (s *Store) numberEvents(ctx context.Context, scope Scope) error {
	var one int64
	err := s.q.QueryRowContext(ctx, `
		SELECT 1 FROM notices WHERE environment = $1 AND taxpayer_id = $2 AND number IS NULL LIMIT 1`,
		scope.Environment, scope.TaxpayerID).Scan(&one)
	if some, err := s.some("look for new notices", err); err != nil || !some {
		return err
	}
	return s.Update(ctx, func(tx *Tx) error {
		var last int64
		err := tx.q.QueryRowContext(ctx, `
			INSERT INTO feeds (environment, taxpayer_id, last_number) VALUES ($1, $2, 0)
			ON CONFLICT (environment, taxpayer_id) DO UPDATE SET last_number = feeds.last_number
			RETURNING last_number`, scope.Environment, scope.TaxpayerID).Scan(&last)
		if err != nil {
			return tx.d.wrap("lock feed", err)
		}
		n, err := statement{`
			WITH fresh AS MATERIALIZED (
				SELECT environment, taxpayer_id, id, row_number() OVER (ORDER BY at, id) AS place FROM (
					SELECT environment, taxpayer_id, id, at FROM notices
					WHERE environment = $1 AND taxpayer_id = $2 AND number IS NULL ORDER BY at, id LIMIT $4) AS waiting)
			UPDATE notices SET number = cast($3 AS bigint) + fresh.place FROM fresh
			WHERE notices.environment = fresh.environment AND notices.taxpayer_id = fresh.taxpayer_id AND notices.id = fresh.id`, []any{
			string(scope.Environment), scope.TaxpayerID, last, maxNumbered,
		}}.run(ctx, tx.q)
		if err != nil {
			return tx.d.wrap("number notices", err)
		}
		_, err = tx.q.ExecContext(ctx, `
			UPDATE feeds SET last_number = last_number + cast($3 AS bigint) WHERE environment = $1 AND taxpayer_id = $2`,
			scope.Environment, scope.TaxpayerID, n)
		return tx.d.wrap("number notices", err)
	})
}
