package store_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// takeOrdered claims jobs and returns their documents in the order of DueJobs.
func takeOrdered(t *testing.T, s *store.Store, c store.Claim) (order []string, jobs []store.Job) {
	t.Helper()
	c.Lease, c.Until = store.NewID(), c.Now.Add(time.Minute)
	update(t, s, func(ctx context.Context, tx *store.Tx) error {
		due, err := tx.DueJobs(ctx, fiscal.Sandbox, c)
		if err != nil {
			return err
		}
		jobs, err = tx.Claim(ctx, fiscal.Sandbox, c, due)
		order = slices.DeleteFunc(due, func(id string) bool {
			return !slices.ContainsFunc(jobs, func(j store.Job) bool { return j.DocumentID == id })
		})
		return err
	})
	return order, jobs
}

// suspendAll claims the due jobs at noon and suspends them.
func suspendAll(t *testing.T, s *store.Store, jobs int) {
	t.Helper()
	for _, j := range claim(t, s, store.NewID(), noon.Add(time.Second), noon.Add(time.Minute), jobs) {
		if err := s.Commit(t.Context(), new(store.Batch).SuspendJob(j, noon, noon, "no answer")); err != nil {
			t.Fatal(err)
		}
	}
}

// A suspended job is due for no claim, however late, unless the claim takes suspended
// jobs. It then takes the oldest, whatever they waited for.
func TestSuspendedJobsWaitForAClaimThatTakesThem(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			if err := fill(ctx, tx, 1, 9, 3, "submit", noon); err != nil {
				return err
			}
			// The oldest document has the highest id and was tried last.
			return tx.Exec(ctx, `UPDATE jobs SET created_at = created_at - 1, run_at = run_at + 100, attempt = 9 WHERE document_id = 'd10000009'`)
		})
		suspendAll(t, s, 9)
		later := noon.Add(1000 * 24 * time.Hour)
		if order, _ := takeOrdered(t, s, store.Claim{Now: later, Limit: 5}); len(order) != 0 {
			t.Errorf("a claim without suspended jobs took %v", order)
		}
		job, err := s.JobOf(t.Context(), store.Scope{Environment: fiscal.Sandbox, TaxpayerID: "t1001"}, "d10000001")
		if err != nil || !job.Suspended || !job.RunAt.IsZero() || job.Lease != "" || job.Cause != "no answer" {
			t.Errorf("job %+v, %v", job, err)
		}
		if order, _ := takeOrdered(t, s, store.Claim{Now: later, Limit: 5, Suspended: 1}); !slices.Equal(order, []string{"d10000009"}) {
			t.Errorf("a claim of one suspended job took %v", order)
		}
		order, jobs := takeOrdered(t, s, store.Claim{Now: later, Limit: 3, Suspended: 100})
		if !slices.Equal(order, []string{"d10000001", "d10000002", "d10000003"}) {
			t.Errorf("a claim of suspended jobs took %v", order)
		}
		for _, j := range jobs {
			if !j.Suspended || j.Attempt != 1 {
				t.Errorf("claimed %+v, want a suspended job at its first attempt", j)
			}
		}
	})
}

// New documents do not wait behind the suspended ones.
func TestSuspendedAndDueJobsTakeTurns(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return fill(ctx, tx, 1, 20, 1, "submit", noon) })
		suspendAll(t, s, 20)
		later := noon.Add(time.Hour)
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return fill(ctx, tx, 101, 120, 1, "issue", later) })
		order, _ := takeOrdered(t, s, store.Claim{Now: later.Add(time.Second), Limit: 4, Suspended: 4})
		if !slices.Equal(order, []string{"d10000001", "d10000101", "d10000002", "d10000102"}) {
			t.Errorf("claimed %v", order)
		}
		// A taxpayer that has its share has it of both.
		c := store.Claim{Now: later.Add(time.Second), Limit: 4, Suspended: 4, Except: [4]string{"t1000"}}
		if order, _ := takeOrdered(t, s, c); len(order) != 0 {
			t.Errorf("claimed %v of a taxpayer that has its share", order)
		}
	})
}

// A delivery that was attempted before stays one that was attempted before.
func TestASuspendedDeliveryKeepsItsAttempts(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			if err := fill(ctx, tx, 1, 1, 1, "deliver", noon); err != nil {
				return err
			}
			return tx.Exec(ctx, `UPDATE jobs SET attempt = 3`)
		})
		suspendAll(t, s, 1)
		_, jobs := takeOrdered(t, s, store.Claim{Queue: store.QueueDeliver, Now: noon.Add(time.Hour), Limit: 1, Suspended: 1})
		if len(jobs) != 1 || jobs[0].Attempt != 4 {
			t.Errorf("claimed %+v, want the fourth attempt", jobs)
		}
	})
}

// Programs of the first release know no suspended jobs. While they run beside this
// program, or after a return to them, they find the failure recorded, and make every
// job due that is due later than now when the failure ends.
func TestProgramsOfTheFirstReleaseWakeSuspendedJobs(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return fill(ctx, tx, 1, 5, 1, "submit", noon) })
		suspendAll(t, s, 5)
		contact, err := s.AuthorityContact(t.Context(), fiscal.Sandbox)
		if err != nil || !contact.FailingSince.Equal(noon) {
			t.Errorf("contact %+v, %v; want a failure since noon", contact, err)
		}
		answered := noon.Add(time.Hour)
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.ReportAnswer(ctx, fiscal.Sandbox, answered) })
		if waking := lines(t, s, `SELECT cast(waking AS text) FROM authority_contact`); !slices.Equal(waking, []string{"1"}) {
			t.Errorf("waking is %v, want 1", waking)
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error { // as store.WakeJobs of the first release
			return tx.Exec(ctx, `
				UPDATE jobs SET run_at = $1, attempt = 0
				WHERE document_id IN ('d10000001', 'd10000002', 'd10000003', 'd10000004', 'd10000005') AND stage IN ('submit')
					AND run_at > $1 AND (lease_until <= $1 OR lease_until > $2)`, answered.UnixMicro(), answered.Add(10*time.Minute).UnixMicro())
		})
		if jobs := claim(t, s, "l", answered, answered.Add(time.Minute), 5); len(jobs) != 5 || jobs[0].Suspended {
			t.Errorf("claimed %+v, want 5 due jobs", jobs)
		}
	})
}

// The authority may answer a moment after a look-up without an answer. No claim takes the
// suspended job before its time.
func TestSuspendedJobIsNotTakenTooSoon(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return fill(ctx, tx, 1, 1, 1, "poll", noon) })
		asked := noon.Add(time.Second)
		for _, j := range claim(t, s, store.NewID(), asked, asked.Add(time.Minute), 1) {
			if err := s.Commit(t.Context(), new(store.Batch).SuspendJob(j, noon, asked.Add(time.Second), "no answer")); err != nil {
				t.Fatal(err)
			}
		}
		for _, step := range []struct {
			after time.Duration
			want  int
		}{{0, 0}, {999 * time.Millisecond, 0}, {time.Second, 1}} {
			if order, _ := takeOrdered(t, s, store.Claim{Now: asked.Add(step.after), Limit: 5, Suspended: 5}); len(order) != step.want {
				t.Errorf("after %s a claim took %v, want %d jobs", step.after, order, step.want)
			}
		}
	})
}
