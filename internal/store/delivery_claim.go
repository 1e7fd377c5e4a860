package store

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// DeliveryClaim is the request of a sender for due deliveries.
type DeliveryClaim struct {
	Environment fiscal.Environment
	Lease       string
	Now, Until  time.Time
	Limit       int
	Failing     int // how many of Limit may go to endpoints whose last attempt failed
	// Ahead is how many more deliveries than Limit the claim may take. It takes them only
	// for an endpoint whose last attempt succeeded, while no other sender holds a delivery
	// to it. The sender starts each of them when an attempt to the endpoint ends.
	Ahead  int
	Sender string // every lease of this sender begins with it; required for Ahead
}

// maxHeldAlone is how many deliveries of an endpoint a sender may hold while no other
// sender holds one.
const maxHeldAlone = 16 * MaxConcurrency

// candidate is an endpoint with pending deliveries.
type candidate struct {
	Scope
	id                    string
	failures, concurrency int64
	due                   int64 // when its earliest free delivery became due
	held                  int64 // deliveries under a lease
	others                int64 // how many of them other senders hold
	idle                  bool  // no delivery is both due and free
	far                   bool  // a clock that was ahead has stored a delivery
	share                 int   // how many deliveries this claim takes for it
	ahead                 int   // how many it may take above its share
}

// maxHeld is how many deliveries to the endpoint may be in progress at a time. It is
// one for an endpoint that has failed too often.
func (c *candidate) maxHeld() int64 {
	if c.failures >= FailureThreshold {
		return 1
	}
	return c.concurrency
}

// ClaimDeliveries leases due deliveries to a sender. No other sender gets them before
// the lease ends. A lease or a rest that ends later than longestLease was taken while
// the clock was wrong, and counts as over.
//
// Taxpayers take turns, and so do the endpoints of a taxpayer: no endpoint waits for
// the backlog of another. All nodes together send at most Concurrency deliveries to
// an endpoint at a time. The deliveries of an endpoint come in the order in which they
// are due. The deliveries of a document come one at a time, in the order of its
// revisions.
//
// With Ahead, a sender may hold more than Concurrency deliveries to an endpoint. The other
// senders then take none, so the limit holds when the sender keeps it.
func (s *Store) ClaimDeliveries(ctx context.Context, c DeliveryClaim) ([]Delivery, error) {
	waiting, err := s.candidates(ctx, c)
	if err != nil {
		return nil, err
	}
	if recalled, err := s.recall(ctx, c, waiting); err != nil {
		return nil, err
	} else if recalled {
		if waiting, err = s.candidates(ctx, c); err != nil {
			return nil, err
		}
	}
	chosen := append(share(waiting, c.Limit, c.Failing), refillable(waiting)...)
	chosen = shareAhead(chosen, c.Ahead)
	if len(chosen) == 0 {
		return nil, nil // avoids a commit when nothing is due
	}
	var claimed []Delivery
	err = s.Update(ctx, func(tx *Tx) error {
		claimed = nil
		for _, one := range chosen {
			some, err := tx.claimFrom(ctx, c, one)
			if err != nil {
				return err
			}
			claimed = append(claimed, some...)
		}
		return nil
	})
	if err != nil {
		return nil, err // the engine may not have committed the claim
	}
	slices.SortStableFunc(claimed, byDue)
	return claimed, nil
}

// waitingEndpoints begins a query with the endpoints that have pending deliveries, of
// all taxpayers and environments. It steps from one endpoint to the next in the index
// deliveries_due. The ORDER BY names all columns of that index, so that the planner
// uses no other one.
const waitingEndpoints = `
		WITH RECURSIVE waiting (id) AS (
			SELECT (SELECT endpoint_id FROM webhook_deliveries
				WHERE state = 'pending'
				ORDER BY endpoint_id, run_at, revision, event_id LIMIT 1)
			UNION ALL
			SELECT (SELECT endpoint_id FROM webhook_deliveries
				WHERE state = 'pending' AND endpoint_id > waiting.id
				ORDER BY endpoint_id, run_at, revision, event_id LIMIT 1)
			FROM waiting WHERE waiting.id IS NOT NULL)`

