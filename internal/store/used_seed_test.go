package store_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

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
		use("b", noon.Add(time.Hour), noon.Add(time.Minute)) // the first seed has expired and is deleted
		if fresh.Load() != 2 || count(t, s, "used_seeds") != 1 {
			t.Errorf("%d were new, %d are kept", fresh.Load(), count(t, s, "used_seeds"))
		}
	})
}
