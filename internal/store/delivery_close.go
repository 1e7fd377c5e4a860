package store

import (
	"context"
	"strconv"
)

// closeBatch is how many deliveries of a deleted endpoint one transaction closes at
// most.
const closeBatch = 500

// closeDeliveries fails pending deliveries of a deleted endpoint, at most limit. A sender that
// works on one of them loses its lease.
func closeDeliveries(scope Scope, endpointID string, limit int) statement {
	return do(`
		UPDATE webhook_deliveries SET state = 'failed', lease = '', lease_until = 0
		WHERE environment = $1 AND taxpayer_id = $2 AND endpoint_id = $3 AND event_id IN (
			SELECT event_id FROM webhook_deliveries WHERE endpoint_id = $3 AND state = 'pending'
			ORDER BY run_at, revision, event_id LIMIT `+strconv.Itoa(limit)+`)`,
		string(scope.Environment), scope.TaxpayerID, endpointID)
}

// closeDeleted fails the pending deliveries of deleted endpoints in transactions of at
// most closeBatch, until it has closed limit. more reports that it stopped at the limit.
// An endpoint that was deleted with more deliveries than closeBatch has some, and so has
// one that was deleted while an event was added.
func (s *Store) closeDeleted(ctx context.Context, limit int, closed *int) (more bool, err error) {
	deleted, err := collect(s.rows(ctx, "find deleted endpoints", waitingEndpoints+`
		SELECT e.environment, e.taxpayer_id, e.id
		FROM waiting JOIN endpoints e ON e.id = waiting.id WHERE e.status = 'deleted'`), func(e *Endpoint) []any { return []any{&e.Environment, &e.TaxpayerID, &e.ID} })
	if err != nil {
		return false, err
	}
	for _, e := range deleted {
		for {
			if *closed >= limit {
				return true, nil
			}
			batch := min(closeBatch, limit-*closed)
			n, err := s.run(ctx, "close deliveries", closeDeliveries(e.Scope, e.ID, batch))
			if err != nil {
				return false, err
			}
			*closed += int(n)
			if n < int64(batch) {
				break
			}
		}
	}
	return false, nil
}
