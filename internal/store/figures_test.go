package store_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/cause"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// addDeliveries adds pending deliveries to an endpoint of the production environment.
func addDeliveries(ctx context.Context, tx *store.Tx, endpoint string, first, last int) error {
	return tx.Exec(ctx, `
		WITH RECURSIVE n (i) AS (SELECT cast($1 AS bigint) UNION ALL SELECT i + 1 FROM n WHERE i < $2)
		INSERT INTO webhook_deliveries (endpoint_id, event_id, environment, taxpayer_id, kind, document_id, revision, state, attempt, run_at, lease, lease_until, created_at)
		SELECT $3, cast(i AS text), 'production', 't', 'k', '', i, 'pending', 0, $4 + i, '', 0, $4 + i FROM n`, first, last, endpoint, noon.UnixMicro())
}

func TestFiguresOfJobs(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			for _, rows := range []struct {
				first, last int
				stage       string
				due         time.Time
			}{
				{1, 3, "submit", noon}, {4, 5, "deliver", noon.Add(time.Minute)}, {6, 9, "poll", time.UnixMicro(store.SuspendedFrom)},
			} {
				if err := fill(ctx, tx, rows.first, rows.last, 1, rows.stage, rows.due); err != nil {
					return err
				}
			}
			if err := fill(ctx, tx, 10, 11, 1, "submit", noon.Add(time.Hour)); err != nil {
				return err
			}
			if err := tx.Exec(ctx, `UPDATE jobs SET last_error = $1 WHERE document_id >= 'd10000010'`, string(cause.New(cause.RangeEnded, "2026-12-31"))); err != nil {
				return err
			}
			return tx.Exec(ctx, `UPDATE jobs SET lease_until = $1 WHERE document_id = 'd10000001'`, noon.Add(2*time.Minute).UnixMicro())
		})
		got, err := s.JobFigures(t.Context(), fiscal.Sandbox, noon.Add(time.Minute), 100)
		want := []store.JobFigure{
			{Queue: store.QueueMain, Stage: "submit", State: "waiting", Jobs: 2, Created: noon, DueAt: noon.Add(2 * time.Microsecond)},
			{Queue: store.QueueMain, Stage: "submit", State: "held", Jobs: 2, Created: noon.Add(time.Hour), DueAt: noon.Add(time.Hour + 10*time.Microsecond)},
			{Queue: store.QueueMain, Stage: "submit", State: "running", Jobs: 1, Created: noon, DueAt: noon.Add(time.Microsecond)},
			{Queue: store.QueueMain, Stage: "poll", State: "suspended", Jobs: 4, Created: time.UnixMicro(store.SuspendedFrom).UTC()},
			{Queue: store.QueueDeliver, Stage: "deliver", State: "waiting", Jobs: 2, Created: noon.Add(time.Minute), DueAt: noon.Add(time.Minute + 4*time.Microsecond)},
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		if other, err := s.JobFigures(t.Context(), fiscal.Production, noon, 100); err != nil || len(other) > 0 {
			t.Errorf("another environment: %v, %v", other, err)
		}
	})
}

func TestFiguresOfWebhooks(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addLiveScope(t, s)
		all := make([]store.Endpoint, 4)
		for i := range all {
			all[i] = addEndpoint(t, s, sampleEndpoint(scope, "*"))
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			for i, e := range all {
				if err := addDeliveries(ctx, tx, e.ID, i+1, 4); err != nil { // 4, 3, 2 and 1
					return err
				}
			}
			for id, set := range map[string]string{all[1].ID: "failures = 3", all[2].ID: "failures = 9, status = 'disabled'", all[3].ID: "status = 'deleted'"} {
				if err := tx.Exec(ctx, `UPDATE endpoints SET `+set+` WHERE id = $1`, id); err != nil {
					return err
				}
			}
			return nil
		})
		deliveries, err := s.DeliveryFigures(t.Context(), scope.Environment, 100)
		got := map[string]store.DeliveryFigure{}
		for _, d := range deliveries {
			got[d.Status] = d
		}
		want := map[string]store.DeliveryFigure{
			"enabled":  {"enabled", 4, noon.Add(time.Microsecond)},
			"failing":  {"failing", 3, noon.Add(2 * time.Microsecond)},
			"disabled": {"disabled", 2, noon.Add(3 * time.Microsecond)},
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		endpoints, err := s.EndpointFigures(t.Context(), scope.Environment)
		if diff := cmp.Diff(map[string]int64{"enabled": 1, "failing": 1, "disabled": 1}, endpoints); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	})
}

