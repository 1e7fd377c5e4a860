package store

import (
	"context"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// Job is what remains to be done for one document: the stage it is at and when
// to go on. A job under way is held by a lease; a worker that dies lets it run
// out, and the job comes due by itself.
type Job struct {
	Scope
	DocumentID string
	Plan       string
	Stage      string
	Attempt    int64
	RunAt      time.Time
	Lease      string
	LeaseUntil time.Time
	LastError  string
	CreatedAt  time.Time
}

// createJob stores the first stage of a document.
func createJob(j Job) statement {
	return statement{`
		INSERT INTO jobs (document_id, environment, taxpayer_id, plan, stage, attempt, run_at, lease, lease_until, last_error, created_at)
		VALUES ($1, $2, $3, $4, $5, 0, $6, '', 0, '', $7)`, []any{
		j.DocumentID, string(j.Environment), j.TaxpayerID, j.Plan, j.Stage, micros(j.RunAt), micros(j.CreatedAt),
	}}
}

// NextJob tells when the next job of an environment comes due that nobody is
// working on. ErrNotFound: none waits.
func (r reader) NextJob(ctx context.Context, env fiscal.Environment, now time.Time) (time.Time, error) {
	var at int64
	err := r.q.QueryRowContext(ctx, `
		SELECT run_at FROM jobs WHERE environment = $1 AND (lease_until <= $2 OR lease_until > $3) ORDER BY run_at LIMIT 1`,
		env, micros(now), micros(now.Add(longestLease))).Scan(&at)
	return fromMicros(at), r.d.wrap("next job", err)
}

// longestLease is longer than any job is held without a sign of life. A lease
// that seems to last longer is of a time when the clock was ahead, and has ended.
const longestLease = 10 * time.Minute

// A Claim says which due jobs are wanted.
type Claim struct {
	Lease      string
	Now, Until time.Time
	Limit      int
	Except     [4]string // taxpayers whose jobs are not
}

// Claim takes due jobs of an environment for a worker: nobody else gets them
// before the lease ends. The lease is the fence of what the worker commits.
func (tx *Tx) Claim(ctx context.Context, env fiscal.Environment, c Claim) ([]Job, error) {
	rows, err := tx.q.QueryContext(ctx, `
		WITH due AS MATERIALIZED ( -- once: a planner may ask a sub-select for every row, and claim more
			SELECT document_id FROM jobs
			WHERE environment = $3 AND run_at <= $4 AND (lease_until <= $4 OR lease_until > $10) AND taxpayer_id NOT IN ($6, $7, $8, $9)
			ORDER BY run_at, document_id LIMIT $5 `+tx.d.skipLocked+`)
		UPDATE jobs SET lease = $1, lease_until = $2, attempt = attempt + 1
		WHERE document_id IN (SELECT document_id FROM due)
		RETURNING document_id, taxpayer_id, plan, stage, attempt, run_at, last_error, created_at`,
		c.Lease, micros(c.Until), env, micros(c.Now), c.Limit, c.Except[0], c.Except[1], c.Except[2], c.Except[3], micros(c.Now.Add(longestLease)))
	if err != nil {
		return nil, tx.d.wrap("claim jobs", err)
	}
	lease, until := c.Lease, c.Until
	return collect(tx.d, "claim jobs", rows, func(row row) (Job, error) {
		j := Job{Scope: Scope{Environment: env}, Lease: lease, LeaseUntil: until}
		var run, created int64
		err := row.Scan(&j.DocumentID, &j.TaxpayerID, &j.Plan, &j.Stage, &j.Attempt, &run, &j.LastError, &created)
		j.RunAt, j.CreatedAt = fromMicros(run), fromMicros(created)
		return j, err
	})
}

func carryJob(j Job, stage string, until time.Time) statement {
	return statement{`
		UPDATE jobs SET stage = $3, attempt = 1, lease_until = $4, last_error = ''
		WHERE document_id = $1 AND lease = $2`, []any{j.DocumentID, j.Lease, stage, micros(until)}}
}
