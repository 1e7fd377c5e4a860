package store_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// A walk in pages finds each document with a status once: of all taxpayers of the
// environment, and of no other one.
func TestDocumentsWithStatusFindsEachDocumentOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		var want []string
		for range 3 {
			scope := addScope(t, s)
			for i, status := range []fiscal.Status{
				fiscal.Queued, fiscal.Submitted, fiscal.Processing, fiscal.Submitted, fiscal.Accepted, fiscal.Submitted, fiscal.OutcomeUnknown,
			} {
				inv := sampleInvoice(scope, strconv.Itoa(i))
				inv.Status = status
				register(t, s, inv)
				if status == fiscal.Submitted {
					want = append(want, inv.DocumentID)
				}
				inv = sampleInvoice(store.Scope{Environment: fiscal.Production, TaxpayerID: scope.TaxpayerID}, strconv.Itoa(i))
				inv.Status = status
				register(t, s, inv)
			}
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			explained := tx.Explain()
			_, _, err := tx.DocumentsWithStatus(ctx, fiscal.Sandbox, fiscal.Submitted, store.StatusPosition{}, 10)
			for _, plan := range explained.Plans {
				// TestAPostgresPlanSearchesForAllColumns checks the plans of PostgreSQL.
				if !s.Shared() && !strings.Contains(plan, "invoices_by_status (environment=? AND taxpayer_id=? AND (status,id)>(?,?) AND status<?)") {
					t.Errorf("the statement is planned as\n%s", plan)
				}
			}
			return err
		})
		slices.Sort(want)
		for limit := 1; limit <= len(want)+1; limit++ {
			var got []string
			for after := (store.StatusPosition{}); ; {
				page, next, err := s.DocumentsWithStatus(t.Context(), fiscal.Sandbox, fiscal.Submitted, after, limit)
				if err != nil {
					t.Fatal(err)
				}
				if len(page) == 0 {
					break
				}
				if len(page) > limit {
					t.Fatalf("a page has %d documents, want at most %d", len(page), limit)
				}
				got, after = append(got, page...), next
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("in pages of %d the walk finds %d documents, want %d", limit, len(got), len(want))
			}
		}
	})
}
