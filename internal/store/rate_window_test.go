package store_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func takeBlock(t *testing.T, s *store.Store, bucket string, end time.Time, n int64) (claimed int64) {
	t.Helper()
	update(t, s, func(ctx context.Context, tx *store.Tx) (err error) {
		claimed, err = tx.TakeBlock(ctx, bucket, end, n)
		return err
	})
	return claimed
}

func TestAWindowCountsAndMovesForward(t *testing.T) {
	t.Parallel()
	steps := []struct {
		name   string
		bucket string
		end    time.Time
		n      int64
		want   int64
	}{
		{"the first block", "a", noon, 5, 5},
		{"another adds up", "a", noon, 3, 8},
		{"another bucket counts by itself", "b", noon, 2, 2},
		{"a later window starts anew", "a", noon.Add(time.Minute), 1, 1},
		{"a clock that is behind counts in the later window", "a", noon, 4, 5},
		{"and did not move it back", "a", noon.Add(time.Minute), 1, 6},
		{"a clock that was far ahead", "c", noon.Add(time.Hour), 9, 9},
		{"gives way once it has been put right", "c", noon, 2, 2},
		{"and the window goes on from there", "c", noon, 3, 5},
	}
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		for _, step := range steps {
			if got := takeBlock(t, s, step.bucket, step.end, step.n); got != step.want {
				t.Errorf("%s: %d are claimed, want %d", step.name, got, step.want)
			}
		}
	})
}

// Every claim sees a sum of its own, so no two nodes are given the same place.
func TestBlocksTakenAtTheSameMomentAddUp(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		const takers, n = 40, 3
		var mu sync.Mutex
		var got, want []int64
		together(takers, func(int) {
			var claimed int64
			err := s.Update(t.Context(), func(tx *store.Tx) (err error) {
				claimed, err = tx.TakeBlock(t.Context(), "a", noon, n)
				return err
			})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			got, want = append(got, claimed), append(want, n*int64(len(want)+1))
		})
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}
