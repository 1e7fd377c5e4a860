package store

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// dueJob is a job that a claim can take.
type dueJob struct {
	documentID, taxpayerID string
	runAt                  int64
}

func (j *dueJob) columns() []any {
	return []any{&j.documentID, &j.taxpayerID, &j.runAt}
}

func compareDueJobs(a, b dueJob) int {
	return cmp.Or(cmp.Compare(a.runAt, b.runAt), strings.Compare(a.documentID, b.documentID))
}

// A span is a range of run_at, for example of the due jobs.
type span struct{ first, last int64 }

func (c Claim) dueSpan() span { return span{0, micros(c.Now)} }

func suspendedSpan() span { return span{suspendedFrom, math.MaxInt64} }

// farSpan is the span of the jobs that a clock stored which was ahead. They are due.
func (c Claim) farSpan(q Queue) span {
	return span{farAhead(c.Now, LongestPause(q)) + 1, suspendedFrom - 1}
}

// NextJob returns when the next job without a lease becomes due, in the given queues
// of an environment, or in all queues when none is given. Suspended jobs do not count.
// The error is ErrNotFound when there is none.
func (r reader) NextJob(ctx context.Context, env fiscal.Environment, now time.Time, queues ...Queue) (time.Time, error) {
	if len(queues) == 0 {
		queues = Queues()
	}
	return r.nextJob(ctx, env, Claim{Now: now}, queues)
}

// NextJobAfter is NextJob for the queues of a claim that has found no job.
func (r reader) NextJobAfter(ctx context.Context, env fiscal.Environment, c Claim) (time.Time, error) {
	return r.nextJob(ctx, env, c, c.queues())
}

