package store

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// A Queue is the set of jobs that share workers. The stage of a job determines its
// queue.
type Queue string

// The queues of jobs. Workers that deliver to buyers wait for servers of others, so
// they have a queue of their own.
const (
	QueueMain    Queue = "main"
	QueueDeliver Queue = "deliver"
)

// Queues lists all queues.
func Queues() []Queue { return []Queue{QueueMain, QueueDeliver} }

// QueueOf returns the queue of a stage. The column jobs.queue has the same rule.
func QueueOf(stage string) Queue {
	if stage == "deliver" {
		return QueueDeliver
	}
	return QueueMain
}

// longestLease is longer than any lease that a worker or a sender takes. A lease that
// ends later than that was taken while the clock was wrong, and counts as expired.
const longestLease = 10 * time.Minute

// A Claim is the request of a worker for due jobs.
type Claim struct {
	Queue      Queue // empty: all queues
	Lease      string
	Now, Until time.Time
	Limit      int
	Except     [4]string // taxpayers whose jobs the claim skips
	Suspended  int       // how many suspended jobs the claim may take
	Front      *Front    // where earlier claims found the first jobs; nil: unknown
}

func (c Claim) queues() []Queue {
	if c.Queue == "" {
		return Queues()
	}
	return []Queue{c.Queue}
}

// excludes reports whether the claim skips the jobs of a taxpayer.
func (c Claim) excludes(taxpayerID string) bool { return slices.Contains(c.Except[:], taxpayerID) }

// Claim leases jobs to a worker: the first c.Limit of the documents that DueJobs
// returned, without those that another worker has claimed since. No other worker gets
// them before the lease ends. Every write of the worker checks the lease.
func (tx *Tx) Claim(ctx context.Context, env fiscal.Environment, c Claim, documentIDs []string) ([]Job, error) {
	var free []string
	var err error
	for chunk := range slices.Chunk(documentIDs, max(c.Limit, 1)) {
		// The first chunk is enough unless other workers claim at the same moment. Each
		// document costs a search in the index.
		var some []string
		if some, err = tx.lockFree(ctx, c, chunk, c.Limit-len(free)); err != nil {
			break
		}
		if free = append(free, some...); len(free) >= c.Limit {
			break
		}
	}
	if err != nil || len(free) == 0 {
		return nil, err
	}
	ids, args := placeholders(free)
	n := len(args)
	jobs, err := collect(tx.rows(ctx, "claim jobs", `
		UPDATE jobs SET lease = $`+strconv.Itoa(n+1)+`, lease_until = $`+strconv.Itoa(n+2)+`, attempt = attempt + 1
		WHERE document_id IN (`+ids+`)
		RETURNING environment, document_id, taxpayer_id, plan, stage, attempt, run_at, last_error, created_at`,
		append(args, c.Lease, micros(c.Until))...), func(j *Job) []any {
		j.Lease, j.LeaseUntil = c.Lease, c.Until
		return []any{&j.Environment, &j.DocumentID, &j.TaxpayerID, &j.Plan, &j.Stage, &j.Attempt, into(j.setRunAt), &j.Cause, instant(&j.CreatedAt)}
	})
	for _, j := range jobs {
		if j.Environment != env {
			return nil, errors.New("store: claim jobs: the job of document " + j.DocumentID + " belongs to the environment " + string(j.Environment))
		}
	}
	return jobs, err
}

// lockFree locks the oldest jobs of the given documents that are still due or
// suspended, or that a clock stored which was ahead, and that no worker holds, at most the
// limit. It skips jobs that another transaction has locked.
//
// The condition has only the ids: with the environment the planner could choose an
// index that reads the whole environment. For the same reason the statement that
// changes the jobs is another one: a planner that knows a table of few rows would join
// by reading all of it, and keep that plan when the table grows.
func (tx *Tx) lockFree(ctx context.Context, c Claim, documentIDs []string, limit int) ([]string, error) {
	if len(documentIDs) == 0 || limit < 1 {
		return nil, nil
	}
	ids, args := placeholders(documentIDs)
	n := len(args)
	now, far, most := "$"+strconv.Itoa(n+1), "$"+strconv.Itoa(n+2), "$"+strconv.Itoa(n+3)
	pause, deliverPause := "$"+strconv.Itoa(n+4), "$"+strconv.Itoa(n+5) // suspended jobs lie beyond
	return collect(tx.rows(ctx, "lock jobs", `
		SELECT document_id FROM jobs
		WHERE document_id IN (`+ids+`)
			AND (run_at <= `+now+` OR run_at > `+pause+` AND (queue <> '`+string(QueueDeliver)+`' OR run_at > `+deliverPause+`))
			AND (lease_until <= `+now+` OR lease_until > `+far+`)
		ORDER BY run_at, document_id LIMIT `+most+` `+tx.d.SkipLocked,
		append(args, micros(c.Now), micros(c.Now.Add(longestLease)), limit,
			farAhead(c.Now, LongestPause(QueueMain)), farAhead(c.Now, LongestPause(QueueDeliver)))...), only[string])
}
