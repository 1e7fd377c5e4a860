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
	var statements []statement
	var wanted []int64 // rows that each of the first statements changes
	for rest := results; len(rest) > 0; {
		first := rest[0].Delivery
		n := slices.IndexFunc(rest, func(r DeliveryResult) bool { return r.EndpointID != first.EndpointID || r.Lease != first.Lease })
		if n < 0 {
			n = len(rest)
		}
		ids := make([]string, n)
		for i, r := range rest[:n] {
			ids[i] = r.EventID
		}
		statements, wanted = append(statements, endAttempts(first, ids)), append(wanted, int64(n))
		rest = rest[n:]
	}
	attempts := make([]DeliveryAttempt, len(results))
	for i, r := range results {
		attempts[i] = r.Outcome.Attempt
		if i == 0 || results[i-1].EndpointID != r.EndpointID {
			statements = append(statements, recordSuccess(r.Delivery))
		}
	}
	statements = append(statements, addDeliveryAttempts(attempts)...)
	err := s.batch(ctx, statements, func(rows []int64) error {
		if !slices.Equal(rows[:len(wanted)], wanted) {
			return ErrLeaseLost
		}
		return nil
	})
	return s.d.wrap("record deliveries", err)
}

// endAttempts stores that deliveries to an endpoint are delivered, for as long as the
// sender holds them with the lease of d.
func endAttempts(d Delivery, ids []string) statement {
	list, args := placeholdersFrom(5, ids)
	return statement{`
		UPDATE deliveries SET state = 'delivered', attempt = attempt + 1, lease = '', lease_until = 0
		WHERE environment = $1 AND taxpayer_id = $2 AND endpoint_id = $3 AND lease = $4 AND notice_id IN (` + list + `)`,
		append([]any{string(d.Environment), d.TaxpayerID, d.EndpointID, d.Lease}, args...)}
}

// inLockOrder sorts a copy of some deliveries by endpoint, lease and event. All nodes lock
// the rows in this order.
func inLockOrder[T any](some []T, delivery func(T) Delivery) []T {
	return slices.SortedFunc(slices.Values(some), func(x, y T) int {
		a, b := delivery(x), delivery(y)
		return cmp.Or(strings.Compare(a.EndpointID, b.EndpointID), strings.Compare(a.Lease, b.Lease), strings.Compare(a.EventID, b.EventID))
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
