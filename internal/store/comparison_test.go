package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// One node at a time holds the comparison. A holder whose claim another node took over
// stores nothing.
func TestOneNodeHoldsTheComparison(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		start := store.Comparison{Environment: fiscal.Production, NextAt: noon, First: store.Position{At: noon}, AgainSince: noon, AgainUntil: noon}
		if _, err := s.Comparison(t.Context(), fiscal.Production); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("before the start: %v", err)
		}
		later := start
		later.NextAt = noon.Add(time.Hour)
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(tx.StartComparison(ctx, start), tx.StartComparison(ctx, later))
		})
		read := func() store.Comparison {
			t.Helper()
			got, err := s.Comparison(t.Context(), fiscal.Production)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		begun := read()
		if !begun.NextAt.Equal(noon) || !begun.ComparedAt.IsZero() || begun.Again.DocumentID != "" {
			t.Errorf("started %+v", begun)
		}
		claims := make([]bool, 4)
		together(len(claims), func(i int) {
			update(t, s, func(ctx context.Context, tx *store.Tx) (err error) {
				claims[i], err = tx.ClaimComparison(ctx, begun, fmt.Sprint("node ", i), noon.Add(time.Minute))
				return err
			})
		})
		holder := slices.Index(claims, true)
		if holder < 0 || slices.Contains(claims[holder+1:], true) {
			t.Fatalf("claimed: %v, want one", claims)
		}
		finish := func(c store.Comparison, holder string) (held bool) {
			t.Helper()
			update(t, s, func(ctx context.Context, tx *store.Tx) (err error) {
				held, err = tx.FinishComparison(ctx, c, holder)
				return err
			})
			return held
		}
		done := store.Comparison{
			Environment: fiscal.Production, NextAt: noon.Add(2 * time.Second), Turn: 1, Attempt: 2, ComparedAt: noon,
			First: store.Position{At: noon, DocumentID: "d1"}, Again: store.Position{At: noon.Add(-time.Hour), DocumentID: "d0"},
			AgainSince: noon.Add(-time.Minute), AgainUntil: noon.Add(-time.Second),
		}
		if finish(done, "another") {
			t.Error("a node that does not hold the comparison stored its progress")
		}
		if !finish(done, fmt.Sprint("node ", holder)) || finish(done, fmt.Sprint("node ", holder)) {
			t.Error("the holder finishes once")
		}
		if diff := cmp.Diff(done, read()); diff != "" {
			t.Errorf("stored (-want +got):\n%s", diff)
		}
	})
}

func TestDifferencesOfADocument(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addScope(t, s)
		inv, other := addInvoice(t, s, scope, "A"), addInvoice(t, s, scope, "B")
		save := func(d store.Difference) {
			t.Helper()
			update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.SaveDifference(ctx, d) })
		}
		one := store.Difference{
			Scope: scope, DocumentID: inv.DocumentID, Kind: store.DifferenceTotal, Ours: "590.00", Theirs: "1", FoundAt: noon, SeenAt: noon, CheckAt: noon.Add(time.Hour),
		}
		save(one)
		one.SeenAt, one.CheckAt = noon.Add(time.Minute), noon.Add(2*time.Hour)
		save(one)
		two := store.Difference{
			Scope: scope, DocumentID: other.DocumentID, Kind: store.DifferenceNotFound, Ours: "accepted", Theirs: "not_found", FoundAt: noon.Add(time.Second), SeenAt: noon, CheckAt: noon,
		}
		save(two)
		if got, err := s.DifferencesOf(t.Context(), scope, inv.DocumentID); err != nil || !cmp.Equal(got, []store.Difference{one}) {
			t.Errorf("%+v, %v; want %+v", got, err, one)
		}
		open, err := s.OpenDifferences(t.Context(), store.Scope{TaxpayerID: scope.TaxpayerID})
		if err != nil || len(open) != 2 || open[0].Difference != one || open[0].ExternalID != "A" || open[1].Difference != two {
			t.Errorf("open: %+v, %v", open, err)
		}
		if none, err := s.OpenDifferences(t.Context(), store.Scope{Environment: fiscal.Production}); err != nil || len(none) > 0 {
			t.Errorf("open in production: %+v, %v", none, err)
		}
		due := func(since, at time.Time) string {
			t.Helper()
			id, err := s.DifferentDocument(t.Context(), scope.Environment, since, at)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				t.Fatal(err)
			}
			return id
		}
		if got := due(time.Time{}, noon); got != other.DocumentID {
			t.Errorf("due: %s, want %s", got, other.DocumentID)
		}
		two.EndedAt = noon.Add(time.Minute)
		save(two)
		if got := due(time.Time{}, noon.Add(time.Hour)); got != "" {
			t.Errorf("due: %s, want none", got)
		}
		if got := due(noon.Add(time.Hour), noon.Add(3*time.Hour)); got != "" {
			t.Errorf("an older difference is due: %s", got)
		}
		if got := due(noon, noon.Add(3*time.Hour)); got != inv.DocumentID {
			t.Errorf("due: %s, want %s", got, inv.DocumentID)
		}
	})
}

