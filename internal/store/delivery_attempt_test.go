package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func TestTheDeliveryLogIsPaged(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		e := addEndpoint(t, s, sampleEndpoint(addLiveScope(t, s), "*"))
		want := make([]store.DeliveryAttempt, 3)
		for i := range want {
			want[2-i] = store.DeliveryAttempt{
				Scope: e.Scope, ID: store.NewID(), EndpointID: e.ID, EventID: event.NewID(), Kind: "webhook.test", Number: 1, At: noon,
				Took: 1500 * time.Microsecond, HTTPStatus: 500, Error: "status_500", Answer: []byte("a\x00é"), NextAt: noon.Add(time.Second),
			}
			update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.AddDeliveryAttempt(ctx, want[2-i]) })
		}
		first, err := s.DeliveryLog(t.Context(), e.Scope, e.ID, "", 2)
		if diff := cmp.Diff(want[:2], first); diff != "" || err != nil {
			t.Errorf("the first page: %v\n%s", err, diff)
		}
		rest, err := s.DeliveryLog(t.Context(), e.Scope, e.ID, first[1].ID, 2)
		if diff := cmp.Diff(want[2:], rest); diff != "" || err != nil {
			t.Errorf("the second page: %v\n%s", err, diff)
		}
		if none, err := s.DeliveryLog(t.Context(), addLiveScope(t, s), e.ID, "", 2); err != nil || len(none) != 0 {
			t.Errorf("of another taxpayer: %v, %v", none, err)
		}
	})
}
