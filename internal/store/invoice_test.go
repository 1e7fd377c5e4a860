package store_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func TestAnInvoiceReadsBackByEachOfItsIDs(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addScope(t, s)
		bare, full := sampleInvoice(scope, "A-1"), sampleInvoice(scope, "a-1")
		bare.Messages = nil
		full.ENCF, full.TrackID = "E310000000001", "track-1"
		register(t, s, bare)
		register(t, s, full)
		for _, want := range []store.Invoice{bare, full} {
			for what, read := range map[string]func() (store.Invoice, error){
				"id":          func() (store.Invoice, error) { return s.Invoice(t.Context(), scope, want.ID) },
				"document":    func() (store.Invoice, error) { return s.InvoiceOfDocument(t.Context(), scope, want.DocumentID) },
				"external id": func() (store.Invoice, error) { return s.InvoiceByExternalID(t.Context(), scope, want.ExternalID) },
			} {
				got, err := read()
				if err != nil {
					t.Fatalf("by %s: %v", what, err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("by %s (-want +got):\n%s", what, diff)
				}
			}
		}
		var request string
		if err := s.QueryRow(t.Context(), `SELECT request FROM documents WHERE id = $1`, bare.ID).Scan(&request); err != nil || request != `{"a":1}` {
			t.Errorf("the stored request is %q, %v", request, err)
		}
	})
}

// No read and no write reaches an invoice of another taxpayer or environment.
func TestAnInvoiceIsInvisibleOutsideItsScope(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addScope(t, s)
		inv := addInvoice(t, s, scope, "X-1")
		for _, foreign := range []store.Scope{
			{Environment: fiscal.Production, TaxpayerID: scope.TaxpayerID},
			{Environment: fiscal.Sandbox, TaxpayerID: addScope(t, s).TaxpayerID},
			{Environment: fiscal.Sandbox},
			{TaxpayerID: scope.TaxpayerID},
		} {
			_, byID := s.Invoice(t.Context(), foreign, inv.ID)
			_, byDocument := s.InvoiceOfDocument(t.Context(), foreign, inv.DocumentID)
			_, byExternalID := s.InvoiceByExternalID(t.Context(), foreign, inv.ExternalID)
			_, byRequest := s.InvoicesOfRequest(t.Context(), foreign, store.AnswerID(inv.ID))
			stolen := inv
			stolen.Scope = foreign
			moved := stolen
			moved.Status = fiscal.Submitted
			move := s.Update(t.Context(), func(tx *store.Tx) error { return tx.Do(t.Context(), new(store.Batch).ChangeStatus(stolen, moved)) })
			for what, err := range map[string]error{
				"id": byID, "document": byDocument, "external id": byExternalID, "request": byRequest,
			} {
				if !errors.Is(err, store.ErrNotFound) {
					t.Errorf("%v by %s: %v, want ErrNotFound", foreign, what, err)
				}
			}
			if !errors.Is(move, store.ErrInvoiceChanged) {
				t.Errorf("%v changes the status: %v, want ErrInvoiceChanged", foreign, move)
			}
			page, err := s.ListInvoices(t.Context(), foreign, store.InvoiceFilter{Limit: 10})
			if err != nil || len(page) != 0 {
				t.Errorf("%v lists %v, %v", foreign, page, err)
			}
			events, err := s.History(t.Context(), foreign, inv.ID)
			if err != nil || len(events) != 0 {
				t.Errorf("%v reads the history %v, %v", foreign, events, err)
			}
		}
	})
}

func TestAnExternalIDIsTakenOncePerScope(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addScope(t, s)
		scopes := []store.Scope{
			scope,
			{Environment: fiscal.Certification, TaxpayerID: scope.TaxpayerID},
			{Environment: fiscal.Sandbox, TaxpayerID: addScope(t, s).TaxpayerID},
		}
		var made, taken atomic.Int64
		together(30, func(i int) {
			r := sampleRegistration(sampleInvoice(scopes[i%len(scopes)], "ONE"))
			if i%2 == 0 { // the error must be the same with a job
				r.Job = &store.Job{Scope: r.Invoice.Scope, DocumentID: r.Invoice.DocumentID, RunAt: noon, CreatedAt: noon}
			}
			_, err := s.Register(t.Context(), r)
			switch {
			case err == nil:
				made.Add(1)
			case errors.Is(err, store.ErrExternalIDTaken):
				taken.Add(1)
			default:
				t.Error(err)
			}
		})
		if made.Load() != int64(len(scopes)) || taken.Load() != 27 || count(t, s, "invoices") != len(scopes) {
			t.Errorf("made %d, taken %d, rows %d; want one in each of the %d scopes", made.Load(), taken.Load(), count(t, s, "invoices"), len(scopes))
		}
	})
}