func (r reader) nextJob(ctx context.Context, env fiscal.Environment, c Claim, queues []Queue) (time.Time, error) {
	var next time.Time
	for _, queue := range queues {
		head, _ := c.Front.head(frontKey{env, queue, c.dueSpan().first}, c.Now)
		at, err := one(r.rows(ctx, "read the next job", `
			SELECT run_at FROM jobs
			WHERE environment = $1 AND queue = $2 AND (run_at, document_id) >= ($3, $4) AND run_at < $5
				AND (lease_until <= $6 OR lease_until > $7)
			ORDER BY run_at, document_id LIMIT 1`, env, queue, head.runAt, head.documentID, int64(suspendedFrom),
			micros(c.Now), micros(c.Now.Add(longestLease))), func(at *time.Time) []any { return []any{instant(at)} })
		if ifFound(err) != nil {
			return time.Time{}, err
		}
		if err == nil && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	if c.Front == nil && (next.IsZero() || micros(next) > micros(c.Now)) {
		// With a Front, the claims themselves look for them once a second.
		if far, err := r.farJobs(ctx, env, c, queues); err != nil || len(far) > 0 {
			return c.Now, err
		}
	}
	if next.IsZero() {
		return next, ErrNotFound
	}
	return next, nil
}

// DueJobs returns the documents whose jobs a claim can take, the oldest first. Due
// jobs and suspended jobs take turns, so that a long backlog of suspended jobs does
// not delay new documents. So do the jobs that a clock stored which was ahead. It returns
// more documents than the limit of the claim, so that nodes that claim at the same moment
// do not compete for the same jobs. What it reads does not grow with the number of waiting
// jobs.
func (r reader) DueJobs(ctx context.Context, env fiscal.Environment, c Claim) (documentIDs []string, err error) {
	far, err := r.farJobs(ctx, env, c, c.queuesFromStart(env))
	if err != nil {
		return nil, err
	}
	due, err := r.dueInSpan(ctx, env, c.dueSpan(), c)
	if err != nil {
		return nil, err
	}
	var suspended []dueJob
	if c.Suspended > 0 {
		if suspended, err = r.dueInSpan(ctx, env, suspendedSpan(), c); err != nil {
			return nil, err
		}
		suspended = suspended[:min(len(suspended), c.Suspended)]
	}
	for i := range max(len(due), len(suspended), len(far)) {
		for _, some := range [][]dueJob{suspended, due, far} {
			if i < len(some) {
				documentIDs = append(documentIDs, some[i].documentID)
			}
		}
	}
	return documentIDs[:min(len(documentIDs), frontSize, 4*c.Limit)], nil
}

// dueInSpan returns the jobs of a span in all queues of the claim, the oldest first.
func (r reader) dueInSpan(ctx context.Context, env fiscal.Environment, s span, c Claim) ([]dueJob, error) {
	return r.dueInQueues(ctx, env, c, c.queues(), func(Queue) span { return s })
}

// farJobs returns the jobs of queues that a clock stored which was ahead. There are hardly
// ever any, so it remembers no front.
func (r reader) farJobs(ctx context.Context, env fiscal.Environment, c Claim, queues []Queue) ([]dueJob, error) {
	c.Front = nil
	return r.dueInQueues(ctx, env, c, queues, c.farSpan)
}

// dueInQueues returns the jobs of a span of each queue, the oldest first.
func (r reader) dueInQueues(ctx context.Context, env fiscal.Environment, c Claim, queues []Queue, in func(Queue) span) (due []dueJob, err error) {
	for _, queue := range queues {
		some, err := r.dueIn(ctx, env, queue, in(queue), c)
		if err != nil {
			return nil, err
		}
		due = append(due, some...)
	}
	slices.SortFunc(due, compareDueJobs)
	return due, nil
}

// queuesFromStart returns the queues of the claim of which it reads the due jobs from the
// beginning, which it does once a second.
func (c Claim) queuesFromStart(env fiscal.Environment) (queues []Queue) {
	for _, queue := range c.queues() {
		if _, fromStart := c.Front.head(frontKey{env, queue, c.dueSpan().first}, c.Now); fromStart {
			queues = append(queues, queue)
		}
	}
	return queues
}

// frontSize is how many jobs at the front of a span a claim looks at.
const frontSize = 64

// dueIn returns the jobs at the front of a span of a queue, without those of the
// taxpayers that the claim skips. When the whole front belongs to them, it looks for
// the jobs of every other taxpayer.
func (r reader) dueIn(ctx context.Context, env fiscal.Environment, queue Queue, s span, c Claim) ([]dueJob, error) {
	key := frontKey{env, queue, s.first}
	head, fromStart := c.Front.head(key, c.Now)
	front, err := r.readFront(ctx, env, queue, head, s, c)
	if err != nil {
		return nil, err
	}
	c.Front.move(key, front, fromStart, c.Now)
	whole := len(front) == frontSize
	front = slices.DeleteFunc(front, func(j dueJob) bool { return c.excludes(j.taxpayerID) })
	if len(front) > 0 || !whole {
		return front, nil
	}
	return r.dueOfOthers(ctx, env, queue, s, c)
}

// readFront reads the first jobs of a span that are not before head and that no
// worker holds.
func (r reader) readFront(ctx context.Context, env fiscal.Environment, queue Queue, head dueJob, s span, c Claim) ([]dueJob, error) {
	// The limit is part of the statement. The planner of PostgreSQL assumes a tenth of
	// the table when the limit is an argument, and could sort all of it.
	return collect(r.rows(ctx, "find due jobs", `
		SELECT document_id, taxpayer_id, run_at FROM jobs
		WHERE environment = $1 AND queue = $2 AND (run_at, document_id) >= ($3, $4) AND run_at <= $5
			AND (lease_until <= $6 OR lease_until > $7)
		ORDER BY run_at, document_id LIMIT `+strconv.Itoa(frontSize),
		env, queue, max(head.runAt, s.first), head.documentID, s.last, micros(c.Now), micros(c.Now.Add(longestLease))), (*dueJob).columns)
}

// waitingTaxpayer is a taxpayer with a job in a span.
type waitingTaxpayer struct {
	id  string
	due int64 // the run_at of its first job
}

// dueOfOthers returns jobs of the taxpayers that the claim does not skip. The
// taxpayers that have waited longest get equal shares of the limit. It reads one row
// for each taxpayer that has jobs.
func (r reader) dueOfOthers(ctx context.Context, env fiscal.Environment, queue Queue, s span, c Claim) (due []dueJob, err error) {
	waiting, err := r.waitingTaxpayers(ctx, env, queue, s, c)
	if err != nil || len(waiting) == 0 {
		return nil, err
	}
	slices.SortFunc(waiting, func(a, b waitingTaxpayer) int {
		return cmp.Or(cmp.Compare(a.due, b.due), strings.Compare(a.id, b.id))
	})
	waiting = waiting[:min(len(waiting), max(c.Limit, 1))]
	share := (c.Limit + len(waiting) - 1) / len(waiting)
	for _, taxpayer := range waiting {
		// Row comparisons instead of taxpayer_id = $3, so that only the index
		// jobs_of_taxpayer has the order.
		some, err := collect(r.rows(ctx, "find due jobs", `
			SELECT document_id, taxpayer_id, run_at FROM jobs
			WHERE environment = $1 AND queue = $2 AND (taxpayer_id, run_at) >= ($3, $4) AND (taxpayer_id, run_at) <= ($3, $5)
				AND (lease_until <= $6 OR lease_until > $7)
			ORDER BY taxpayer_id, run_at, document_id LIMIT $8`,
			env, queue, taxpayer.id, s.first, s.last, micros(c.Now), micros(c.Now.Add(longestLease)), share), (*dueJob).columns)
		if err != nil {
			return nil, err
		}
		due = append(due, some...)
	}
	return due, nil
}

// waitingTaxpayers lists the taxpayers that have a job in a span of a queue and that
// the claim does not skip. It steps from one taxpayer to the next in the index
// jobs_of_taxpayer. The ORDER BY names the last columns of that index, so that the
// planner uses no other one.
func (r reader) waitingTaxpayers(ctx context.Context, env fiscal.Environment, queue Queue, s span, c Claim) ([]waitingTaxpayer, error) {
	return collect(r.rows(ctx, "find due jobs", `
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
				WHERE environment = $1 AND queue = $2 AND (taxpayer_id, run_at) >= (waiting.id, $3) AND (taxpayer_id, run_at) <= (waiting.id, $4)
					AND (lease_until <= $5 OR lease_until > $6)
				ORDER BY taxpayer_id, run_at, document_id LIMIT 1) AS due
			FROM waiting WHERE id IS NOT NULL AND id NOT IN ($7, $8, $9, $10)) AS heads
		WHERE due IS NOT NULL`,
		env, queue, s.first, s.last, micros(c.Now), micros(c.Now.Add(longestLease)), c.Except[0], c.Except[1], c.Except[2], c.Except[3]), func(w *waitingTaxpayer) []any { return []any{&w.id, &w.due} })
}