// candidates lists the enabled endpoints of the environment that have pending
// deliveries and do not rest. Its cost does not grow with the number of deliveries.
func (s *Store) candidates(ctx context.Context, c DeliveryClaim) ([]*candidate, error) {
	return collect(s.rows(ctx, "find due deliveries", waitingEndpoints+`
		SELECT e.environment, e.taxpayer_id, e.id, e.failures, e.concurrency,
			(SELECT d.run_at FROM webhook_deliveries d
				WHERE d.endpoint_id = e.id AND d.state = 'pending' AND d.run_at <= $2 AND (d.lease_until <= $2 OR d.lease_until > $4)
				ORDER BY d.run_at, d.revision, d.event_id LIMIT 1) AS due,
			(SELECT count(*) FROM webhook_deliveries h WHERE h.endpoint_id = e.id AND h.lease <> '' AND h.lease_until > $2 AND h.lease_until <= $4) AS held,
			(SELECT count(*) FROM webhook_deliveries h WHERE h.endpoint_id = e.id AND h.lease <> '' AND h.lease_until > $2 AND h.lease_until <= $4
				AND substr(h.lease, 1, length(cast($5 AS text))) <> $5) AS others,
			coalesce(
				(SELECT 1 FROM webhook_deliveries d WHERE d.endpoint_id = e.id AND d.state = 'pending' AND d.attempt = 0 AND d.run_at > $6
					AND (d.lease_until <= $2 OR d.lease_until > $4)
					ORDER BY d.endpoint_id, d.run_at, d.revision, d.event_id LIMIT 1),
				(SELECT 1 FROM webhook_deliveries d WHERE d.endpoint_id = e.id AND d.state = 'pending' AND d.run_at > $7
					AND (d.lease_until <= $2 OR d.lease_until > $4)
					ORDER BY d.endpoint_id, d.run_at, d.revision, d.event_id LIMIT 1), 0) AS far
		FROM waiting JOIN endpoints e ON e.id = waiting.id
		WHERE e.environment = $1 AND e.status = 'enabled' AND (e.failures < $3 OR e.rest_until <= $2 OR e.rest_until > $4)`,
		c.Environment, micros(c.Now), FailureThreshold, micros(c.Now.Add(longestLease)), c.Sender,
		farAhead(c.Now, 0), farAhead(c.Now, LongestDeliveryPause)), func(to **candidate) []any {
		one := &candidate{idle: true}
		*to = one
		due := into(func(due int64) { one.due, one.idle = due, false })
		return []any{&one.Environment, &one.TaxpayerID, &one.id, &one.failures, &one.concurrency, due, &one.held, &one.others, &one.far}
	})
}

// share divides limit deliveries among the endpoints, one at a time. Each one goes to
// the taxpayer with the fewest deliveries in progress, then to its endpoint with the
// fewest, then to the endpoint that has waited longest. At most failing of them go to
// endpoints whose last attempt failed. It returns the endpoints that got a share.
func share(waiting []*candidate, limit, failing int) []*candidate {
	waiting = slices.Clone(waiting)
	busy := make(map[string]int64)
	for _, one := range waiting {
		busy[one.TaxpayerID] += one.held
	}
	var chosen []*candidate
	for ; limit > 0; limit-- {
		waiting = slices.DeleteFunc(waiting, func(one *candidate) bool {
			return one.idle || one.held >= one.maxHeld() || (one.failures > 0 && failing == 0)
		})
		if len(waiting) == 0 {
			break
		}
		next := slices.MinFunc(waiting, func(a, b *candidate) int {
			return cmp.Or(cmp.Compare(busy[a.TaxpayerID], busy[b.TaxpayerID]), cmp.Compare(a.held, b.held),
				cmp.Compare(a.due, b.due), strings.Compare(a.id, b.id))
		})
		if next.share == 0 {
			chosen = append(chosen, next)
		}
		if next.failures > 0 {
			failing--
		}
		next.share++
		next.held++
		busy[next.TaxpayerID]++
	}
	return chosen
}

// refillable returns the endpoints that get no share, because the sender holds as many
// deliveries as may be in progress, but has little left of what it claimed ahead. When it
// claimed more only after the last of them, the endpoint would wait for the claim.
func refillable(waiting []*candidate) (some []*candidate) {
	for _, one := range waiting {
		if one.share == 0 && !one.idle && one.others == 0 && one.held >= one.maxHeld() && one.held <= maxHeldAlone/2 {
			some = append(some, one)
		}
	}
	return some
}

// shareAhead divides ahead more deliveries evenly among the chosen endpoints that do not
// fail. It returns the endpoints for which there is something to claim.
func shareAhead(chosen []*candidate, ahead int) []*candidate {
	for i, one := range chosen {
		if one.failures == 0 {
			one.ahead = min(ahead/(len(chosen)-i), maxHeldAlone)
			ahead -= one.ahead
		}
	}
	return slices.DeleteFunc(chosen, func(one *candidate) bool { return one.share+one.ahead == 0 })
}

