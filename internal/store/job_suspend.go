package store

import (
	"context"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/cause"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// suspendedFrom is the run_at of suspended jobs, before the time of their creation is
// added. It lies in the year 5138: no other job is due so late. Suspended jobs
// therefore have a part of the indexes of jobs for themselves, in the order of their
// creation, and a claim finds the oldest one as quickly as a due job.
const suspendedFrom = 100_000_000_000_000_000

// setRunAt sets when a job is due, or that it is suspended.
func (j *Job) setRunAt(runAt int64) {
	if runAt >= suspendedFrom {
		j.Suspended = true
		return
	}
	j.RunAt = fromMicros(runAt)
}

// SuspendJob gives up the lease of a job that waits until the tax authority answers,
// which it has not done since the given moment. A claim takes it when the claim takes
// suspended jobs. The stage counts its attempts from the start, so that an outage does
// not lengthen the next pauses. A delivery keeps the number of its earlier attempts:
// the buyer may have received one of them. No claim takes the job before notBefore.
//
// The batch also records the failure in the contact with the authority. Programs of
// the first release know no suspended jobs; they make all of them due when the
// recorded failure ends.
func (b *Batch) SuspendJob(j Job, since, notBefore time.Time, why cause.Cause) *Batch {
	attempts := int64(0)
	if QueueOf(j.Stage) == QueueDeliver {
		attempts = max(j.Attempt-1, 0)
	}
	b.add(do(`
		UPDATE jobs SET run_at = created_at + $6, attempt = $7, lease = '', lease_until = $8, last_error = $9 `+whereJobHeld,
		j.heldArgs(int64(suspendedFrom), attempts, micros(notBefore), string(why))...), ErrLeaseLost)
	return b.add(reportFailure(j.Environment, since), nil)
}

// HasSuspendedJobs reports whether jobs of the main queue of an environment are
// suspended, or were and are not done yet.
func (r reader) HasSuspendedJobs(ctx context.Context, env fiscal.Environment) (bool, error) {
	return r.exists(ctx, "find suspended jobs", `
		SELECT 1 FROM jobs WHERE environment = $1 AND queue = $2 AND run_at >= $3
		ORDER BY run_at, document_id LIMIT 1`, env, QueueMain, int64(suspendedFrom))
}
