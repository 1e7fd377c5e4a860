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
		SELECT run_at FROM jobs WHERE environment = $1 AND lease_until <= $2 ORDER BY run_at LIMIT 1`,
		env, micros(now)).Scan(&at)
	return fromMicros(at), r.d.wrap("next job", err)
}

// Claim takes due jobs of an environment for a worker: nobody else gets them
// before the lease ends. The lease is the fence of what the worker commits.
func (tx *Tx) Claim(ctx context.Context, env fiscal.Environment, lease string, now, until time.Time, limit int) ([]Job, error) {
	rows, err := tx.q.QueryContext(ctx, `
		UPDATE jobs SET lease = $1, lease_until = $2, attempt = attempt + 1
		WHERE document_id IN (
			SELECT document_id FROM jobs
			WHERE environment = $3 AND run_at <= $4 AND lease_until <= $4
			ORDER BY run_at LIMIT $5 `+tx.d.skipLocked+`)
		RETURNING document_id, taxpayer_id, plan, stage, attempt, run_at, last_error, created_at`,
		lease, micros(until), env, micros(now), limit)
	if err != nil {
		return nil, tx.d.wrap("claim jobs", err)
	}
	return collect(tx.d, "claim jobs", rows, func(row row) (Job, error) {
		j := Job{Scope: Scope{Environment: env}, Lease: lease, LeaseUntil: until}
		var run, created int64
		err := row.Scan(&j.DocumentID, &j.TaxpayerID, &j.Plan, &j.Stage, &j.Attempt, &run, &j.LastError, &created)
		j.RunAt, j.CreatedAt = fromMicros(run), fromMicros(created)
		return j, err
	})
}

// MoveJob puts a job at its next stage and lets go of it.
func (tx *Tx) MoveJob(ctx context.Context, j Job, stage string, runAt time.Time) error {
	return tx.fenced(ctx, "move job", `
		UPDATE jobs SET stage = $3, attempt = 0, run_at = $4, lease = '', lease_until = 0, last_error = ''
		WHERE document_id = $1 AND lease = $2`, j.DocumentID, j.Lease, stage, micros(runAt))
}

// CarryJob puts a job at its next stage and keeps holding it.
func (tx *Tx) CarryJob(ctx context.Context, j Job, stage string, until time.Time) error {
	c := carryJob(j, stage, until)
	return tx.fenced(ctx, "carry job", c.text, c.args...)
}

func carryJob(j Job, stage string, until time.Time) statement {
	return statement{`
		UPDATE jobs SET stage = $3, attempt = 1, lease_until = $4, last_error = ''
		WHERE document_id = $1 AND lease = $2`, []any{j.DocumentID, j.Lease, stage, micros(until)}}
}

// HoldJob makes sure that a job is still held, and goes on holding it.
func (tx *Tx) HoldJob(ctx context.Context, j Job, until time.Time) error {
	return tx.fenced(ctx, "hold job", `
		UPDATE jobs SET lease_until = $3 WHERE document_id = $1 AND lease = $2`, j.DocumentID, j.Lease, micros(until))
}

// FinishJob ends a job: nothing remains to be done for its document.
func (tx *Tx) FinishJob(ctx context.Context, j Job) error {
	return tx.fenced(ctx, "finish job", `DELETE FROM jobs WHERE document_id = $1 AND lease = $2`, j.DocumentID, j.Lease)
}

// RetryJob lets go of a job that could not go on, to be tried again later.
func (tx *Tx) RetryJob(ctx context.Context, j Job, runAt time.Time, lastError string) error {
	return tx.fenced(ctx, "retry job", `
		UPDATE jobs SET run_at = $3, lease = '', lease_until = 0, last_error = $4
		WHERE document_id = $1 AND lease = $2`, j.DocumentID, j.Lease, micros(runAt), lastError)
}

// fenced runs a statement that holds only while the job's lease does.
func (tx *Tx) fenced(ctx context.Context, what, statement string, args ...any) error {
	done, err := tx.q.ExecContext(ctx, statement, args...)
	if err != nil {
		return tx.d.wrap(what, err)
	}
	n, err := done.RowsAffected()
	if err != nil {
		return tx.d.wrap(what, err)
	}
	if n == 0 {
		return ErrLeaseLost
	}
	return nil
}
