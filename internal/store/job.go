package store

import (
	"context"
	"database/sql"
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

// MoveJob puts a job at its next stage and lets go of it. This and every other
// write of a job ends in ErrLeaseLost when another worker has it.
func (b *Batch) MoveJob(j Job, stage string, runAt time.Time) *Batch {
	return b.add(statement{`
		UPDATE jobs SET stage = $3, attempt = 0, run_at = $4, lease = '', lease_until = 0, last_error = ''
		WHERE document_id = $1 AND lease = $2`, []any{j.DocumentID, j.Lease, stage, micros(runAt)}}, ErrLeaseLost)
}

// CarryJob puts a job at its next stage and keeps holding it.
func (b *Batch) CarryJob(j Job, stage string, until time.Time) *Batch {
	return b.add(carryJob(j, stage, until), ErrLeaseLost)
}

// HoldJob makes sure that a job is still held, and goes on holding it.
func (b *Batch) HoldJob(j Job, until time.Time) *Batch {
	return b.add(statement{`
		UPDATE jobs SET lease_until = $3 WHERE document_id = $1 AND lease = $2`,
		[]any{j.DocumentID, j.Lease, micros(until)}}, ErrLeaseLost)
}

// FinishJob ends a job: nothing remains to be done for its document.
func (b *Batch) FinishJob(j Job) *Batch {
	return b.add(statement{`DELETE FROM jobs WHERE document_id = $1 AND lease = $2`, []any{j.DocumentID, j.Lease}}, ErrLeaseLost)
}

// RetryJob lets go of a job that could not go on, to be tried again later.
func (b *Batch) RetryJob(j Job, runAt time.Time, lastError string) *Batch {
	return b.add(statement{`
		UPDATE jobs SET run_at = $3, lease = '', lease_until = 0, last_error = $4
		WHERE document_id = $1 AND lease = $2`, []any{j.DocumentID, j.Lease, micros(runAt), lastError}}, ErrLeaseLost)
}

// WaitingDocument is a document that something is still to be done for, or known of.
type WaitingDocument struct {
	Scope
	InvoiceID  string
	DocumentID string
	ExternalID string
	Status     fiscal.Status
	CreatedAt  time.Time
	Job        *Job // nil: no worker will go on with it by itself
}

const waitingColumns = `i.environment, i.taxpayer_id, i.id, i.document_id, i.external_id, i.status, i.created_at`

// WaitingDocuments lists the documents that have a job, and of the live environments also
// those that have none but are not final, the oldest first. In the sandbox a
// document may rest at any status for good. An empty part of the scope stands for
// all. It is for the operator.
func (r reader) WaitingDocuments(ctx context.Context, within Scope) ([]WaitingDocument, error) {
	// Each half goes by an index: the jobs are few, and so are the taxpayers.
	rows, err := r.q.QueryContext(ctx, `
		SELECT `+waitingColumns+` AS created_at, j.plan, j.stage, j.attempt, j.run_at, j.lease_until, j.last_error
		FROM jobs j JOIN invoices i ON i.document_id = j.document_id
		WHERE (cast($1 AS text) = '' OR i.environment = $1) AND (cast($2 AS text) = '' OR i.taxpayer_id = $2)
		UNION ALL
		SELECT `+waitingColumns+`, NULL, NULL, NULL, NULL, NULL, NULL
		FROM taxpayers t JOIN invoices i ON i.taxpayer_id = t.id
		WHERE i.environment IN ('certification', 'production') AND i.status IN ('queued', 'submitted', 'processing', 'outcome_unknown')
			AND (cast($1 AS text) = '' OR i.environment = $1) AND (cast($2 AS text) = '' OR t.id = $2)
			AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.document_id = i.document_id)
		ORDER BY created_at, 4`, within.Environment, within.TaxpayerID)
	if err != nil {
		return nil, r.d.wrap("list waiting documents", err)
	}
	return collect(r.d, "list waiting documents", rows, func(row row) (WaitingDocument, error) {
		var w WaitingDocument
		var created int64
		var plan, stage, lastError sql.NullString
		var attempt, run, lease sql.NullInt64
		err := row.Scan(&w.Environment, &w.TaxpayerID, &w.InvoiceID, &w.DocumentID, &w.ExternalID, &w.Status, &created,
			&plan, &stage, &attempt, &run, &lease, &lastError)
		w.CreatedAt = fromMicros(created)
		if stage.Valid {
			w.Job = &Job{
				Scope: w.Scope, DocumentID: w.DocumentID, Plan: plan.String, Stage: stage.String, Attempt: attempt.Int64,
				RunAt: fromMicros(run.Int64), LeaseUntil: fromMicros(lease.Int64), LastError: lastError.String,
			}
		}
		return w, err
	})
}

// JobOf reads the job of a document.
func (r reader) JobOf(ctx context.Context, scope Scope, documentID string) (Job, error) {
	j := Job{Scope: scope, DocumentID: documentID}
	var run, lease, created int64
	err := r.q.QueryRowContext(ctx, `
		SELECT plan, stage, attempt, run_at, lease, lease_until, last_error, created_at FROM jobs
		WHERE environment = $1 AND taxpayer_id = $2 AND document_id = $3`,
		scope.Environment, scope.TaxpayerID, documentID).Scan(
		&j.Plan, &j.Stage, &j.Attempt, &run, &j.Lease, &lease, &j.LastError, &created)
	j.RunAt, j.LeaseUntil, j.CreatedAt = fromMicros(run), fromMicros(lease), fromMicros(created)
	return j, r.d.wrap("read job", err)
}

// TakeOverJob takes the job of a document under its lease, whoever holds it, and
// makes one where there is none. What its holder commits from then on is refused
// with ErrLeaseLost. The row stays locked until the transaction ends.
func (tx *Tx) TakeOverJob(ctx context.Context, j Job) error {
	_, err := tx.q.ExecContext(ctx, `
		INSERT INTO jobs (document_id, environment, taxpayer_id, plan, stage, attempt, run_at, lease, lease_until, last_error, created_at)
		VALUES ($1, $2, $3, $4, $5, 0, $6, $7, $8, '', $9)
		ON CONFLICT (document_id) DO UPDATE SET lease = excluded.lease, lease_until = excluded.lease_until`,
		j.DocumentID, j.Environment, j.TaxpayerID, j.Plan, j.Stage, micros(j.RunAt), j.Lease, micros(j.LeaseUntil), micros(j.CreatedAt))
	return tx.d.wrap("take job over", err)
}
