package store_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func TestPurgeDeletesWhatWasKeptLongEnough(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		day := 24 * time.Hour
		month := noon.Add(-30 * day)
		tables := []struct {
			name  string
			old   time.Time // the youngest row that is deleted
			write func(ctx context.Context, tx *store.Tx, at time.Time) error
		}{
			{"delivery_attempts", month, func(ctx context.Context, tx *store.Tx, at time.Time) error {
				return tx.AddDeliveryAttempt(ctx, store.DeliveryAttempt{ID: store.NewID(), EndpointID: "e", EventID: "n", Kind: "k", Number: 1, At: at})
			}},
			{"deliveries", month, func(ctx context.Context, tx *store.Tx, at time.Time) error {
				return addDelivery(ctx, tx, "delivered", at)
			}},
			{"inbound", month.Add(-day), func(ctx context.Context, tx *store.Tx, at time.Time) error {
				_, err := tx.ReceiveInbound(ctx, store.Inbound{SourceID: "s", MessageID: store.NewID(), At: at, Kind: "a"})
				return err
			}},
			{"parked", month, func(ctx context.Context, tx *store.Tx, at time.Time) error {
				return tx.Park(ctx, store.Parked{ID: store.NewID(), SourceID: "s", MessageID: "m", Kind: "a", ENCF: "E310000000001", Body: []byte("<x/>"), At: at})
			}},
			{"rate_windows", noon.Add(-2 * time.Hour), func(ctx context.Context, tx *store.Tx, at time.Time) error {
				_, err := tx.TakeBlock(ctx, store.NewID(), at, 1)
				return err
			}},
			{"used_seeds", noon, func(ctx context.Context, tx *store.Tx, at time.Time) error {
				return tx.Exec(ctx, `INSERT INTO used_seeds (digest, expires_at) VALUES ($1, $2)`, []byte(store.NewID()), at.UnixMicro())
			}},
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			for _, table := range tables {
				for _, at := range []time.Time{table.old.Add(-time.Hour), table.old, table.old.Add(time.Microsecond)} {
					if err := table.write(ctx, tx, at); err != nil {
						return err
					}
				}
			}
			// Deliveries that are not delivered are still needed.
			return errors.Join(addDelivery(ctx, tx, "pending", month), addDelivery(ctx, tx, "failed", month))
		})
		got, err := s.Purge(t.Context(), noon, 1)
		want := store.Purged{DeliveryAttempts: 1, Deliveries: 1, Inbound: 1, Parked: 1, RateWindows: 1, UsedSeeds: 1, More: true}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("the first purge: %v (-want +got):\n%s", err, diff)
		}
		want.More = false
		got, err = s.Purge(t.Context(), noon, 1000)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("the second purge: %v (-want +got):\n%s", err, diff)
		}
		for _, table := range tables {
			want := 1
			if table.name == "deliveries" {
				want = 3
			}
			if n := count(t, s, table.name); n != want {
				t.Errorf("%s has %d rows, want %d", table.name, n, want)
			}
		}
	})
}

// addDelivery adds a delivery that was created at a moment.
func addDelivery(ctx context.Context, tx *store.Tx, state string, at time.Time) error {
	return tx.Exec(ctx, `
		INSERT INTO webhook_deliveries (endpoint_id, event_id, environment, taxpayer_id, kind, document_id, revision, state, attempt, run_at, lease, lease_until, created_at)
		VALUES ('e', $1, 'production', 't', 'k', '', 1, $2, 1, 0, '', 0, $3)`, store.NewID(), state, at.UnixMicro())
}

// A purge of many rows works in batches and deletes all of them.
func TestPurgeWorksInBatches(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		const rows = 2*store.PurgeBatch + 7
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return tx.Exec(ctx, `
				WITH RECURSIVE n (i) AS (SELECT cast(1 AS bigint) UNION ALL SELECT i + 1 FROM n WHERE i < $1)
				INSERT INTO rate_windows (bucket, window_end, granted) SELECT cast(i AS text), 0, 1 FROM n`, rows)
		})
		if got, err := s.Purge(t.Context(), noon, store.PurgeBatch+3); err != nil || got.RateWindows != store.PurgeBatch+3 || !got.More {
			t.Errorf("purged %+v, %v; want %d rows and more", got, err, store.PurgeBatch+3)
		}
		if got, err := s.Purge(t.Context(), noon, rows); err != nil || got.RateWindows != store.PurgeBatch+4 || got.More {
			t.Errorf("purged %+v, %v; want the other %d rows", got, err, store.PurgeBatch+4)
		}
	})
}

// docs/retention.md lists every table of the schema, and no other.
func TestTheRetentionOfEveryTableIsDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/retention.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(string(page), -1) {
		listed = append(listed, m[1])
	}
	slices.Sort(listed)
	s := storetest.Open(t, storetest.Address(t, "sqlite"), time.Now)
	all := lines(t, s, `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`)
	if diff := cmp.Diff(all, listed); diff != "" {
		t.Errorf("docs/retention.md differs from the schema (-schema +page):\n%s", diff)
	}
}
