package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func TestASourceIsRotatedAndRevoked(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addLiveScope(t, s)
		made := store.Source{
			Scope: scope, ID: store.NewID(), Kinds: []string{"a.b", "a.c"},
			Secret: store.SealedSecret{Sealed: []byte{0, 1}, Version: 1}, CreatedAt: noon,
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.CreateSource(ctx, made) })
		got, err := s.SourceOf(t.Context(), fiscal.Production, made.ID)
		if diff := cmp.Diff(made, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		if _, err := s.SourceOf(t.Context(), fiscal.Certification, made.ID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("in another environment: %v, want ErrNotFound", err)
		}
		next := store.SealedSecret{Sealed: []byte("next"), Version: 2}
		rotate := func(tx *store.Tx) error { return tx.RotateSource(t.Context(), made, next, noon.Add(time.Hour)) }
		update(t, s, func(_ context.Context, tx *store.Tx) error { return rotate(tx) })
		want := made
		want.Secret, want.OldSecret, want.OldUntil = next, made.Secret, noon.Add(time.Hour)
		if got, err := s.AnySource(t.Context(), made.ID); err != nil || !cmp.Equal(want, got) {
			t.Errorf("rotated: %v\n%s", err, cmp.Diff(want, got))
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.RevokeSource(ctx, scope, made.ID, noon) })
		if _, err := s.SourceOf(t.Context(), fiscal.Production, made.ID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("revoked: %v, want ErrNotFound", err)
		}
		if err := s.Update(t.Context(), rotate); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("rotate a revoked source: %v, want ErrNotFound", err)
		}
		if all, err := s.Sources(t.Context()); err != nil || len(all) != 1 || !all[0].RevokedAt.Equal(noon) {
			t.Errorf("the list: %+v, %v", all, err)
		}
	})
}