func TestFiguresOfCertificatesAndNumbers(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addLiveScope(t, s)
		last := sampleCertificate(scope, "last")
		revoked := sampleCertificate(scope, "revoked")
		revoked.NotAfter = last.NotAfter.Add(time.Hour)
		first := sampleCertificate(scope, "first")
		first.NotAfter = last.NotAfter.Add(-time.Hour)
		for _, c := range []store.Certificate{first, last, revoked} {
			addCertificate(t, s, c)
		}
		day, err := fiscal.ParseDate("2026-11-15")
		if err != nil {
			t.Fatal(err)
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.RevokeCertificate(ctx, scope, revoked.ID, noon); err != nil {
				return err
			}
			return tx.Exec(ctx, `
				INSERT INTO number_ranges (id, environment, taxpayer_id, ecf_type, first_number, last_number, next_number, expires, fenced_at, created_at)
				VALUES ('a', 'production', $1, '31', 1, 100, 91, '2026-11-15', NULL, 0), ('b', 'production', $1, '31', 101, 200, 101, '2026-11-14', NULL, 0),
					('c', 'production', $1, '31', 201, 300, 201, '', 1, 0), ('d', 'production', $1, '31', 301, 305, 301, '', NULL, 0)`, scope.TaxpayerID)
		})
		ends, err := s.CertificateEnds(t.Context(), scope.Environment)
		if err != nil || len(ends) != 1 || !ends[0].Equal(last.NotAfter) {
			t.Errorf("certificates end at %v, %v; want %s", ends, err, last.NotAfter)
		}
		numbers, err := s.NumberFigures(t.Context(), scope.Environment, day)
		if diff := cmp.Diff([]store.NumberFigure{{Type: "31", Left: 15, Fenced: 1}}, numbers); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	})
}

// A scrape counts a bounded number of rows, and finds them in an index.
func TestFiguresDoNotReadTheBacklog(t *testing.T) {
	t.Parallel()
	const most = 100
	for _, engine := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := storetest.Address(t, engine)
			endpoint := addEndpoint(t, storetest.Open(t, address, time.Now), sampleEndpoint(addLiveScope(t, storetest.Open(t, address, time.Now)), "*"))
			tx := store.TxOn(connection(t, address), engine)
			explained := tx.Explain()
			grow := func(first, last int) {
				t.Helper()
				if err := fill(t.Context(), tx, first, last, 3, "submit", noon); err != nil {
					t.Fatal(err)
				}
				if err := addDeliveries(t.Context(), tx, endpoint.ID, first, last); err != nil {
					t.Fatal(err)
				}
			}
			read := func() int {
				t.Helper()
				execute(t, tx, `BEGIN`)
				defer execute(t, tx, `ROLLBACK`)
				explained.Reset()
				jobs, err := tx.JobFigures(t.Context(), fiscal.Sandbox, noon, most)
				if err != nil || len(jobs) != 1 || jobs[0].Jobs != most {
					t.Errorf("jobs: %+v, %v", jobs, err)
				}
				deliveries, err := tx.DeliveryFigures(t.Context(), fiscal.Production, most)
				if err != nil || len(deliveries) != 1 || deliveries[0].Deliveries != most {
					t.Errorf("deliveries: %+v, %v", deliveries, err)
				}
				return explained.Blocks
			}
			grow(1, 1_000)
			few := read()
			grow(1_001, 4_000)
			if engine == "postgres" {
				execute(t, tx, `ANALYZE`)
			}
			if many := read(); many >= 2*few+2 {
				t.Errorf("the figures read %d blocks with few jobs, %d with many", few, many)
			}
			for _, plan := range explained.Plans {
				if engine == "sqlite" && (strings.Contains(plan, "SCAN jobs") || strings.Contains(plan, "SCAN deliveries\n") || strings.Contains(plan, "FOR ORDER BY")) {
					t.Errorf("the plan reads or sorts the backlog:\n%s", plan)
				}
			}
		})
	}
}
