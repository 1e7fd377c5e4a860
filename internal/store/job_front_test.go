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

// On PostgreSQL a claim reads as many blocks after thousands of finished jobs as before
// the first one, even while an old transaction, such as a backup, keeps the server from
// removing them.
func TestAPostgresClaimDoesNotReadFinishedJobs(t *testing.T) {
	t.Parallel()
	address := storetest.Address(t, "postgres")
	tx := store.TxOn(connection(t, address), "postgres")
	if err := fill(t.Context(), tx, 1, 3000, 1, "first", noon); err != nil {
		t.Fatal(err)
	}
	backup := store.TxOn(connection(t, address), "postgres")
	execute(t, backup, `BEGIN ISOLATION LEVEL REPEATABLE READ`)
	execute(t, backup, `SELECT 1 FROM jobs LIMIT 1`)
	worker := store.TxOn(connection(t, address), "postgres")
	explained := tx.Explain()
	c := claimCase{"after finished jobs", 1, nil, noon.Add(time.Minute), 8, new(store.Front)}
	before := measure(t, tx, explained, []claimCase{c})
	for finished := 0; finished < 2500; {
		due, err := worker.DueJobs(t.Context(), fiscal.Sandbox, c.request())
		if err != nil {
			t.Fatal(err)
		}
		execute(t, worker, `DELETE FROM jobs WHERE document_id = ANY ($1)`, due)
		finished += len(due)
	}
	compare(t, "2,500 finished jobs", before, measure(t, tx, explained, []claimCase{c}))
	execute(t, backup, `COMMIT`)
}

// frontEnv looks for the first job of a store again and again.
type frontEnv struct {
	*store.Store
	t     *testing.T
	now   time.Time
	front store.Front
}

// first returns the first document that a claim finds; empty: it finds none.
func (e *frontEnv) first() string {
	e.t.Helper()
	due, err := e.DueJobs(e.t.Context(), fiscal.Sandbox, store.Claim{Now: e.now, Limit: 1, Suspended: 1, Front: &e.front})
	if err != nil {
		e.t.Fatal(err)
	}
	if len(due) == 0 {
		return ""
	}
	return due[0]
}

func (e *frontEnv) want(what, document string) {
	e.t.Helper()
	if got := e.first(); got != document {
		e.t.Errorf("%s: found %q, want %q", what, got, document)
	}
}

// A job can become claimable before the front of the queue, for example when the lease
// of a dead worker ends. The next claims find it within a second.
func TestAClaimFindsJobsBeforeTheFront(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]time.Time{"due": noon, "suspended": time.UnixMicro(store.SuspendedFrom + noon.UnixMicro())} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				e := &frontEnv{Store: s, t: t, now: noon.Add(time.Hour)}
				update(t, s, func(ctx context.Context, tx *store.Tx) error {
					return errors.Join(fill(ctx, tx, 1, 300, 1, "first", first),
						tx.Exec(ctx, `UPDATE jobs SET lease_until = $1 WHERE document_id <= 'd10000004'`, e.now.Add(500*time.Millisecond).UnixMicro()))
				})
				e.want("some jobs are leased", "d10000005")
				e.now = e.now.Add(600 * time.Millisecond)
				e.want("the leases have ended", "d10000005")
				e.now = e.now.Add(400 * time.Millisecond)
				e.want("a second later", "d10000001")
			})
		})
	}
}

// A claim finds a job at once whose transaction committed some seconds after it had
// read the clock.
func TestAClaimFindsAJobThatWasCommittedLate(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		e := &frontEnv{Store: s, t: t, now: noon}
		e.want("nothing waits", "")
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return fill(ctx, tx, 1, 1, 1, "first", noon.Add(-5*time.Second))
		})
		e.want("a late commit", "d10000001")
	})
}