func TestAnInvalidInvoiceIsRefused(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addScope(t, s)
		for what, change := range map[string]func(*store.Invoice){
			"an unknown environment": func(inv *store.Invoice) { inv.Environment = "moon" },
			"an unknown status":      func(inv *store.Invoice) { inv.Status = "lost" },
		} {
			inv := sampleInvoice(scope, what)
			change(&inv)
			_, err := s.Register(t.Context(), sampleRegistration(inv))
			if err == nil || errors.Is(err, store.ErrUnavailable) {
				t.Errorf("%s: %v, want an error other than ErrUnavailable", what, err)
			}
		}
		if n := count(t, s, "invoices"); n != 0 {
			t.Errorf("%d invoices are stored", n)
		}
	})
}

// The store allows exactly the transitions of package fiscal, for each pair of statuses.
func TestAStatusChangesOnlyAsTheTransitionTableAllows(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addScope(t, s)
		for _, from := range fiscal.Statuses() {
			for _, to := range fiscal.Statuses() {
				before := sampleInvoice(scope, fmt.Sprintf("%s-%s", from, to))
				before.Status = from
				after := before
				after.Status, after.Messages, after.UpdatedAt = to, []string{"moved"}, noon.Add(time.Minute)
				register(t, s, before)
				err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.Do(t.Context(), new(store.Batch).ChangeStatus(before, after)) })
				if moved := err == nil; moved != from.MayBecome(to) {
					t.Errorf("from %s to %s: %v", from, to, err)
				}
				want := before
				if from.MayBecome(to) {
					want = after
					want.Revision = before.Revision + 1
				}
				got, err := s.Invoice(t.Context(), scope, before.ID)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("from %s to %s (-want +got):\n%s", from, to, diff)
				}
			}
		}
	})
}

// Of several workers that read the same invoice, one changes its status. The revision
// counts every change once.
func TestAStaleStatusChangeIsRefused(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addScope(t, s)
		before := addInvoice(t, s, scope, "M-1")
		var moved, stale atomic.Int64
		together(20, func(int) {
			after := before
			after.Status = fiscal.Submitted
			err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.Do(t.Context(), new(store.Batch).ChangeStatus(before, after)) })
			switch {
			case err == nil:
				moved.Add(1)
			case errors.Is(err, store.ErrInvoiceChanged):
				stale.Add(1)
			default:
				t.Error(err)
			}
		})
		got, err := s.Invoice(t.Context(), scope, before.ID)
		if err != nil || moved.Load() != 1 || stale.Load() != 19 || got.Revision != 2 {
			t.Errorf("changed %d, stale %d, revision %d, %v; want 1, 19 and 2", moved.Load(), stale.Load(), got.Revision, err)
		}
	})
}

func TestAListShowsTheNewestFirst(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addScope(t, s)
		other := addScope(t, s)
		var ids []string // the newest first
		for i := range 7 {
			inv := sampleInvoice(scope, name("L", i))
			if i%2 == 1 {
				inv.Status = fiscal.Accepted
			}
			register(t, s, inv)
			ids = append([]string{inv.ID}, ids...)
			addInvoice(t, s, other, name("L", i))
		}
		tests := []struct {
			name   string
			filter store.InvoiceFilter
			want   []string
		}{
			{"all", store.InvoiceFilter{Limit: 100}, ids},
			{"a first page", store.InvoiceFilter{Limit: 3}, ids[:3]},
			{"the page after it", store.InvoiceFilter{Limit: 3, Before: ids[2]}, ids[3:6]},
			{"the last page", store.InvoiceFilter{Limit: 3, Before: ids[5]}, ids[6:]},
			{"past the end", store.InvoiceFilter{Limit: 3, Before: ids[6]}, nil},
			{"one status", store.InvoiceFilter{Limit: 100, Status: fiscal.Accepted}, []string{ids[1], ids[3], ids[5]}},
			{"one status, further on", store.InvoiceFilter{Limit: 1, Status: fiscal.Accepted, Before: ids[1]}, ids[3:4]},
			{"a status that none has", store.InvoiceFilter{Limit: 100, Status: fiscal.Rejected}, nil},
			{"one external id", store.InvoiceFilter{Limit: 100, ExternalID: "L-002"}, ids[4:5]},
			{"an external id is matched by case", store.InvoiceFilter{Limit: 100, ExternalID: "l-002"}, nil},
			{"an external id with another status", store.InvoiceFilter{Limit: 100, ExternalID: "L-002", Status: fiscal.Accepted}, nil},
			{"everything at once", store.InvoiceFilter{Limit: 9, ExternalID: "L-003", Status: fiscal.Accepted, Before: ids[0]}, ids[3:4]},
		}
		for _, tt := range tests {
			page, err := s.ListInvoices(t.Context(), scope, tt.filter)
			if err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
			var got []string
			for _, inv := range page {
				got = append(got, inv.ID)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.name, diff)
			}
		}
	})
}

func TestADocumentIsFoundByEitherID(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		inv := addInvoice(t, s, addScope(t, s), "one")
		addInvoice(t, s, addScope(t, s), "two")
		for _, id := range []string{inv.ID, inv.DocumentID} {
			got, err := s.AnyDocument(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(inv, got); diff != "" {
				t.Errorf("by %s (-want +got):\n%s", id, diff)
			}
		}
		if _, err := s.AnyDocument(t.Context(), store.NewID()); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("an unknown id: %v, want ErrNotFound", err)
		}
	})
}
