package store

import (
	"context"
	"math"
	"time"
)

// ReplayPlan says what a replay will do.
type ReplayPlan struct {
	Events  int64 // how many events the endpoint will receive again
	AtLeast bool  // there may be more: only the first maxCounted events were counted
}

// maxCounted limits how many events are counted for a ReplayPlan, so that the answer
// does not wait for the count of a long history.
const maxCounted = 10_000

// ReplayEvent makes an event due for an endpoint again, even if the endpoint has
// received it or does not ask for its kind. The error is ErrNotFound when there is no
// such endpoint or event.
func (s *Store) ReplayEvent(ctx context.Context, scope Scope, endpointID, eventID string, now time.Time) (plan ReplayPlan, err error) {
	err = s.Update(ctx, func(tx *Tx) error {
		if _, err := tx.Endpoint(ctx, scope, endpointID); err != nil {
			return err
		}
		if _, err := tx.Event(ctx, scope, eventID); err != nil {
			return err
		}
		n, err := tx.run(ctx, "replay event", do(`
			INSERT INTO webhook_deliveries (`+deliveryColumns+`)
			SELECT `+freshDelivery+`, cast($5 AS bigint), '', 0, cast($5 AS bigint)
			FROM events n JOIN endpoints e ON e.environment = n.environment AND e.taxpayer_id = n.taxpayer_id
			WHERE n.environment = $1 AND n.taxpayer_id = $2 AND e.id = $3 AND n.id = $4
			`+startOver, string(scope.Environment), scope.TaxpayerID, endpointID, eventID, micros(now)))
		plan = ReplayPlan{Events: n}
		if err != nil {
			return err
		}
		return tx.auditReplay(ctx, scope, endpointID, map[string]any{"event": eventID})
	})
	if err != nil {
		return ReplayPlan{}, err
	}
	return plan, nil
}

// startOver makes an existing delivery pending again. It keeps the lease, so that a
// delivery in progress is not sent twice at the same time.
const startOver = `ON CONFLICT (endpoint_id, event_id) DO UPDATE SET state = 'pending', attempt = 0, run_at = excluded.run_at`

// StartReplaySince stores a replay of all events since a moment up to now, if the
// endpoint asks for their kind. These include the events from before its creation and
// from the time when it was disabled. Any moment is valid: one before the first event
// selects all events, one after now selects none. RunReplayBatch works the replay off.
// The error is ErrNotFound when there is no such endpoint.
//
// When a replay of this endpoint is not done yet, it is extended to the events of both.
func (s *Store) StartReplaySince(ctx context.Context, scope Scope, endpointID string, since, now time.Time) (ReplayPlan, error) {
	if _, err := s.Endpoint(ctx, scope, endpointID); err != nil || since.After(now) {
		return ReplayPlan{}, err
	}
	from := boundedMicros(since)
	found, err := s.countEvents(ctx, scope, endpointID, from, micros(now))
	if err != nil {
		return ReplayPlan{}, err
	}
	err = s.Update(ctx, func(tx *Tx) error {
		err := tx.writeOne(ctx, "start replay", ErrNotFound, do(`
			INSERT INTO replays (`+replayColumns+`)
			SELECT id, environment, taxpayer_id, 'since', cast($4 AS bigint), '', cast($5 AS bigint), 0, cast($5 AS bigint)
			FROM endpoints
			WHERE environment = $1 AND taxpayer_id = $2 AND id = $3 AND status <> 'deleted'
			`+extendReplay, string(scope.Environment), scope.TaxpayerID, endpointID, from, micros(now)))
		if err != nil {
			return err
		}
		// The replay also sends what an enabled endpoint has missed since.
		err = tx.exec(ctx, "start replay", `
			UPDATE endpoints SET missed_since = NULL
			WHERE environment = $1 AND taxpayer_id = $2 AND id = $3 AND status = 'enabled' AND (missed_since - $5 >= $4 OR created_at >= $4)`,
			string(scope.Environment), scope.TaxpayerID, endpointID, from, missedMargin.Microseconds())
		if err != nil {
			return err
		}
		return tx.auditReplay(ctx, scope, endpointID, map[string]any{"since": auditTime(since)})
	})
	if err != nil {
		return ReplayPlan{}, err
	}
	return found.plan(found.wanted), nil
}

// auditReplay records in the audit log which events are sent again.
func (tx *Tx) auditReplay(ctx context.Context, scope Scope, endpointID string, what map[string]any) error {
	return tx.Audit(ctx, AuditEntry{scope, "webhook.replay", "webhook:" + endpointID, nil, what})
}

// missedMargin is how much earlier than its disabling, and later than its enabling, an
// endpoint may have missed an event. An event has the time of its change, which is before
// the commit, and the clock of another node may be ahead.
const missedMargin = time.Minute

