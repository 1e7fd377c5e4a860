package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strconv"
	"strings"
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
}

func (c Claim) queues() []Queue {
	if c.Queue == "" {
		return Queues()
	}
	return []Queue{c.Queue}
}

// excludes reports whether the claim skips the jobs of a taxpayer.
func (c Claim) excludes(taxpayerID string) bool { return slices.Contains(c.Except[:], taxpayerID) }

// NextJob returns when the next job without a lease becomes due, in the given queues
// of an environment, or in all queues when none is given. The error is ErrNotFound
// when there is none.
func (r reader) NextJob(ctx context.Context, env fiscal.Environment, now time.Time, queues ...Queue) (time.Time, error) {
	if len(queues) == 0 {
		queues = Queues()
	}
	var next sql.NullInt64
	for _, queue := range queues {
		var at int64
		err := r.q.QueryRowContext(ctx, `
			SELECT run_at FROM jobs
			WHERE environment = $1 AND queue = $2 AND (lease_until <= $3 OR lease_until > $4)
			ORDER BY run_at, document_id LIMIT 1`, env, queue, micros(now), micros(now.Add(longestLease))).Scan(&at)
		switch {
		case errors.Is(err, sql.ErrNoRows):
		case err != nil:
			return time.Time{}, r.d.wrap("read the next job", err)
		case !next.Valid || at < next.Int64:
			next = sql.NullInt64{Int64: at, Valid: true}
		}
	}
	if !next.Valid {
		return time.Time{}, r.d.wrap("read the next job", sql.ErrNoRows)
	}
	return fromMicros(next.Int64), nil
}

// dueJob is a job that is due and that no worker holds.
type dueJob struct {
	documentID, taxpayerID string
	runAt                  int64
}

func scanDueJob(r row) (j dueJob, err error) {
	err = r.Scan(&j.documentID, &j.taxpayerID, &j.runAt)
	return j, err
}

// DueJobs returns the documents whose jobs a claim can take, the oldest first. It
// returns more than the limit of the claim, so that nodes that claim at the same
// moment do not compete for the same jobs. What it reads does not grow with the
// number of waiting jobs.
func (r reader) DueJobs(ctx context.Context, env fiscal.Environment, c Claim) (documentIDs []string, err error) {
	var due []dueJob
	for _, queue := range c.queues() {
		some, err := r.dueIn(ctx, env, queue, c)
		if err != nil {
			return nil, r.d.wrap("find due jobs", err)
		}
		due = append(due, some...)
	}
	slices.SortFunc(due, func(a, b dueJob) int {
		return cmp.Or(cmp.Compare(a.runAt, b.runAt), strings.Compare(a.documentID, b.documentID))
	})
	for _, j := range due[:min(len(due), frontSize, 4*c.Limit)] {
		documentIDs = append(documentIDs, j.documentID)
	}
	return documentIDs, nil
}

// frontSize is how many due jobs at the front of a queue a claim looks at.
const frontSize = 64

// dueIn returns the due jobs at the front of a queue, without those of the taxpayers
// that the claim skips. When the whole front belongs to them, it looks for the jobs
// of every other taxpayer.
func (r reader) dueIn(ctx context.Context, env fiscal.Environment, queue Queue, c Claim) ([]dueJob, error) {
	// The limit is part of the statement. The planner of PostgreSQL assumes a tenth of
	// the table when the limit is an argument, and could sort all of it.
	rows, err := r.q.QueryContext(ctx, `
		SELECT document_id, taxpayer_id, run_at FROM jobs
		WHERE environment = $1 AND queue = $2 AND run_at <= $3 AND (lease_until <= $3 OR lease_until > $4)
		ORDER BY run_at, document_id LIMIT `+strconv.Itoa(frontSize), env, queue, micros(c.Now), micros(c.Now.Add(longestLease)))
	if err != nil {
		return nil, err
	}
	front, err := collect(r.d, "find due jobs", rows, scanDueJob)
	if err != nil {
		return nil, err
	}
	whole := len(front) == frontSize
	front = slices.DeleteFunc(front, func(j dueJob) bool { return c.excludes(j.taxpayerID) })
	if len(front) > 0 || !whole {
		return front, nil
	}
	return r.dueOfOthers(ctx, env, queue, c)
}

// waitingTaxpayer is a taxpayer with a due job.
type waitingTaxpayer struct {
	id  string
	due int64 // when its oldest job became due
}

// dueOfOthers returns due jobs of the taxpayers that the claim does not skip. The
// taxpayers that have waited longest get equal shares of the limit. It reads one row
// for each taxpayer that has jobs.
func (r reader) dueOfOthers(ctx context.Context, env fiscal.Environment, queue Queue, c Claim) (due []dueJob, err error) {
	waiting, err := r.waitingTaxpayers(ctx, env, queue, c)
	if err != nil || len(waiting) == 0 {
		return nil, err
	}
	slices.SortFunc(waiting, func(a, b waitingTaxpayer) int {
		return cmp.Or(cmp.Compare(a.due, b.due), strings.Compare(a.id, b.id))
	})
	waiting = waiting[:min(len(waiting), max(c.Limit, 1))]
	share := (c.Limit + len(waiting) - 1) / len(waiting)
	for _, taxpayer := range waiting {
		// A row comparison instead of taxpayer_id = $3, so that only the index
		// jobs_of_taxpayer has the order.
		rows, err := r.q.QueryContext(ctx, `
			SELECT document_id, taxpayer_id, run_at FROM jobs
			WHERE environment = $1 AND queue = $2 AND taxpayer_id >= $3 AND (taxpayer_id, run_at) <= ($3, $4)
				AND (lease_until <= $4 OR lease_until > $5)
			ORDER BY taxpayer_id, run_at, document_id LIMIT $6`,
			env, queue, taxpayer.id, micros(c.Now), micros(c.Now.Add(longestLease)), share)
		if err != nil {
			return nil, err
		}
		some, err := collect(r.d, "find due jobs", rows, scanDueJob)
		if err != nil {
			return nil, err
		}
		due = append(due, some...)
	}
	return due, nil
}

