package store

import (
	"cmp"
	"context"
	"slices"
	"strings"
)

// A DeliveryResult is a delivery with the outcome of an attempt.
type DeliveryResult struct {
	Delivery
	Outcome DeliveryOutcome
}

// RecordDelivered records several deliveries that their endpoints have accepted, in one
// transaction: on PostgreSQL one round trip and the commit. The error is ErrLeaseLost when
// another sender has one of them; then it stores nothing, and the caller records each with
// RecordDelivery.
func (s *Store) RecordDelivered(ctx context.Context, results []DeliveryResult) error {
	results = inLockOrder(results, func(r DeliveryResult) Delivery { return r.Delivery })
	statements := make([]statement, 0, 3*len(results))
	for _, r := range results {
		statements = append(statements, endAttempt(r.Delivery, r.Outcome))
	}
	for i, r := range results {
		statements = append(statements, addDeliveryAttempt(r.Outcome.Attempt))
		if i == 0 || results[i-1].EndpointID != r.EndpointID {
			statements = append(statements, recordSuccess(r.Delivery))
		}
	}
	err := s.batch(ctx, statements, func(rows []int64) error {
		if slices.Contains(rows[:len(results)], 0) {
			return ErrLeaseLost
		}
		return nil
	})
	return s.d.wrap("record deliveries", err)
}

// inLockOrder sorts a copy of some deliveries by their keys. All nodes lock the rows in this
// order.
func inLockOrder[T any](some []T, delivery func(T) Delivery) []T {
	return slices.SortedFunc(slices.Values(some), func(x, y T) int {
		a, b := delivery(x), delivery(y)
		return cmp.Or(strings.Compare(a.EndpointID, b.EndpointID), strings.Compare(a.EventID, b.EventID))
	})
}

// addBodies reads the events of claimed deliveries, with one statement for each taxpayer.
// A delivery without a body is complete: its sender reads the event itself.
func (s *Store) addBodies(ctx context.Context, claimed []Delivery) {
	ids := map[Scope][]string{}
	for _, d := range claimed {
		ids[d.Scope] = append(ids[d.Scope], d.EventID)
	}
	bodies := map[Scope]map[string][]byte{}
	for scope, some := range ids {
		found, err := s.eventBodies(ctx, scope, some)
		if err != nil {
			return
		}
		bodies[scope] = found
	}
	for i, d := range claimed {
		claimed[i].Body = bodies[d.Scope][d.EventID]
	}
}

// eventBodies reads the bodies of events of a taxpayer, by their ids.
func (r reader) eventBodies(ctx context.Context, scope Scope, ids []string) (map[string][]byte, error) {
	list, args := placeholdersFrom(3, ids)
	rows, err := r.q.QueryContext(ctx, `
		SELECT id, body FROM notices WHERE environment = $1 AND taxpayer_id = $2 AND id IN (`+list+`)`,
		append([]any{string(scope.Environment), scope.TaxpayerID}, args...)...)
	if err != nil {
		return nil, r.d.wrap("read events", err)
	}
	bodies := map[string][]byte{}
	_, err = collect(r.d, "read events", rows, func(row row) (id string, err error) {
		var body []byte
		err = row.Scan(&id, &body)
		bodies[id] = body
		return id, err
	})
	return bodies, err
}
