package store_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func TestWakeJobsMakesWaitingStagesDueOldestFirst(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		const waiting = store.WakeBatch + 20
		later := noon.Add(time.Hour)
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(
				fill(ctx, tx, 1, waiting, 3, "submit", later),
				fill(ctx, tx, waiting+1, waiting+5, 1, "poll", later),
				fill(ctx, tx, waiting+6, waiting+9, 1, "deliver", later),
				tx.Exec(ctx, `UPDATE jobs SET attempt = 9, last_error = 'no answer'`),
				// The oldest would be due last, one is held, one is due, and one belongs
				// to another environment.
				tx.Exec(ctx, `UPDATE jobs SET run_at = run_at + 3600000000 WHERE document_id = 'd10000001'`),
				tx.Exec(ctx, `UPDATE jobs SET lease = 'worker', lease_until = $1 WHERE document_id = 'd10000002'`, noon.Add(time.Minute).UnixMicro()),
				tx.Exec(ctx, `UPDATE jobs SET run_at = $1 WHERE document_id = 'd10000003'`, noon.Add(-time.Minute).UnixMicro()),
				tx.Exec(ctx, `UPDATE jobs SET environment = 'production' WHERE document_id = 'd10000004'`))
		})
		stages := []string{"submit", "poll", "reconcile"}
		if n, err := s.WakeJobs(t.Context(), fiscal.Sandbox, stages, noon); err != nil || n != waiting+5-3 {
			t.Errorf("woke %d jobs, %v; want %d", n, err, waiting+5-3)
		}
		if n, err := s.WakeJobs(t.Context(), fiscal.Sandbox, stages, noon); err != nil || n != 0 {
			t.Errorf("woke %d jobs again, %v", n, err)
		}
		got := claim(t, s, "l", noon, noon.Add(time.Minute), 4)
		slices.SortFunc(got, func(a, b store.Job) int {
			return cmp.Or(a.RunAt.Compare(b.RunAt), strings.Compare(a.DocumentID, b.DocumentID))
		})
		var order []string
		for i, j := range got {
			order = append(order, j.DocumentID)
			if i > 0 && j.Attempt != 1 {
				t.Errorf("%s has attempt %d, want 1", j.DocumentID, j.Attempt)
			}
		}
		// The job that was due already comes first.
		if want := []string{"d10000003", "d10000001", "d10000005", "d10000006"}; !slices.Equal(order, want) {
			t.Errorf("claimed %v, want %v", order, want)
		}
	})
}

// The end of a contingency is one small write. What it leaves to do is recorded until
// it is done.
func TestAContingencyEndsBeforeItsJobsAreWoken(t *testing.T) {
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
