package store_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func sampleEndpoint(scope store.Scope, kinds ...string) store.Endpoint {
	return store.Endpoint{
		Scope: scope, ID: store.NewID(), URL: "https://example.com/a?b=«c»", Kinds: kinds, Description: "«ñ»", Status: store.EndpointEnabled,
		Secret: store.SealedSecret{Sealed: []byte{0, 1, 0xff}, Version: 1}, Concurrency: store.MaxConcurrency, CreatedAt: noon, UpdatedAt: noon,
	}
}

func addEndpoint(t *testing.T, s *store.Store, e store.Endpoint) store.Endpoint {
	t.Helper()
	update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.CreateEndpoint(ctx, e) })
	return e
}

func readEndpoint(t *testing.T, s *store.Store, e store.Endpoint) store.Endpoint {
	t.Helper()
	got, err := s.Endpoint(t.Context(), e.Scope, e.ID)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestAnEndpointReadsBackAsItWasWritten(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addLiveScope(t, s)
		elsewhere := store.Scope{Environment: fiscal.Certification, TaxpayerID: scope.TaxpayerID}
		first := addEndpoint(t, s, sampleEndpoint(scope, "*"))
		second := addEndpoint(t, s, sampleEndpoint(scope, "a.b", "a.c_d"))
		other := addEndpoint(t, s, sampleEndpoint(addLiveScope(t, s), "*"))
		cert := addEndpoint(t, s, sampleEndpoint(elsewhere, "*"))
		if diff := cmp.Diff(second, readEndpoint(t, s, second)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		for _, scope := range []store.Scope{other.Scope, elsewhere} {
			if _, err := s.Endpoint(t.Context(), scope, first.ID); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("in another scope: %v, want ErrNotFound", err)
			}
		}
		list, err := s.Endpoints(t.Context(), scope, "", 10)
		if diff := cmp.Diff([]store.Endpoint{second, first}, list); diff != "" || err != nil {
			t.Errorf("the newest first: %v\n%s", err, diff)
		}
		list, err = s.Endpoints(t.Context(), scope, second.ID, 10)
		if diff := cmp.Diff([]store.Endpoint{first}, list); diff != "" || err != nil {
			t.Errorf("the next page: %v\n%s", err, diff)
		}
		list, err = s.AllEndpoints(t.Context())
		if diff := cmp.Diff([]store.Endpoint{first, second, other, cert}, list); diff != "" || err != nil {
			t.Errorf("all: %v\n%s", err, diff)
		}
		if got, err := s.AnyEndpoint(t.Context(), cert.ID); err != nil || got.Scope != elsewhere {
			t.Errorf("for the operator: %+v, %v", got, err)
		}
	})
}

func TestAnEndpointIsRotatedDisabledEnabledAndDeleted(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		e := addEndpoint(t, s, sampleEndpoint(addLiveScope(t, s), "*"))
		next := store.SealedSecret{Sealed: []byte("next"), Version: 2}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return tx.RotateEndpoint(ctx, e, next, noon.Add(time.Hour), noon.Add(time.Second))
		})
		want := e
		want.Secret, want.OldSecret, want.OldUntil, want.UpdatedAt = next, e.Secret, noon.Add(time.Hour), noon.Add(time.Second)
		if diff := cmp.Diff(want, readEndpoint(t, s, e)); diff != "" {
			t.Errorf("rotated (-want +got):\n%s", diff)
		}
		stale := s.Update(t.Context(), func(tx *store.Tx) error { return tx.RotateEndpoint(t.Context(), e, next, noon, noon) })
		if !errors.Is(stale, store.ErrNotFound) {
			t.Errorf("rotated with an old secret: %v, want ErrNotFound", stale)
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return tx.DisableEndpoint(ctx, e.Scope, e.ID, store.DisabledGone, noon.Add(2*time.Second))
		})
		want.Status, want.DisabledReason, want.UpdatedAt = store.EndpointDisabled, store.DisabledGone, noon.Add(2*time.Second)
		if diff := cmp.Diff(want, readEndpoint(t, s, e)); diff != "" {
			t.Errorf("disabled (-want +got):\n%s", diff)
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return tx.EnableEndpoint(ctx, e.Scope, e.ID, noon.Add(3*time.Second))
		})
		want.Status, want.DisabledReason, want.UpdatedAt = store.EndpointEnabled, "", noon.Add(3*time.Second)
		if diff := cmp.Diff(want, readEndpoint(t, s, e)); diff != "" {
			t.Errorf("enabled (-want +got):\n%s", diff)
		}
		waiting := addEvent(t, s, sampleEvent(e.Scope, "a", noon))
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteEndpoint(ctx, e.Scope, e.ID, noon) })
		all, err := s.AllEndpoints(t.Context())
		if _, errGone := s.Endpoint(t.Context(), e.Scope, e.ID); !errors.Is(errGone, store.ErrNotFound) || err != nil || len(all) != 0 {
			t.Errorf("a deleted endpoint is returned: %v, %v, %v", all, err, errGone)
		}
		var left int
		if err := s.QueryRow(t.Context(), `SELECT count(*) FROM endpoints WHERE secret IS NOT NULL OR old_secret IS NOT NULL`).Scan(&left); err != nil || left != 0 {
			t.Errorf("%d secrets are left, %v", left, err)
		}
		if got := storetest.DeliveriesOf(t, s, waiting); len(got) != 1 || got[0].State != store.DeliveryFailed {
			t.Errorf("the pending delivery of a deleted endpoint: %+v, want it failed", got)
		}
		for name, fn := range map[string]func(tx *store.Tx) error{
			"enable":  func(tx *store.Tx) error { return tx.EnableEndpoint(t.Context(), e.Scope, e.ID, noon) },
			"disable": func(tx *store.Tx) error { return tx.DisableEndpoint(t.Context(), e.Scope, e.ID, "", noon) },
			"delete":  func(tx *store.Tx) error { return tx.DeleteEndpoint(t.Context(), e.Scope, e.ID, noon) },
		} {
			if err := s.Update(t.Context(), fn); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s a deleted endpoint: %v, want ErrNotFound", name, err)
			}
		}
	})
}

