package store

import (
	"context"
	"time"
)

// ReplayEvent makes an event due for an endpoint again, even if the endpoint has
// received it or does not ask for its kind. It returns the number of deliveries. The
// error is ErrNotFound when there is no such endpoint or event.
func (s *Store) ReplayEvent(ctx context.Context, scope Scope, endpointID, eventID string, now time.Time) (n int64, err error) {
	return s.replay(ctx, scope, endpointID, func(tx *Tx) (int64, error) {
		if _, err := tx.Event(ctx, scope, eventID); err != nil {
			return 0, err
		}
		return statement{`
			INSERT INTO deliveries (` + deliveryColumns + `)
			SELECT ` + freshDelivery + `, cast($5 AS bigint), '', 0, cast($5 AS bigint)
			FROM notices n JOIN endpoints e ON e.environment = n.environment AND e.taxpayer_id = n.taxpayer_id
			WHERE n.environment = $1 AND n.taxpayer_id = $2 AND e.id = $3 AND n.id = $4
			` + startOver, []any{string(scope.Environment), scope.TaxpayerID, endpointID, eventID, micros(now)}}.run(ctx, tx.q)
	})
}

// ReplaySince makes all events since a moment due for an endpoint again, if it asks
// for their kind. These include the events from before its creation and from the time
// when it was disabled. It returns the number of deliveries. The error is ErrNotFound
// when there is no such endpoint.
func (s *Store) ReplaySince(ctx context.Context, scope Scope, endpointID string, since, now time.Time) (n int64, err error) {
	return s.replay(ctx, scope, endpointID, func(tx *Tx) (int64, error) {
		return statement{`
			INSERT INTO deliveries (` + deliveryColumns + `)
			SELECT ` + freshDelivery + `, cast($5 AS bigint), '', 0, cast($5 AS bigint)
			FROM notices n JOIN endpoints e ON ` + wanted + `
			WHERE n.environment = $1 AND n.taxpayer_id = $2 AND e.id = $3 AND n.at >= $4
			` + startOver, []any{string(scope.Environment), scope.TaxpayerID, endpointID, micros(since), micros(now)}}.run(ctx, tx.q)
	})
}

// startOver makes an existing delivery pending again. It keeps the lease, so that a
// delivery in progress is not sent twice at the same time.
const startOver = `ON CONFLICT (endpoint_id, notice_id) DO UPDATE SET state = 'pending', attempt = 0, run_at = excluded.run_at`

// missedMargin is how much earlier than its disabling an endpoint may have missed an
// event. An event has the time of its change, which is before the commit.
const missedMargin = time.Minute

// ReplayFailed makes the events due that an endpoint did not receive: the failed
// deliveries, and the events from the time when it was disabled. It returns the number
// of deliveries. The error is ErrNotFound when there is no such endpoint.
func (s *Store) ReplayFailed(ctx context.Context, scope Scope, endpointID string, now time.Time) (n int64, err error) {
	return s.replay(ctx, scope, endpointID, func(tx *Tx) (int64, error) {
		failed, err := statement{`
			UPDATE deliveries SET state = 'pending', attempt = 0, run_at = $4
			WHERE environment = $1 AND taxpayer_id = $2 AND endpoint_id = $3 AND state = 'failed'`,
			[]any{string(scope.Environment), scope.TaxpayerID, endpointID, micros(now)}}.run(ctx, tx.q)
		if err != nil {
			return 0, err
		}
		missed, err := statement{`
			INSERT INTO deliveries (` + deliveryColumns + `)
			SELECT ` + freshDelivery + `, cast($4 AS bigint), '', 0, cast($4 AS bigint)
			FROM notices n JOIN endpoints e ON ` + wanted + `
			WHERE n.environment = $1 AND n.taxpayer_id = $2 AND e.id = $3 AND n.at >= e.created_at AND n.at >= e.missed_since - $5
			ON CONFLICT (endpoint_id, notice_id) DO NOTHING`,
			[]any{string(scope.Environment), scope.TaxpayerID, endpointID, micros(now), missedMargin.Microseconds()}}.run(ctx, tx.q)
		if err != nil {
			return 0, err
		}
		_, err = tx.q.ExecContext(ctx, `
			UPDATE endpoints SET missed_since = CASE WHEN status = 'disabled' THEN cast($4 AS bigint) END
			WHERE environment = $1 AND taxpayer_id = $2 AND id = $3 AND missed_since IS NOT NULL`,
			scope.Environment, scope.TaxpayerID, endpointID, micros(now))
		return failed + missed, err
	})
}

// replay runs fn in a transaction after a check that the endpoint exists.
func (s *Store) replay(ctx context.Context, scope Scope, endpointID string, fn func(*Tx) (int64, error)) (n int64, err error) {
	err = s.Update(ctx, func(tx *Tx) error {
		if _, err := tx.Endpoint(ctx, scope, endpointID); err != nil {
			return err
		}
		var err error
		n, err = fn(tx)
		return tx.d.wrap("replay", err)
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}
