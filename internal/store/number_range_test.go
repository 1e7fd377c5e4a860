package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// addNumberRange adds a number range of a new taxpayer in production.
func addNumberRange(t *testing.T, s *store.Store) store.NumberRange {
	t.Helper()
	scope := store.Scope{Environment: fiscal.Production, TaxpayerID: addScope(t, s).TaxpayerID}
	made := store.NumberRange{Scope: scope, ID: store.NewID(), Type: fiscal.Consumer, First: 1, Last: 100, Next: 1, CreatedAt: noon}
	update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.AddNumberRange(ctx, made) })
	return made
}

func TestFenceBehindFencesARangeOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		made := addNumberRange(t, s)
		fence := func(mark int64) (done bool) {
			update(t, s, func(ctx context.Context, tx *store.Tx) (err error) {
				done, err = tx.FenceBehind(ctx, made, mark, noon)
				return err
			})
			return done
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.TakeNumbers(ctx, made, 5) })
		if fence(5) {
			t.Error("fenced by a number that the range has issued")
		}
		if !fence(6) || fence(7) {
			t.Error("a number that the range has not issued must fence it, once")
		}
		read, err := s.NumberRange(t.Context(), made.Scope, made.ID)
		if err != nil || !read.FencedAt.Equal(noon) || read.Next != 6 {
			t.Fatalf("%+v, %v", read, err)
		}
		take := func(from store.NumberRange) error {
			return s.Update(t.Context(), func(tx *store.Tx) error { return tx.TakeNumbers(t.Context(), from, 1) })
		}
		if err := take(read); !errors.Is(err, store.ErrNumbersTaken) {
			t.Errorf("a number of a fenced range: %v, want ErrNumbersTaken", err)
		}
		release := func(of store.NumberRange, next int64) error {
			return s.Update(t.Context(), func(tx *store.Tx) error { return tx.ReleaseNumberRange(t.Context(), of, next) })
		}
		stale := read
		stale.FencedAt = noon.Add(-time.Hour)
		if err := release(stale, 9); !errors.Is(err, store.ErrNumbersTaken) {
			t.Errorf("the release of an earlier fence: %v, want ErrNumbersTaken", err)
		}
		if err := release(read, 9); err != nil {
			t.Fatal(err)
		}
		if err := release(read, 9); !errors.Is(err, store.ErrNumbersTaken) {
			t.Errorf("released twice: %v, want ErrNumbersTaken", err)
		}
		if read, err = s.NumberRange(t.Context(), made.Scope, made.ID); err != nil || !read.FencedAt.IsZero() || read.Next != 9 {
			t.Errorf("%+v, %v", read, err)
		}
		if err := take(read); err != nil {
			t.Error(err)
		}
		if _, err := s.NumberRange(t.Context(), addScope(t, s), made.ID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a range of another taxpayer: %v, want ErrNotFound", err)
		}
	})
}
