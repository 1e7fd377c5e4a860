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

func TestTheLogOfRequestsIsListed(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		a := store.Scope{Environment: fiscal.Sandbox, TaxpayerID: "a"}
		var all []store.LoggedRequest
		for i := range 30 {
			q := store.LoggedRequest{
				Scope: a, RequestID: fmt.Sprint("req_", i), At: noon.Add(time.Duration(i) * time.Second), Method: "POST", Route: "/v1/invoices",
				Path: "/v1/taxpayers/a/invoices", Status: 202, Credential: "fh_a", Took: 1234 * time.Microsecond, Replayed: i%2 == 0,
			}
			if i%3 == 0 {
				q.Status, q.Code = 422, "validation_error"
				q.Details = []store.RequestDetail{{Code: "required", Field: "buyer.tax_id"}, {Code: "unknown", Field: "a b"}}
			}
			if i%5 == 0 {
				q.TaxpayerID = "b"
			}
			all = append(all, q)
		}
		if err := s.LogRequests(t.Context(), all); err != nil {
			t.Fatal(err)
		}
		ids := func(list func(store.RequestFilter) ([]store.LoggedRequest, string, error), f store.RequestFilter) (got []string) {
			for range 100 {
				page, next, err := list(f)
				if err != nil {
					t.Fatal(err)
				}
				for _, q := range page {
					got = append(got, q.RequestID)
				}
				if f.Before = next; next == "" {
					return got
				}
			}
			t.Fatal("the list does not end")
			return nil
		}
		ofA := func(f store.RequestFilter) ([]store.LoggedRequest, string, error) {
			return s.Requests(t.Context(), a, f)
		}
		ofAll := func(f store.RequestFilter) ([]store.LoggedRequest, string, error) {
			return s.AllRequests(t.Context(), fiscal.Sandbox, f)
		}
		want := func(keep func(store.LoggedRequest) bool) (ids []string) {
			for i := len(all) - 1; i >= 0; i-- {
				if keep(all[i]) {
					ids = append(ids, all[i].RequestID)
				}
			}
			return ids
		}
		for _, limit := range []int{1, 4, 50} {
			for _, tt := range []struct {
				name string
				f    store.RequestFilter
				keep func(store.LoggedRequest) bool
			}{
				{"all", store.RequestFilter{}, func(store.LoggedRequest) bool { return true }},
				{"errors", store.RequestFilter{Errors: true}, func(q store.LoggedRequest) bool { return q.Code != "" }},
				{"class", store.RequestFilter{Status: 4}, func(q store.LoggedRequest) bool { return q.Status == 422 }},
				{"span", store.RequestFilter{From: noon.Add(5 * time.Second), To: noon.Add(9 * time.Second)}, func(q store.LoggedRequest) bool {
					return !q.At.Before(noon.Add(5*time.Second)) && q.At.Before(noon.Add(9*time.Second))
				}},
			} {
				tt.f.Limit = limit
				if diff := cmp.Diff(want(tt.keep), ids(ofAll, tt.f)); diff != "" {
					t.Errorf("%s of all (-want +got):\n%s", tt.name, diff)
				}
				mine := want(func(q store.LoggedRequest) bool { return q.TaxpayerID == "a" && tt.keep(q) })
				if diff := cmp.Diff(mine, ids(ofA, tt.f)); diff != "" {
					t.Errorf("%s of a (-want +got):\n%s", tt.name, diff)
				}
			}
		}
		one, err := s.RequestByID(t.Context(), store.Within{Environment: fiscal.Sandbox, Taxpayers: []string{"a"}}, "req_3")
		if err != nil || len(one) != 1 {
			t.Fatalf("%+v, %v", one, err)
		}
		one[0].ID = ""
		if diff := cmp.Diff(all[3], one[0]); diff != "" {
			t.Errorf("one request (-want +got):\n%s", diff)
		}
		if one, err := s.RequestByID(t.Context(), store.Within{Environment: fiscal.Sandbox, Taxpayers: []string{"b"}}, "req_3"); err != nil || len(one) != 0 {
			t.Errorf("another taxpayer sees %+v, %v", one, err)
		}
		errors, err := s.RequestErrors(t.Context(), a, noon)
		if diff := cmp.Diff([]store.RequestErrors{{Code: "validation_error", Route: "/v1/invoices", Requests: 8, Last: all[27].At}}, errors); diff != "" || err != nil {
			t.Errorf("errors: %v (-want +got):\n%s", err, diff)
		}
		errors, err = s.AllRequestErrors(t.Context(), fiscal.Sandbox, noon)
		if diff := cmp.Diff([]store.RequestErrors{{Code: "validation_error", Route: "/v1/invoices", Requests: 10, Last: all[27].At}}, errors); diff != "" || err != nil {
			t.Errorf("errors of all: %v (-want +got):\n%s", err, diff)
		}
		if n, err := s.PurgeConsole(t.Context(), noon.Add(30*24*time.Hour+10*time.Second), 1000); err != nil || n != 10 {
			t.Errorf("%d requests are deleted after a month, %v", n, err)
		}
	})
}
