package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// DeliveryClaim says what a sender has room for.
type DeliveryClaim struct {
	Environment fiscal.Environment
	Lease       string
	Now, Until  time.Time
	Limit       int
	Failing     int // how many of them may go to endpoints whose last attempt failed
}

// candidate is an endpoint that something waits for.
type candidate struct {
	Scope
	id                    string
	failures, concurrency int64
	due, held             int64
	idle                  bool // nothing is due but what is under way
	share                 int  // of this claim
}

// room is how many deliveries may be under way to the endpoint at a time. One
// that goes on failing is probed by one.
func (c *candidate) room() int64 {
	if c.failures >= EnoughFailures {
		return 1
	}
	return c.concurrency
}

// ClaimDeliveries takes due deliveries for a sender: nobody else gets them before
// the lease ends. Taxpayers, and within them endpoints, take turns, so that none
// waits behind the backlog of another; an endpoint gets no more at a time than it
// copes with, whichever node sends. Within an endpoint those due first come
// first, and of a document one at a time, in the order of its sequence.
func (s *Store) ClaimDeliveries(ctx context.Context, c DeliveryClaim) ([]Delivery, error) {
	waiting, err := s.candidates(ctx, c)
	if err != nil {
		return nil, err
	}
	chosen := share(waiting, c.Limit, c.Failing)
	if len(chosen) == 0 {
		return nil, nil // looking is cheap, claiming is a commit
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
		return nil, err // what was claimed may not have been committed
	}
	slices.SortStableFunc(claimed, func(a, b Delivery) int {
		return cmp.Or(a.RunAt.Compare(b.RunAt), cmp.Compare(a.Sequence, b.Sequence), strings.Compare(a.EventID, b.EventID))
	})
	return claimed, nil
}

// waitingEndpoints begins a query with the endpoints that something waits for, of
// all taxpayers and environments. It goes from one to the next by their index,
// which the order names in full: then no planner takes another.
const waitingEndpoints = `
		WITH RECURSIVE waiting (id) AS (
			SELECT (SELECT endpoint_id FROM deliveries
				WHERE environment <> '' AND taxpayer_id <> '' AND state = 'pending'
				ORDER BY endpoint_id, run_at, sequence, notice_id LIMIT 1)
			UNION ALL
			SELECT (SELECT endpoint_id FROM deliveries
				WHERE environment <> '' AND taxpayer_id <> '' AND state = 'pending' AND endpoint_id > waiting.id
				ORDER BY endpoint_id, run_at, sequence, notice_id LIMIT 1)
			FROM waiting WHERE waiting.id IS NOT NULL)`

// candidates finds the endpoints that something waits for, and that may be sent
// to, however much waits for each.
func (s *Store) candidates(ctx context.Context, c DeliveryClaim) ([]*candidate, error) {
	rows, err := s.q.QueryContext(ctx, waitingEndpoints+`
		SELECT e.environment, e.taxpayer_id, e.id, e.failures, e.concurrency,
			(SELECT d.run_at FROM deliveries d
				WHERE d.endpoint_id = e.id AND d.state = 'pending' AND d.run_at <= $2 AND d.lease_until <= $2
				ORDER BY d.run_at, d.sequence, d.notice_id LIMIT 1) AS due,
			(SELECT count(*) FROM deliveries h WHERE h.endpoint_id = e.id AND h.lease <> '' AND h.lease_until > $2) AS held
		FROM waiting JOIN endpoints e ON e.id = waiting.id
		WHERE e.environment = $1 AND e.taxpayer_id <> '' AND e.status = 'enabled' AND (e.failures < $3 OR e.rest_until <= $2)`,
		c.Environment, micros(c.Now), EnoughFailures)
	if err != nil {
		return nil, s.d.wrap("look for deliveries", err)
	}
	return collect(s.d, "look for deliveries", rows, func(row row) (*candidate, error) {
		one := new(candidate)
		var due sql.NullInt64
		err := row.Scan(&one.Environment, &one.TaxpayerID, &one.id, &one.failures, &one.concurrency, &due, &one.held)
		one.due, one.idle = due.Int64, !due.Valid
		return one, err
	})
}

// share gives places to endpoints in turn: each time to the taxpayer, and then to
// the endpoint, that has the fewest, and among equals to the one that has waited
// longest.
func share(waiting []*candidate, limit, failing int) []*candidate {
	busy := make(map[string]int64)
	for _, one := range waiting {
		busy[one.TaxpayerID] += one.held
	}
	var chosen []*candidate
	for ; limit > 0; limit-- {
		waiting = slices.DeleteFunc(waiting, func(one *candidate) bool {
			return one.idle || one.held >= one.room() || (one.failures > 0 && failing == 0)
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

// claimFrom takes deliveries to one endpoint, whose row is held meanwhile: two
// nodes that claim at once would count the same ones under way. An endpoint that
// another holds is left for the next time.
func (tx *Tx) claimFrom(ctx context.Context, c DeliveryClaim, one *candidate) ([]Delivery, error) {
	now := *one
	err := tx.q.QueryRowContext(ctx, `
		SELECT failures, concurrency FROM endpoints
		WHERE environment = $1 AND taxpayer_id = $2 AND id = $3 AND status = 'enabled' AND (failures < $4 OR rest_until <= $5) `+
		tx.d.skipLocked, one.Environment, one.TaxpayerID, one.id, EnoughFailures, micros(c.Now)).Scan(&now.failures, &now.concurrency)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, tx.d.wrap("hold endpoint", err)
	}
	// Chosen first and once: a planner that joins may choose again for every row.
	rows, err := tx.q.QueryContext(ctx, `
		WITH chosen AS MATERIALIZED (
			SELECT d.notice_id FROM deliveries d
			WHERE d.environment = $1 AND d.taxpayer_id = $2 AND d.endpoint_id = $3
				AND d.state = 'pending' AND d.run_at <= $4 AND d.lease_until <= $4
				AND (d.document_id = '' OR NOT EXISTS (
					SELECT 1 FROM deliveries o
					WHERE o.endpoint_id = d.endpoint_id AND o.document_id = d.document_id AND o.state = 'pending' AND o.notice_id <> d.notice_id
						AND (o.lease_until > $4 OR (o.run_at <= $4
							AND (o.run_at, o.sequence, o.notice_id) < (d.run_at, d.sequence, d.notice_id)))))
			ORDER BY d.run_at, d.sequence, d.notice_id
			LIMIT (SELECT CASE WHEN count(*) + $8 <= $7 THEN $8 WHEN count(*) < $7 THEN $7 - count(*) ELSE 0 END
				FROM deliveries h WHERE h.endpoint_id = $3 AND h.lease <> '' AND h.lease_until > $4) `+tx.d.skipLocked+`)
		UPDATE deliveries SET lease = $5, lease_until = $6
		WHERE environment = $1 AND taxpayer_id = $2 AND endpoint_id = $3 AND notice_id IN (SELECT notice_id FROM chosen)
		RETURNING `+deliveryColumns,
		one.Environment, one.TaxpayerID, one.id, micros(c.Now), c.Lease, micros(c.Until), now.room(), int64(one.share))
	if err != nil {
		return nil, tx.d.wrap("claim deliveries", err)
	}
	return collect(tx.d, "claim deliveries", rows, func(row row) (Delivery, error) {
		d, err := scanDelivery(row)
		d.Failing = now.failures > 0
		return d, err
	})
}
