package store

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// wakeBatch is how many jobs one step of WakeJobs reads, and changes at most, in one
// transaction.
const wakeBatch = 500

// WakeJobs makes the waiting jobs of the given stages due at now, and returns how
// many. It changes the jobs that no worker holds, the oldest document first, and
// starts to count their attempts again, so that the time of an outage does not
// lengthen the next pauses. Documents keep their order: jobs that are due at the same
// moment are claimed in the order of their creation.
//
// WakeJobs works in small transactions, so that other writers go on in between. After
// an error or a crash the caller calls it again; it then skips the jobs that are
// already due.
func (s *Store) WakeJobs(ctx context.Context, env fiscal.Environment, stages []string, now time.Time) (woken int, err error) {
	for after := ""; ; {
		last, asleep, err := s.sleepingJobs(ctx, env, stages, after, now)
		if err != nil || last == "" {
			return woken, err
		}
		if len(asleep) > 0 {
			n, err := s.wake(ctx, stages, asleep, now)
			if err != nil {
				return woken, err
			}
			woken += n
		}
		after = last
	}
}

// sleepingJobs reads a batch of jobs after a document, and returns those of the
// stages that are due later than now. last is the last document of the batch; empty:
// there is none after the given one.
func (s *Store) sleepingJobs(ctx context.Context, env fiscal.Environment, stages []string, after string, now time.Time) (last string, asleep []string, err error) {
	// The batch comes from the primary key, which has the order of creation. Without
	// further conditions it costs the same whatever the jobs wait for.
	rows, err := s.q.QueryContext(ctx, `
		SELECT document_id, environment, stage, run_at FROM jobs WHERE document_id > $1 ORDER BY document_id LIMIT `+strconv.Itoa(wakeBatch), after)
	if err != nil {
		return "", nil, s.d.wrap("find waiting jobs", err)
	}
	jobs, err := collect(s.d, "find waiting jobs", rows, func(row row) (j Job, err error) {
		var run int64
		err = row.Scan(&j.DocumentID, &j.Environment, &j.Stage, &run)
		j.RunAt = fromMicros(run)
		return j, err
	})
	for _, j := range jobs {
		last = j.DocumentID
		if j.Environment == env && slices.Contains(stages, j.Stage) && j.RunAt.After(now) {
			asleep = append(asleep, j.DocumentID)
		}
	}
	return last, asleep, err
}

// wake makes jobs due that are still waiting in one of the stages and have no lease.
func (s *Store) wake(ctx context.Context, stages, documentIDs []string, now time.Time) (woken int, err error) {
	ids, args := placeholders(documentIDs)
	arg := func(v any) string {
		args = append(args, v)
		return "$" + strconv.Itoa(len(args))
	}
	var names []string
	for _, stage := range stages {
		names = append(names, arg(stage))
	}
	at, far := arg(micros(now)), arg(micros(now.Add(longestLease)))
	text := `
		UPDATE jobs SET run_at = ` + at + `, attempt = 0
		WHERE document_id IN (` + ids + `) AND stage IN (` + strings.Join(names, ", ") + `)
			AND run_at > ` + at + ` AND (lease_until <= ` + at + ` OR lease_until > ` + far + `)`
	err = s.Update(ctx, func(tx *Tx) error {
		n, err := statement{text, args}.run(ctx, tx.q)
		woken = int(n)
		return tx.d.wrap("wake jobs", err)
	})
	return woken, err
}
