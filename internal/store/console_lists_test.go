package store_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func TestTheWorkListIsFilteredAndPaged(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		a, b := addScope(t, s), addScope(t, s)
		var all []string
		for i, scope := range []store.Scope{a, b, a, a, b} {
			job := addJob(t, s, scope, name("W", i), noon)
			all = append(all, job.DocumentID)
		}
		everything := store.Within{Environment: fiscal.Sandbox, All: true}
		list := func(within store.Within, f store.WorkFilter) (ids []string) {
			for range 10 {
				page, next, err := s.WorkList(t.Context(), within, f)
				if err != nil {
					t.Fatal(err)
				}
				for _, w := range page {
					ids = append(ids, w.DocumentID)
				}
				if f.After = next; next == "" {
					return ids
				}
			}
			t.Fatal("the list does not end")
			return nil
		}
		for _, limit := range []int{1, 2, 10} {
			for name, tt := range map[string]struct {
				within store.Within
				f      store.WorkFilter
				want   []string
			}{
				"all":             {everything, store.WorkFilter{}, all},
				"a taxpayer":      {everything, store.WorkFilter{TaxpayerID: b.TaxpayerID}, []string{all[1], all[4]}},
				"of a person":     {store.Within{Environment: fiscal.Sandbox, Taxpayers: []string{b.TaxpayerID}}, store.WorkFilter{}, []string{all[1], all[4]}},
				"another stage":   {everything, store.WorkFilter{Stage: "none"}, nil},
				"created earlier": {everything, store.WorkFilter{CreatedBefore: noon.Add(-time.Hour)}, nil},
				"created later":   {everything, store.WorkFilter{CreatedBefore: noon.Add(time.Hour)}, all},
				"environment":     {store.Within{Environment: fiscal.Production, All: true}, store.WorkFilter{}, nil},
			} {
				tt.f.Limit = limit
				if got := list(tt.within, tt.f); !slices.Equal(got, tt.want) {
					t.Errorf("%s: %q, want %q", name, got, tt.want)
				}
			}
		}
	})
}

func TestDeliveriesOfADocumentAreListed(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := store.Scope{Environment: fiscal.Production, TaxpayerID: "t"}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			for _, document := range []string{"d", "other", ""} {
				err := tx.Exec(ctx, `
					INSERT INTO webhook_deliveries (endpoint_id, event_id, environment, taxpayer_id, kind, document_id, revision, state, attempt, run_at, lease, lease_until, created_at)
					VALUES ('e', $1, 'production', 't', 'k', $2, 1, 'delivered', 1, 0, '', 0, 0)`, "n-"+document, document)
				if err != nil {
					return err
				}
			}
			return tx.AddDeliveryAttempt(ctx, store.DeliveryAttempt{
				Scope: scope, ID: store.NewID(), EndpointID: "e", EventID: "n-d", Kind: "k", Number: 1, At: noon, HTTPStatus: 200,
			})
		})
		got, err := s.DeliveriesOfDocument(t.Context(), scope, "d")
		if err != nil || len(got) != 1 || got[0].EventID != "n-d" {
			t.Errorf("deliveries %+v, %v", got, err)
		}
		attempts, err := s.AttemptsOfEvent(t.Context(), scope, "n-d")
		if err != nil || len(attempts) != 1 || attempts[0].EndpointID != "e" || attempts[0].HTTPStatus != 200 {
			t.Errorf("attempts %+v, %v", attempts, err)
		}
		others := store.Scope{Environment: fiscal.Production, TaxpayerID: "u"}
		if got, err := s.DeliveriesOfDocument(t.Context(), others, "d"); err != nil || len(got) != 0 {
			t.Errorf("another taxpayer sees %+v, %v", got, err)
		}
	})
}

func TestAnExportIsMadeByOneNode(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addScope(t, s)
		day, err := fiscal.ParseDate("2026-11-01")
		if err != nil {
			t.Fatal(err)
		}
		made := store.Export{
			Scope: scope, ID: store.NewID(), From: day, To: fiscal.DateOf(noon), Include: []string{"xml", "csv"}, State: store.ExportWaiting,
			CreatedBy: "user:1", CreatedAt: noon, UpdatedAt: noon, ExpiresAt: noon.Add(store.ExportKept),
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.CreateExport(ctx, made) })
		all, err := s.Exports(t.Context(), scope)
		if diff := cmp.Diff([]store.Export{made}, all, cmp.Comparer(func(a, b fiscal.Date) bool { return a.Equal(b) })); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		claimed, err := s.ClaimExport(t.Context(), scope.Environment, "one", noon, noon.Add(time.Minute))
		if err != nil || claimed.ID != made.ID {
			t.Fatalf("%+v, %v", claimed, err)
		}
		if _, err := s.ClaimExport(t.Context(), scope.Environment, "two", noon, noon.Add(time.Minute)); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a second claim: %v", err)
		}
		later := noon.Add(2 * time.Minute) // the first node has died
		if _, err := s.ClaimExport(t.Context(), scope.Environment, "two", later, later.Add(time.Minute)); err != nil {
			t.Errorf("a claim after the first one ended: %v", err)
		}
		claimed.State, claimed.Done, claimed.Total, claimed.File = store.ExportDone, 7, 7, "x.zip"
		save := func(holder string) error {
			return s.Update(t.Context(), func(tx *store.Tx) error { return tx.SaveExport(t.Context(), claimed, holder, later, later) })
		}
		if err := save("one"); !errors.Is(err, store.ErrLeaseLost) {
			t.Errorf("the first node: %v", err)
		}
		if err := save("two"); err != nil {
			t.Error(err)
		}
		if got, err := s.Export(t.Context(), scope, made.ID); err != nil || got.State != store.ExportDone || got.Done != 7 || got.File != "x.zip" {
			t.Errorf("%+v, %v", got, err)
		}
		expired, err := s.ExpiredExports(t.Context(), noon.Add(store.ExportKept))
		if err != nil || len(expired) != 1 {
			t.Fatalf("%+v, %v", expired, err)
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteExport(ctx, scope, made.ID) })
		if n := count(t, s, "exports"); n != 0 {
			t.Errorf("%d exports are left", n)
		}
	})
}
