package store_test

import (
	"context"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func TestAContingencyStartsAndEndsOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		change := func(what string, want bool, fn func(ctx context.Context, tx *store.Tx) (bool, error)) {
			t.Helper()
			update(t, s, func(ctx context.Context, tx *store.Tx) error {
				got, err := fn(ctx, tx)
				if got != want {
					t.Errorf("%s: %v, want %v", what, got, want)
				}
				return err
			})
		}
		last := func(want store.Contingency) {
			t.Helper()
			got, err := s.Contingency(t.Context(), fiscal.Production)
			if err != nil {
				t.Fatal(err)
			}
			want.Environment = fiscal.Production
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		}
		start := func(at time.Time) func(context.Context, *store.Tx) (bool, error) {
			return func(ctx context.Context, tx *store.Tx) (bool, error) {
				return tx.StartContingency(ctx, fiscal.Production, at)
			}
		}
		stop := func(ctx context.Context, tx *store.Tx) (bool, error) {
			return tx.EndContingency(ctx, fiscal.Production, noon.Add(time.Hour))
		}
		change("end without a contingency", false, stop)
		change("start", true, start(noon))
		change("start again", false, start(noon.Add(time.Second)))
		change("end", true, stop)
		last(store.Contingency{StartedAt: noon, EndedAt: noon.Add(time.Hour)})
		change("start another", true, start(noon.Add(3*time.Hour)))
	})
}

// Two nodes that start a contingency at the same moment start one.
func TestNodesStartOneContingency(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		together(8, func(i int) {
			err := s.Update(t.Context(), func(tx *store.Tx) error {
				_, err := tx.StartContingency(t.Context(), fiscal.Production, noon.Add(time.Duration(i)*time.Millisecond))
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
		if n := count(t, s, "contingencies"); n != 1 {
			t.Errorf("%d contingencies, want 1", n)
		}
	})
}
