package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// idAt returns an id that was made at an instant.
func idAt(t time.Time, n int) string {
	ms := t.UnixMilli()
	return fmt.Sprintf("%08x-%04x-7000-8000-%012x", ms>>16, ms&0xffff, n)
}

// The invoices of a span are those with a date of issue in it, in pages by id. Live
// invoices may be created long after their date; those of the sandbox also long before.
func TestInvoicesOfASpan(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		live, other := addLiveScope(t, s), addLiveScope(t, s)
		sandbox := addScope(t, s)
		add := func(scope store.Scope, n int, issued string, created time.Time) {
			inv := sampleInvoice(scope, name("S", n))
			inv.ID, inv.DocumentID, inv.IssueDate = idAt(created, n), store.NewID(), issued
			register(t, s, inv)
		}
		day := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
		add(live, 1, "2026-03-09", day)
		add(live, 2, "2026-03-10", day)
		add(live, 3, "2026-03-10", day.AddDate(0, 2, 0))
		add(live, 4, "2026-03-11", day.AddDate(0, 0, 1))
		add(live, 5, "2026-03-12", day.AddDate(0, 0, 2))
		add(live, 6, "2026-03-10", day.Add(-36*time.Hour)) // a clock that was behind
		add(live, 7, "2026-03-11", day.AddDate(0, 3, 0))   // created after the export began
		add(other, 8, "2026-03-10", day)
		add(sandbox, 9, "2031-01-01", day)

		date := func(text string) fiscal.Date {
			d, err := fiscal.ParseDate(text)
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		list := func(scope store.Scope, f store.IssueSpan) (found []string) {
			n, err := s.CountIssuedBetween(t.Context(), scope, f)
			if err != nil {
				t.Fatal(err)
			}
			for {
				page, err := s.IssuedBetween(t.Context(), scope, f)
				if err != nil {
					t.Fatal(err)
				}
				if len(page) == 0 {
					break
				}
				for _, inv := range page {
					found = append(found, inv.ExternalID)
				}
				f.After = page[len(page)-1].ID
			}
			if n != int64(len(found)) {
				t.Errorf("CountIssuedBetween returns %d for %v", n, found)
			}
			return found
		}
		span := store.IssueSpan{From: date("2026-03-10"), To: date("2026-03-11"), Until: idAt(day.AddDate(0, 2, 1), 0), Limit: 2}
		want := []string{name("S", 6), name("S", 2), name("S", 4), name("S", 3)}
		if diff := cmp.Diff(want, list(live, span)); diff != "" {
			t.Errorf("the live invoices (-want +got):\n%s", diff)
		}
		future := store.IssueSpan{From: date("2031-01-01"), To: date("2031-12-31"), Until: "ffffffff", Limit: 2}
		if diff := cmp.Diff([]string{name("S", 9)}, list(sandbox, future)); diff != "" {
			t.Errorf("the invoices of the sandbox (-want +got):\n%s", diff)
		}
	})
}
