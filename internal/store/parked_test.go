package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/google/go-cmp/cmp"
)

func TestParkedMessagesAreKeptForThirtyDays(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope, other := addLiveScope(t, s), addLiveScope(t, s)
		p := store.Parked{Scope: scope, ID: store.NewID(), SourceID: "s", MessageID: "m", Kind: "a", ENCF: "E310000000001", Body: []byte("<x/>"), At: noon}
		q := p
		q.ID, q.MessageID = store.NewID(), "n"
		for _, one := range []store.Parked{p, q} {
			update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.Park(ctx, one) })
		}
		p.ExpiresAt, q.ExpiresAt = noon.Add(30*24*time.Hour), noon.Add(30*24*time.Hour)
		parked := func(scope store.Scope, at time.Time) []store.Parked {
			t.Helper()
			got, err := s.Parked(t.Context(), scope, p.ENCF, at)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		if diff := cmp.Diff([]store.Parked{p, q}, parked(scope, p.ExpiresAt.Add(-time.Microsecond))); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if len(parked(other, noon)) != 0 || len(parked(scope, p.ExpiresAt)) != 0 {
			t.Error("another taxpayer gets the messages, or they do not expire")
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			was, err := tx.Unpark(ctx, scope, p.ID)
			again, errAgain := tx.Unpark(ctx, scope, p.ID)
			if !was || again {
				t.Errorf("unparked: %v, then %v", was, again)
			}
			return errors.Join(err, errAgain)
		})
	})
}
