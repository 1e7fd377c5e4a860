package store

import (
	"context"
	"time"
)

// ReplayEvent has an endpoint told of a notice once more, whether or not it was
// told before, or had asked for that kind.
func (s *Store) ReplayEvent(ctx context.Context, scope Scope, endpointID, noticeID string, now time.Time) (n int64, err error) {
	return s.replay(ctx, scope, endpointID, func(tx *Tx) (int64, error) {
		if _, err := tx.Event(ctx, scope, noticeID); err != nil {
			return 0, err
		}
		return statement{`
			INSERT INTO deliveries (` + deliveryColumns + `)
			SELECT ` + freshDelivery + `, cast($5 AS bigint), '', 0, cast($5 AS bigint)
			FROM notices n JOIN endpoints e ON e.environment = n.environment AND e.taxpayer_id = n.taxpayer_id
			WHERE n.environment = $1 AND n.taxpayer_id = $2 AND e.id = $3 AND n.id = $4
			` + startOver, []any{string(scope.Environment), scope.TaxpayerID, endpointID, noticeID, micros(now)}}.run(ctx, tx.q)
	})
}

// ReplaySince has an endpoint told once more of all that it asks for since a
// moment, also of what it missed while it was disabled or before it was made.
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

// startOver is what a replay does to a delivery that there is. One under way is
// not sent twice: it ends as it ends.
const startOver = `ON CONFLICT (endpoint_id, notice_id) DO UPDATE SET state = 'pending', attempt = 0, run_at = excluded.run_at`

// missedMargin is how much earlier than it was disabled an endpoint may have
// missed something: what is told of has the time of its change, not of its commit.
const missedMargin = time.Minute

// ReplayFailed has an endpoint told of all that it was not told of: what failed
// for good, and what it missed while it was disabled.
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

// replay runs fn for an endpoint that there is.
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
