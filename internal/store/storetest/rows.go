package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/database"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// DeliveriesOf lists the deliveries of an event, by endpoint.
func DeliveriesOf(t testing.TB, s *store.Store, e store.Event) (all []store.Delivery) {
	t.Helper()
	rows, err := s.Reader().QueryContext(t.Context(), `
		SELECT endpoint_id, kind, document_id, revision, state, attempt, run_at, lease, lease_until, created_at
		FROM webhook_deliveries WHERE environment = $1 AND taxpayer_id = $2 AND event_id = $3 ORDER BY endpoint_id`,
		e.Environment, e.TaxpayerID, e.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		d := store.Delivery{Scope: e.Scope, EventID: e.ID}
		var run, lease, created int64
		if err := rows.Scan(&d.EndpointID, &d.Kind, &d.DocumentID, &d.Revision, &d.State, &d.Attempt, &run, &d.Lease, &lease, &created); err != nil {
			t.Fatal(err)
		}
		d.RunAt, d.LeaseUntil, d.CreatedAt = time.UnixMicro(run).UTC(), time.UnixMicro(lease).UTC(), time.UnixMicro(created).UTC()
		all = append(all, d)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// TakeNumbers takes numbers of a range without documents.
func TakeNumbers(ctx context.Context, s *store.Store, n store.NumberRange, count int) error {
	return s.Batch(ctx, []database.Statement{{
		Text: `UPDATE number_ranges SET next_number = next_number + cast($4 AS bigint) WHERE environment = $1 AND taxpayer_id = $2 AND id = $3`,
		Args: []any{string(n.Environment), n.TaxpayerID, n.ID, count},
	}}, func([]int64) error { return nil })
}
