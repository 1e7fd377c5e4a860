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

func takeBlock(t *testing.T, s *store.Store, bucket string, end time.Time, n int64) (reserved int64) {
	t.Helper()
	update(t, s, func(ctx context.Context, tx *store.Tx) (err error) {
		reserved, err = tx.TakeBlock(ctx, bucket, end, n)
		return err
	})
	return reserved
}

func TestARateWindowCountsAndMovesForward(t *testing.T) {
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
		{"another bucket has its own count", "b", noon, 2, 2},
		{"a later window starts at zero", "a", noon.Add(time.Minute), 1, 1},
		{"a clock that is behind counts in the later window", "a", noon, 4, 5},
		{"that clock did not move the window back", "a", noon.Add(time.Minute), 1, 6},
		{"a clock that was far ahead", "c", noon.Add(time.Hour), 9, 9},
		{"its window is replaced after the clock is correct", "c", noon, 2, 2},
		{"the replaced window counts on", "c", noon, 3, 5},
	}
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		for _, step := range steps {
			if got := takeBlock(t, s, step.bucket, step.end, step.n); got != step.want {
				t.Errorf("%s: %d requests are reserved, want %d", step.name, got, step.want)
			}
		}
	})
}

// Each concurrent call gets another sum, so that no request is counted twice.
func TestConcurrentBlocksAddUp(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		const takers, n = 40, 3
		var mu sync.Mutex
		var got, want []int64
		together(takers, func(int) {
			var reserved int64
			err := s.Update(t.Context(), func(tx *store.Tx) (err error) {
				reserved, err = tx.TakeBlock(t.Context(), "a", noon, n)
				return err
			})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			got, want = append(got, reserved), append(want, n*int64(len(want)+1))
		})
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}
