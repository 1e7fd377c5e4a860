package store

import (
	"context"
	"strconv"
)

// closeBatch is how many deliveries of a deleted endpoint one transaction closes at
// most.
const closeBatch = 500

// closeDeliveries fails pending deliveries of a deleted endpoint, at most limit, and
// returns how many. A sender that works on one of them loses its lease.
func (tx *Tx) closeDeliveries(ctx context.Context, scope Scope, endpointID string, limit int) (int64, error) {
	n, err := statement{`
		UPDATE webhook_deliveries SET state = 'failed', lease = '', lease_until = 0
		WHERE environment = $1 AND taxpayer_id = $2 AND endpoint_id = $3 AND event_id IN (
			SELECT event_id FROM webhook_deliveries WHERE endpoint_id = $3 AND state = 'pending'
			ORDER BY run_at, revision, event_id LIMIT ` + strconv.Itoa(limit) + `)`, []any{
		string(scope.Environment), scope.TaxpayerID, endpointID,
	}}.run(ctx, tx.q)
	return n, tx.d.wrap("close deliveries", err)
}

// closeDeleted fails the pending deliveries of deleted endpoints in transactions of at
// most closeBatch, until it has closed limit. more reports that it stopped at the limit.
// An endpoint that was deleted with more deliveries than closeBatch has some, and so has
// one that was deleted while an event was added.
func (s *Store) closeDeleted(ctx context.Context, limit int, closed *int) (more bool, err error) {
	rows, err := s.q.QueryContext(ctx, waitingEndpoints+`
		SELECT e.environment, e.taxpayer_id, e.id
		FROM waiting JOIN endpoints e ON e.id = waiting.id WHERE e.status = 'deleted'`)
	if err != nil {
		return false, s.d.wrap("find deleted endpoints", err)
	}
	deleted, err := collect(s.d, "find deleted endpoints", rows, func(row row) (e Endpoint, err error) {
		err = row.Scan(&e.Environment, &e.TaxpayerID, &e.ID)
		return e, err
	})
	if err != nil {
		return false, err
	}
	for _, e := range deleted {
		for {
			if *closed >= limit {
				return true, nil
			}
			batch := min(closeBatch, limit-*closed)
			var n int64
			err := s.Update(ctx, func(tx *Tx) (err error) {
				n, err = tx.closeDeliveries(ctx, e.Scope, e.ID, batch)
				return err
			})
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
