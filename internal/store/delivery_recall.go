package store

import (
	"context"
	"strconv"
)

// recallBatch is how many deliveries of an endpoint one statement of recall makes due.
const recallBatch = 500

// recall makes deliveries due that a clock stored which was ahead: those that wait for
// longer than any pause, and those that wait although no attempt has failed. It reports
// whether there were any. It does not touch a delivery that a sender holds.
func (s *Store) recall(ctx context.Context, c DeliveryClaim, waiting []*candidate) (recalled bool, err error) {
	for _, one := range waiting {
		if !one.far {
			continue
		}
		err := s.Update(ctx, func(tx *Tx) error {
			// Each has the order of an index, so that the planner uses it.
			for _, far := range []struct {
				condition string
				after     int64
			}{
				{`attempt = 0 AND`, farAhead(c.Now, 0)},
				{``, farAhead(c.Now, LongestDeliveryPause)},
			} {
				changed, err := tx.write(ctx, "recall deliveries", do(`
					UPDATE webhook_deliveries SET run_at = $4
					WHERE environment = $1 AND taxpayer_id = $2 AND endpoint_id = $3 AND event_id IN (
						SELECT event_id FROM webhook_deliveries
						WHERE endpoint_id = $3 AND state = 'pending' AND `+far.condition+` run_at > $5 AND (lease_until <= $4 OR lease_until > $6)
						ORDER BY endpoint_id, run_at, revision, event_id LIMIT `+strconv.Itoa(recallBatch)+`)`,
					string(one.Environment), one.TaxpayerID, one.id, micros(c.Now), far.after, micros(c.Now.Add(longestLease))))
				if err != nil {
					return err
				}
				recalled = recalled || changed
			}
			return nil
		})
		if err != nil {
			return false, err
		}
	}
	return recalled, nil
}