// claimFrom leases deliveries of one endpoint. It locks the row of the endpoint, so
// that two nodes do not both count the same deliveries in progress. It takes nothing
// while another node has the lock.
func (tx *Tx) claimFrom(ctx context.Context, c DeliveryClaim, from *candidate) ([]Delivery, error) {
	endpoint, err := one(tx.rows(ctx, "lock endpoint", `
		SELECT `+endpointColumns+` FROM endpoints
		WHERE environment = $1 AND taxpayer_id = $2 AND id = $3 AND status = 'enabled' AND (failures < $4 OR rest_until <= $5 OR rest_until > $6) `+
		tx.d.SkipLocked, from.Environment, from.TaxpayerID, from.id, FailureThreshold, micros(c.Now), micros(c.Now.Add(longestLease))), (*Endpoint).columns)
	if err != nil {
		return nil, ifFound(err)
	}
	now := candidate{failures: endpoint.Failures, concurrency: endpoint.Concurrency}
	most, mostAlone, all := now.maxHeld(), now.maxHeld(), from.share
	if from.ahead > 0 && now.failures == 0 && now.concurrency >= from.concurrency {
		mostAlone, all = maxHeldAlone, from.share+from.ahead
	}
	// MATERIALIZED: the planner could otherwise evaluate the choice again for each
	// row, and claim more than the limit.
	claimed, err := collect(tx.rows(ctx, "claim deliveries", `
		WITH held AS MATERIALIZED (
			SELECT count(*) AS number, sum(CASE WHEN substr(lease, 1, length(cast($12 AS text))) = $12 THEN 0 ELSE 1 END) AS others
			FROM webhook_deliveries WHERE endpoint_id = $3 AND lease <> '' AND lease_until > $4 AND lease_until <= $9),
		room AS MATERIALIZED (
			SELECT CASE WHEN others > 0 THEN cast($7 AS bigint) ELSE cast($11 AS bigint) END - number AS free,
				CASE WHEN others > 0 THEN cast($8 AS bigint) ELSE cast($10 AS bigint) END AS wanted FROM held),
		chosen AS MATERIALIZED (
			SELECT d.event_id FROM webhook_deliveries d
			WHERE d.environment = $1 AND d.taxpayer_id = $2 AND d.endpoint_id = $3
				AND d.state = 'pending' AND d.run_at <= $4 AND (d.lease_until <= $4 OR d.lease_until > $9)
				AND (d.document_id = '' OR NOT EXISTS (
					SELECT 1 FROM webhook_deliveries o
					WHERE o.endpoint_id = d.endpoint_id AND o.document_id = d.document_id AND o.state = 'pending' AND o.event_id <> d.event_id
						AND ((o.lease_until > $4 AND o.lease_until <= $9) OR (o.run_at <= $4
							AND (o.run_at, o.revision, o.event_id) < (d.run_at, d.revision, d.event_id)))))
			ORDER BY d.run_at, d.revision, d.event_id
			LIMIT (SELECT CASE WHEN free < 0 THEN 0 WHEN free < wanted THEN free ELSE wanted END FROM room) `+tx.d.SkipLocked+`)
		UPDATE webhook_deliveries SET lease = $5, lease_until = $6
		WHERE environment = $1 AND taxpayer_id = $2 AND endpoint_id = $3 AND event_id IN (SELECT event_id FROM chosen)
		RETURNING (SELECT n.body FROM events n WHERE `+tx.d.eventKey+` LIMIT 1), `+deliveryColumns,
		from.Environment, from.TaxpayerID, from.id, micros(c.Now), c.Lease, micros(c.Until), most, int64(from.share),
		micros(c.Now.Add(longestLease)), int64(all), mostAlone, c.Sender), func(d *Delivery) []any {
		return append([]any{&d.Body}, d.columns()...)
	})
	slices.SortFunc(claimed, byDue)
	for i := range claimed {
		claimed[i].Endpoint, claimed[i].Failing, claimed[i].Ahead = &endpoint, endpoint.Failures > 0, i >= from.share
	}
	return claimed, err
}

// byDue compares deliveries by the order in which they are due.
func byDue(a, b Delivery) int {
	return cmp.Or(a.RunAt.Compare(b.RunAt), cmp.Compare(a.Revision, b.Revision), strings.Compare(a.EventID, b.EventID))
}