// The limit holds for concurrent calls, and does not count deleted endpoints.
func TestATaxpayerHasAtMostTenEndpoints(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addLiveScope(t, s)
		last := addEndpoint(t, s, sampleEndpoint(scope, "*"))
		var refused atomic.Int64
		together(14, func(int) {
			err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.CreateEndpoint(t.Context(), sampleEndpoint(scope, "*")) })
			if errors.Is(err, store.ErrTooManyEndpoints) {
				refused.Add(1)
			} else if err != nil {
				t.Error(err)
			}
		})
		if got := count(t, s, "endpoints"); got != store.MaxEndpoints || refused.Load() != 5 {
			t.Errorf("%d endpoints, %d refused", got, refused.Load())
		}
		addEndpoint(t, s, sampleEndpoint(store.Scope{Environment: fiscal.Certification, TaxpayerID: scope.TaxpayerID}, "*"))
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteEndpoint(ctx, scope, last.ID, noon) })
		addEndpoint(t, s, sampleEndpoint(scope, "*"))
		unknown := sampleEndpoint(store.Scope{Environment: fiscal.Production, TaxpayerID: store.NewID()}, "*")
		if err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.CreateEndpoint(t.Context(), unknown) }); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("for an unknown taxpayer: %v, want ErrNotFound", err)
		}
	})
}

// The deletion of an endpoint with many pending deliveries changes a bounded number of
// rows. None of the others is claimed, and the purge fails them in batches.
func TestDeletionOfAnEndpointIsBounded(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addLiveScope(t, s)
		e, other := addEndpoint(t, s, sampleEndpoint(scope, "*")), addEndpoint(t, s, sampleEndpoint(scope, "*"))
		const deliveries = 3*store.CloseBatch + 7
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			for _, id := range []string{e.ID, other.ID} {
				err := tx.Exec(ctx, `
					WITH RECURSIVE n (i) AS (SELECT cast(1 AS bigint) UNION ALL SELECT i + 1 FROM n WHERE i < $1)
					INSERT INTO webhook_deliveries (endpoint_id, event_id, environment, taxpayer_id, kind, document_id, revision, state, attempt, run_at, lease, lease_until, created_at)
					SELECT $2, cast(i AS text), 'production', $3, 'k', '', i, 'pending', 0, $4 + i, '', 0, $4 FROM n`, deliveries, id, scope.TaxpayerID, noon.UnixMicro())
				if err != nil {
					return err
				}
			}
			return tx.DeleteEndpoint(ctx, scope, e.ID, noon)
		})
		pending := func() map[string]int {
			got := map[string]int{}
			for _, id := range lines(t, s, `SELECT endpoint_id FROM webhook_deliveries WHERE state = 'pending'`) {
				got[id]++
			}
			return got
		}
		if got := pending(); got[e.ID] != deliveries-store.CloseBatch {
			t.Errorf("the deletion failed %d deliveries, want %d", deliveries-got[e.ID], store.CloseBatch)
		}
		for _, d := range claimDue(t, s, noon.Add(time.Hour), 9) {
			if d.EndpointID == e.ID {
				t.Errorf("a delivery to a deleted endpoint was claimed: %+v", d)
			}
		}
		got, err := s.Purge(t.Context(), noon, store.CloseBatch+3)
		if err != nil || got.Closed != store.CloseBatch+3 || !got.More {
			t.Errorf("purged %+v, %v; want %d and more", got, err, store.CloseBatch+3)
		}
		if got, err = s.Purge(t.Context(), noon, 10*store.CloseBatch); err != nil || got.Closed != store.CloseBatch+4 || got.More {
			t.Errorf("purged %+v, %v; want the other %d", got, err, store.CloseBatch+4)
		}
		if got := pending(); got[e.ID] != 0 || got[other.ID] != deliveries {
			t.Errorf("%d deliveries of the deleted endpoint are pending, and %d of the other", got[e.ID], got[other.ID])
		}
	})
}
