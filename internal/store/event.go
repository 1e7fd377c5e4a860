package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Event is an event for integrators. It is stored in the transaction of the change
// that it reports, and never changes or disappears.
type Event struct {
	Scope
	ID         string
	Kind       string
	DocumentID string // empty: the event is not about a document
	Revision   int64  // of the document
	At         time.Time
	Body       []byte // the exact bytes that endpoints receive
	Number     int64  // position in the feed; 0: it has none yet
}

const eventColumns = `id, environment, taxpayer_id, number, kind, document_id, revision, at, body`

// addEvent stores an event, and a delivery to each enabled endpoint that asks for its
// kind. A disabled endpoint gets the event only by a replay.
func addEvent(e Event) []statement {
	return []statement{
		do(`
		INSERT INTO events (environment, taxpayer_id, id, kind, document_id, revision, at, body)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
			string(e.Environment), e.TaxpayerID, e.ID, e.Kind, e.DocumentID, e.Revision, micros(e.At), e.Body),
		do(`
		INSERT INTO webhook_deliveries (`+deliveryColumns+`)
		SELECT id, cast($3 AS text), environment, taxpayer_id, cast($4 AS text), cast($5 AS text), cast($6 AS bigint), 'pending', 0,
			cast($7 AS bigint), '', 0, cast($7 AS bigint)
		FROM endpoints
		WHERE environment = $1 AND taxpayer_id = $2 AND status = 'enabled'
			AND (kinds LIKE '%,*,%' OR kinds LIKE cast($8 AS text))`,
			string(e.Environment), e.TaxpayerID, e.ID, e.Kind, e.DocumentID, e.Revision, micros(e.At), "%,"+e.Kind+",%"),
	}
}

// freshDelivery are the first values of a new delivery of event n to endpoint e, in the
// order of deliveryColumns. The statement adds run_at, lease, lease_until and
// created_at.
const freshDelivery = `e.id, n.id, n.environment, n.taxpayer_id, n.kind, n.document_id, n.revision, 'pending', 0`

// wanted joins an endpoint e to the events n of the kinds that it asks for.
const wanted = `e.environment = n.environment AND e.taxpayer_id = n.taxpayer_id
	AND (e.kinds LIKE '%,*,%' OR e.kinds LIKE '%,' || n.kind || ',%')`

// AddEvent stores an event with its deliveries.
func (tx *Tx) AddEvent(ctx context.Context, e Event) error {
	for _, s := range addEvent(e) {
		if _, err := tx.write(ctx, "add event", s); err != nil {
			return err
		}
	}
	return nil
}

// AddEvent stores an event with its deliveries.
func (b *Batch) AddEvent(e Event) *Batch {
	for _, s := range addEvent(e) {
		b.add(s, nil)
	}
	return b
}

// Event reads one event.
func (r reader) Event(ctx context.Context, scope Scope, id string) (Event, error) {
	return one(r.rows(ctx, "read event", `
		SELECT id, environment, taxpayer_id, coalesce(number, 0), kind, document_id, revision, at, body FROM events
		WHERE environment = $1 AND taxpayer_id = $2 AND id = $3`, scope.Environment, scope.TaxpayerID, id), (*Event).columns)
}

func (e *Event) columns() []any {
	return []any{&e.ID, &e.Environment, &e.TaxpayerID, &e.Number, &e.Kind, &e.DocumentID, &e.Revision, instant(&e.At), &e.Body}
}

const (
	maxNumbered = 512         // how many events one call of Feed numbers
	numberWait  = time.Second // how long Feed waits to number them
)

// Feed reads the events of a taxpayer after a position in its feed, in order. It first
// numbers the committed events that have no position. While it cannot write, it
// returns the events that have one.
//
// When after is a position that the feed has not reached, the database is an older copy of
// the database that the client has read. New events then get positions after it.
func (s *Store) Feed(ctx context.Context, scope Scope, after int64, limit int) ([]Event, error) {
	soon, cancel := context.WithTimeout(ctx, numberWait)
	defer cancel()
	if err := s.numberEvents(soon, scope, after); err != nil && !errors.Is(err, ErrUnavailable) && soon.Err() == nil {
		return nil, err
	}
	return collect(s.rows(ctx, "read feed", `
		SELECT `+eventColumns+` FROM events
		WHERE environment = $1 AND taxpayer_id = $2 AND number > $3 ORDER BY number LIMIT $4`,
		scope.Environment, scope.TaxpayerID, after, limit), (*Event).columns)
}

// HasEvents reports whether a taxpayer has events after a position in its feed, or
// events without a position.
func (r reader) HasEvents(ctx context.Context, scope Scope, after int64) (bool, error) {
	return r.exists(ctx, "find events", `
		SELECT 1 FROM events WHERE environment = $1 AND taxpayer_id = $2 AND number > $3
		UNION ALL
		SELECT 1 FROM events WHERE environment = $1 AND taxpayer_id = $2 AND number IS NULL
		LIMIT 1`, scope.Environment, scope.TaxpayerID, after)
}

// numberEvents gives a position in the feed to the events that have none. It numbers
// only committed events, under a lock on the row of the feed. So positions become visible
// in their order, and a client that has read up to one never misses a lower
// one. A change does not number its own events: all changes of a taxpayer would have
// to wait for each other.
func (s *Store) numberEvents(ctx context.Context, scope Scope, after int64) error {
	some, err := s.exists(ctx, "find events without a position", `
		SELECT 1 FROM events WHERE environment = $1 AND taxpayer_id = $2 AND number IS NULL LIMIT 1`, scope.Environment, scope.TaxpayerID)
	if err != nil || !some {
		return err
	}
	return s.Update(ctx, func(tx *Tx) error { return tx.numberEvents(ctx, scope, after) })
}

// numberEvents numbers at most maxNumbered events under the lock of the feed, with positions
// above after.
func (tx *Tx) numberEvents(ctx context.Context, scope Scope, after int64) error {
	last, err := one(tx.rows(ctx, "lock feed", `
		INSERT INTO feeds (environment, taxpayer_id, last_number) VALUES ($1, $2, $3)
		ON CONFLICT (environment, taxpayer_id) DO UPDATE
			SET last_number = CASE WHEN feeds.last_number < excluded.last_number THEN excluded.last_number ELSE feeds.last_number END
		RETURNING last_number`, scope.Environment, scope.TaxpayerID, after), only[int64])
	if err != nil {
		return err
	}
	fresh, err := collect(tx.rows(ctx, "find events without a position", `
		SELECT at, id FROM events
		WHERE environment = $1 AND taxpayer_id = $2 AND number IS NULL ORDER BY at, id LIMIT `+strconv.Itoa(maxNumbered),
		scope.Environment, scope.TaxpayerID), func(e *eventKey) []any { return []any{&e.at, &e.id} })
	if err != nil || len(fresh) == 0 {
		return err
	}
	n, err := giveNumbers(scope, last, fresh).Run(ctx, tx.q)
	if err == nil && n != int64(len(fresh)) {
		err = fmt.Errorf("%d events got a position, want %d", n, len(fresh))
	}
	if err != nil {
		return tx.d.wrap("number events", err)
	}
	return tx.exec(ctx, "number events", `
		UPDATE feeds SET last_number = last_number + cast($3 AS bigint) WHERE environment = $1 AND taxpayer_id = $2`,
		scope.Environment, scope.TaxpayerID, n)
}

// giveNumbers returns the statement that gives events the positions after last, in their
// order. It names every event, and the time of the first and of the last, so that each
// index that the planner may choose leads to a few rows. A join with the events would
// make PostgreSQL compare each of them with the whole history.
func giveNumbers(scope Scope, last int64, events []eventKey) statement {
	ids := make([]string, len(events))
	for i, e := range events {
		ids[i] = e.id
	}
	list, values := placeholdersFrom(6, ids)
	var position strings.Builder
	for i, mark := range strings.Split(list, ", ") {
		position.WriteString(" WHEN " + mark + " THEN " + strconv.Itoa(i+1))
	}
	args := []any{string(scope.Environment), scope.TaxpayerID, last, events[0].at, events[len(events)-1].at}
	return do(`
		UPDATE events SET number = cast($3 AS bigint) + CASE id`+position.String()+` END
		WHERE environment = $1 AND taxpayer_id = $2 AND at >= $4 AND at <= $5 AND id IN (`+list+`)`, append(args, values...)...)
}
