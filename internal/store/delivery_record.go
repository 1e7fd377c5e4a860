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
	// Not one statement for a list of events: the planner may then read all deliveries of
	// the endpoint.
	statements := make([]statement, 0, 2*len(results))
	for _, r := range results {
		statements = append(statements, endAttempt(r.Delivery, r.Outcome))
	}
	attempts := make([]DeliveryAttempt, len(results))
	for i, r := range results {
		attempts[i] = r.Outcome.Attempt
		if i == 0 || results[i-1].EndpointID != r.EndpointID {
			statements = append(statements, recordSuccess(r.Delivery))
		}
	}
	statements = append(statements, addDeliveryAttempts(attempts)...)
	err := s.Batch(ctx, statements, func(rows []int64) error {
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