// fillAccepted adds documents that change one second after the other. Of four, one is
// accepted, one is queued or rejected, one has no number, and one belongs to another
// environment.
const fillAccepted = `
	INSERT INTO documents (id, document_id, environment, taxpayer_id, external_id, ecf_type, status, revision, currency, issue_date,
		amounts, document_total, encf, track_id, messages, created_at, updated_at, request)
	SELECT 'i' || n, 'd' || n, CASE n % 4 WHEN 3 THEN 'certification' ELSE 'production' END, 't', 'x' || n, '31',
		CASE WHEN n % 8 = 1 THEN 'queued' WHEN n % 8 = 5 THEN 'rejected' WHEN n % 8 = 0 THEN 'delivered' ELSE 'accepted' END, 1, 'DOP', '2026-11-15',
		'', '', CASE n % 4 WHEN 2 THEN NULL ELSE 'e' || n END, NULL, '[]', 0, n * 1000000, $3
	FROM (WITH RECURSIVE numbers (n) AS (SELECT cast($1 AS bigint) UNION ALL SELECT n + 1 FROM numbers WHERE n < $2) SELECT n FROM numbers) AS filled`

// The next accepted document is found with an index, in the order of the last change,
// however many documents there are.
func TestAcceptedDocumentsAreFoundOneByOne(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			tx := store.TxOn(connection(t, storetest.Address(t, engine)), engine)
			execute(t, tx, `BEGIN`)
			execute(t, tx, fillAccepted, 1, 16, []byte{})
			explained := tx.Explain()
			walk := func(until int64) (found []string) {
				for after := (store.Position{}); ; {
					next, err := tx.AcceptedAfter(t.Context(), fiscal.Production, after, time.Unix(until, 0))
					if errors.Is(err, store.ErrNotFound) {
						return found
					}
					if err != nil {
						t.Fatal(err)
					}
					found, after = append(found, next.DocumentID), next
				}
			}
			if got, want := walk(12), []string{"d4", "d8", "d12"}; !slices.Equal(got, want) {
				t.Errorf("found %q, want %q", got, want)
			}
			if next, err := tx.RejectedAfter(t.Context(), fiscal.Production, store.Position{At: time.Unix(5, 0), DocumentID: "d5"}, time.Unix(13, 0)); err != nil || next.DocumentID != "d13" {
				t.Errorf("found the rejected %+v, %v; want d13", next, err)
			}
			for _, plan := range explained.Plans {
				if engine == "sqlite" && (!strings.Contains(plan, "invoices_accepted") && !strings.Contains(plan, "invoices_rejected") || strings.Contains(plan, "TEMP B-TREE")) {
					t.Errorf("the plan does not follow the index:\n%s", plan)
				}
			}
			if engine == "sqlite" {
				return
			}
			execute(t, tx, fillAccepted, 17, 20_000, []byte{})
			explained.Reset()
			for _, after := range []int64{0, 10_000, 19_990} {
				position := store.Position{At: time.Unix(after, 0)}
				_, err := tx.AcceptedAfter(t.Context(), fiscal.Production, position, noon)
				_, errRejected := tx.RejectedAfter(t.Context(), fiscal.Production, position, noon)
				if err := errors.Join(err, errRejected); err != nil {
					t.Fatal(err)
				}
			}
			if explained.Blocks > 60 {
				t.Errorf("six questions read %d blocks", explained.Blocks)
			}
		})
	}
}