// waitingTaxpayers lists the taxpayers that have a due job in a queue and that the
// claim does not skip. It steps from one taxpayer to the next in the index
// jobs_of_taxpayer. The ORDER BY names the last columns of that index, so that the
// planner uses no other one.
func (r reader) waitingTaxpayers(ctx context.Context, env fiscal.Environment, queue Queue, c Claim) ([]waitingTaxpayer, error) {
	rows, err := r.q.QueryContext(ctx, `
		WITH RECURSIVE waiting (id) AS (
			SELECT (SELECT taxpayer_id FROM jobs
				WHERE environment = $1 AND queue = $2
				ORDER BY taxpayer_id, run_at, document_id LIMIT 1)
			UNION ALL
			SELECT (SELECT taxpayer_id FROM jobs
				WHERE environment = $1 AND queue = $2 AND taxpayer_id > waiting.id
				ORDER BY taxpayer_id, run_at, document_id LIMIT 1)
			FROM waiting WHERE waiting.id IS NOT NULL)
		SELECT id, due FROM (
			SELECT id, (SELECT run_at FROM jobs
				WHERE environment = $1 AND queue = $2 AND taxpayer_id >= waiting.id AND (taxpayer_id, run_at) <= (waiting.id, $3)
					AND (lease_until <= $3 OR lease_until > $4)
				ORDER BY taxpayer_id, run_at, document_id LIMIT 1) AS due
			FROM waiting WHERE id IS NOT NULL AND id NOT IN ($5, $6, $7, $8)) AS heads
		WHERE due IS NOT NULL`,
		env, queue, micros(c.Now), micros(c.Now.Add(longestLease)), c.Except[0], c.Except[1], c.Except[2], c.Except[3])
	if err != nil {
		return nil, err
	}
	return collect(r.d, "find waiting taxpayers", rows, func(row row) (w waitingTaxpayer, err error) {
		err = row.Scan(&w.id, &w.due)
		return w, err
	})
}

// Claim leases jobs to a worker: at most c.Limit of the documents that DueJobs
// returned, the oldest first, without those that another worker has claimed since. No
// other worker gets them before the lease ends. Every write of the worker checks the
// lease.
func (tx *Tx) Claim(ctx context.Context, env fiscal.Environment, c Claim, documentIDs []string) ([]Job, error) {
	free, err := tx.lockFree(ctx, c, documentIDs)
	if err != nil || len(free) == 0 {
		return nil, tx.d.wrap("lock jobs", err)
	}
	ids, args := placeholders(free)
	n := len(args)
	rows, err := tx.q.QueryContext(ctx, `
		UPDATE jobs SET lease = $`+strconv.Itoa(n+1)+`, lease_until = $`+strconv.Itoa(n+2)+`, attempt = attempt + 1
		WHERE document_id IN (`+ids+`)
		RETURNING environment, document_id, taxpayer_id, plan, stage, attempt, run_at, last_error, created_at`,
		append(args, c.Lease, micros(c.Until))...)
	if err != nil {
		return nil, tx.d.wrap("claim jobs", err)
	}
	return collect(tx.d, "claim jobs", rows, func(row row) (Job, error) {
		j := Job{Lease: c.Lease, LeaseUntil: c.Until}
		var run, created int64
		err := row.Scan(&j.Environment, &j.DocumentID, &j.TaxpayerID, &j.Plan, &j.Stage, &j.Attempt, &run, &j.LastError, &created)
		j.RunAt, j.CreatedAt = fromMicros(run), fromMicros(created)
		if err == nil && j.Environment != env {
			err = errors.New("the job of document " + j.DocumentID + " belongs to the environment " + string(j.Environment))
		}
		return j, err
	})
}

// lockFree locks the oldest jobs of the given documents that are still due and that no
// worker holds, at most the limit of the claim. It skips jobs that another transaction
// has locked.
//
// The condition has only the ids: with the environment the planner could choose an
// index that reads the whole environment. For the same reason the statement that
// changes the jobs is another one: a planner that knows a table of few rows would join
// by reading all of it, and keep that plan when the table grows.
func (tx *Tx) lockFree(ctx context.Context, c Claim, documentIDs []string) ([]string, error) {
	if len(documentIDs) == 0 || c.Limit < 1 {
		return nil, nil
	}
	ids, args := placeholders(documentIDs)
	n := len(args)
	now, far, limit := "$"+strconv.Itoa(n+1), "$"+strconv.Itoa(n+2), "$"+strconv.Itoa(n+3)
	rows, err := tx.q.QueryContext(ctx, `
		SELECT document_id FROM jobs
		WHERE document_id IN (`+ids+`) AND run_at <= `+now+` AND (lease_until <= `+now+` OR lease_until > `+far+`)
		ORDER BY run_at, document_id LIMIT `+limit+` `+tx.d.skipLocked,
		append(args, micros(c.Now), micros(c.Now.Add(longestLease)), c.Limit)...)
	if err != nil {
		return nil, err
	}
	return collect(tx.d, "lock jobs", rows, func(row row) (id string, err error) {
		err = row.Scan(&id)
		return id, err
	})
}