// StartReplayFailed stores a replay of the events that an endpoint did not receive: the
// failed deliveries, and the events from the time when it was disabled. RunReplayBatch
// works the replay off. The error is ErrNotFound when there is no such endpoint.
func (s *Store) StartReplayFailed(ctx context.Context, scope Scope, endpointID string, now time.Time) (ReplayPlan, error) {
	plan, err := s.countFailed(ctx, scope, endpointID)
	if err != nil {
		return ReplayPlan{}, err
	}
	err = s.Update(ctx, func(tx *Tx) error {
		key := []any{string(scope.Environment), scope.TaxpayerID, endpointID}
		err := tx.writeOne(ctx, "start replay", ErrNotFound, do(`
			INSERT INTO replays (`+replayColumns+`)
			SELECT id, environment, taxpayer_id, 'failed', 0, '', cast($4 AS bigint), 0, cast($5 AS bigint)
			FROM endpoints
			WHERE environment = $1 AND taxpayer_id = $2 AND id = $3 AND status <> 'deleted'
			`+extendReplay, append(key[:3:3], int64(math.MaxInt64), micros(now))...))
		if err != nil {
			return err
		}
		// An event that has a delivery does not get a second one. Delivered deliveries are
		// deleted after keepDelivered, so the search ends when the endpoint was enabled.
		err = tx.exec(ctx, "start replay", `
			INSERT INTO replays (`+replayColumns+`)
			SELECT id, environment, taxpayer_id, 'missed', CASE WHEN missed_since - $6 > created_at THEN missed_since - $6 ELSE created_at END, '',
				coalesce(CASE WHEN status = 'enabled' AND missed_until >= missed_since THEN missed_until + $6 END, cast($4 AS bigint)), 0, cast($5 AS bigint)
			FROM endpoints
			WHERE environment = $1 AND taxpayer_id = $2 AND id = $3 AND missed_since IS NOT NULL
			`+extendReplay, append(key[:3:3], int64(math.MaxInt64), micros(now), missedMargin.Microseconds())...)
		if err != nil {
			return err
		}
		err = tx.exec(ctx, "start replay", `
			UPDATE endpoints SET missed_since = CASE WHEN status = 'disabled' THEN cast($4 AS bigint) END, missed_until = NULL
			WHERE environment = $1 AND taxpayer_id = $2 AND id = $3 AND missed_since IS NOT NULL`, append(key[:3:3], micros(now))...)
		if err != nil {
			return err
		}
		return tx.auditReplay(ctx, scope, endpointID, map[string]any{"failed": true})
	})
	if err != nil {
		return ReplayPlan{}, err
	}
	return plan, nil
}

// countFailed counts the failed deliveries of an endpoint, and the events that it missed
// while it was disabled.
func (s *Store) countFailed(ctx context.Context, scope Scope, endpointID string) (ReplayPlan, error) {
	var failed int64
	missed, end := int64(-1), int64(math.MaxInt64)
	margin := missedMargin.Microseconds()
	created, err := one(s.rows(ctx, "count failed deliveries", `
		SELECT created_at, missed_since, CASE WHEN status = 'enabled' AND missed_until >= missed_since THEN missed_until END, (SELECT count(*) FROM (
			SELECT 1 FROM webhook_deliveries d WHERE d.endpoint_id = endpoints.id AND d.state = 'failed' LIMIT $4) AS failed)
		FROM endpoints
		WHERE environment = $1 AND taxpayer_id = $2 AND id = $3 AND status <> 'deleted'`,
		scope.Environment, scope.TaxpayerID, endpointID, maxCounted+1), func(created *int64) []any {
		return []any{created, into(func(since int64) { missed = since }), into(func(until int64) { end = until + margin }), &failed}
	})
	if err != nil {
		return ReplayPlan{}, err
	}
	plan := ReplayPlan{Events: min(failed, maxCounted), AtLeast: failed > maxCounted}
	if missed < 0 {
		return plan, nil
	}
	found, err := s.countEvents(ctx, scope, endpointID, max(created, missed-margin), end)
	more := found.plan(found.wanted - found.delivered)
	return ReplayPlan{Events: plan.Events + more.Events, AtLeast: plan.AtLeast || more.AtLeast}, err
}

// eventCount is the result of countEvents.
type eventCount struct {
	all       int64 // events in the range, up to maxCounted + 1
	wanted    int64 // of these, the ones of a kind that the endpoint asks for
	delivered int64 // of these, the ones that have a delivery
}

func (c eventCount) plan(events int64) ReplayPlan {
	return ReplayPlan{Events: min(events, maxCounted), AtLeast: c.all > maxCounted}
}

// countEvents counts the first events between two moments.
func (r reader) countEvents(ctx context.Context, scope Scope, endpointID string, from, until int64) (eventCount, error) {
	return one(r.rows(ctx, "count events", `
		SELECT count(*), count(e.id), count(d.event_id)
		FROM (SELECT environment, taxpayer_id, id, kind FROM events
			WHERE environment = $1 AND taxpayer_id = $2 AND at >= $4 AND at <= $5 ORDER BY at LIMIT $6) AS n
		LEFT JOIN endpoints e ON e.id = $3 AND `+wanted+`
		LEFT JOIN webhook_deliveries d ON d.endpoint_id = e.id AND d.event_id = n.id`,
		scope.Environment, scope.TaxpayerID, endpointID, from, until, maxCounted+1), func(c *eventCount) []any { return []any{&c.all, &c.wanted, &c.delivered} })
}

// boundedMicros is micros for a moment that a client has chosen. A moment that the stored
// form cannot hold becomes the nearest one that it can.
func boundedMicros(t time.Time) int64 {
	switch {
	case t.Before(time.UnixMicro(math.MinInt64)):
		return math.MinInt64
	case t.After(time.UnixMicro(math.MaxInt64)):
		return math.MaxInt64
	}
	return micros(t)
}
