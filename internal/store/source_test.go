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

func TestTheLifeOfASource(t *testing.T) {
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
			t.Errorf("rotate a revoked one: %v, want ErrNotFound", err)
		}
		if all, err := s.Sources(t.Context()); err != nil || len(all) != 1 || !all[0].RevokedAt.Equal(noon) {
			t.Errorf("the list: %+v, %v", all, err)
		}
	})
}

func TestAMessageIsHeardOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addLiveScope(t, s)
		var fresh atomic.Int64
		hear := func(source, id string) {
			err := s.Update(t.Context(), func(tx *store.Tx) error {
				is, err := tx.ReceiveInbound(t.Context(), store.Inbound{Scope: scope, SourceID: source, MessageID: id, At: noon, Kind: "a"})
				if is {
					fresh.Add(1)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}
		together(8, func(int) { hear("s", "m") })
		hear("s", "n")
		hear("r", "m")
		if fresh.Load() != 3 {
			t.Errorf("%d were new, want 3", fresh.Load())
		}
	})
}

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
			t.Error("another taxpayer sees it, or it does not expire")
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			was, err := tx.Unpark(ctx, scope, p.ID)
			again, errAgain := tx.Unpark(ctx, scope, p.ID)
			if !was || again {
				t.Errorf("unparked: %v, then %v", was, again)
			}
			return errors.Join(err, errAgain)
		})
		if n, err := s.PurgeParked(t.Context(), p.ExpiresAt.Add(-time.Microsecond)); err != nil || n != 0 {
			t.Errorf("purged %d too early, %v", n, err)
		}
		if n, err := s.PurgeParked(t.Context(), p.ExpiresAt); err != nil || n != 1 || count(t, s, "parked") != 0 {
			t.Errorf("purged %d, %v", n, err)
		}
	})
}

func TestASeedIsUsedOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		var fresh atomic.Int64
		use := func(digest string, expires, now time.Time) {
			is, err := s.UseSeed(t.Context(), []byte(digest), expires, now)
			if err != nil {
				t.Error(err)
			}
			if is {
				fresh.Add(1)
			}
		}
		together(8, func(int) { use("a", noon.Add(time.Minute), noon) })
		use("b", noon.Add(time.Hour), noon.Add(time.Minute)) // by now the first is forgotten
		if fresh.Load() != 2 || count(t, s, "used_seeds") != 1 {
			t.Errorf("%d were new, %d are kept", fresh.Load(), count(t, s, "used_seeds"))
		}
	})
}
