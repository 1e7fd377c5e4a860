package store_test

import (
	"context"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func TestMarkNotifiedReportsTheFirstTimeOnly(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope, other := addLiveScope(t, s), addLiveScope(t, s)
		for i, want := range []struct {
			scope         store.Scope
			subject, mark string
			fresh         bool
		}{
			{scope, "certificate 1", "30", true}, {scope, "certificate 1", "30", false}, {scope, "certificate 1", "14", true},
			{scope, "certificate 2", "30", true}, {other, "certificate 1", "30", true},
		} {
			update(t, s, func(ctx context.Context, tx *store.Tx) error {
				fresh, err := tx.MarkNotified(ctx, want.scope, want.subject, want.mark, noon)
				if fresh != want.fresh {
					t.Errorf("%d: fresh = %v, want %v", i, fresh, want.fresh)
				}
				return err
			})
		}
	})
}
