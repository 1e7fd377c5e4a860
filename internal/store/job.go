package store

import (
	"context"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/cause"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// Job is the remaining work for one document: its stage, and when a worker continues.
// While a worker processes the job, the worker holds a lease. When the worker dies, the
// lease expires and another worker can claim the job.
type Job struct {
	Scope
	DocumentID string
	Plan       string
	Stage      string
	Attempt    int64
	RunAt      time.Time // zero for a suspended job
	Suspended  bool      // waits until the tax authority answers
	Lease      string
	LeaseUntil time.Time
	Cause      cause.Cause // why the last try failed, or why it waits; stored as last_error
	CreatedAt  time.Time
}

// createJob stores the job of a new document.
func createJob(j Job) statement {
	return do(`
		INSERT INTO jobs (document_id, environment, taxpayer_id, plan, stage, attempt, run_at, lease, lease_until, last_error, created_at)
		VALUES ($1, $2, $3, $4, $5, 0, $6, '', 0, '', $7)`,
		j.DocumentID, string(j.Environment), j.TaxpayerID, j.Plan, j.Stage, micros(j.RunAt), micros(j.CreatedAt))
}

// whereJobHeld selects a job for as long as the worker holds its lease, and the job is at
// the stage that the worker knows. After a failover to an older copy of the database, the
// lease can be there although the last commits of the worker are lost.
const whereJobHeld = `WHERE environment = $1 AND taxpayer_id = $2 AND document_id = $3 AND lease = $4 AND stage = $5`

// heldArgs returns the arguments of whereJobHeld, followed by more.
func (j Job) heldArgs(more ...any) []any {
	return append([]any{string(j.Environment), j.TaxpayerID, j.DocumentID, j.Lease, j.Stage}, more...)
}

func carryJob(j Job, stage string, until time.Time) statement {
	return do(`
		UPDATE jobs SET stage = $6, attempt = 1, lease_until = $7, last_error = '' `+whereJobHeld, j.heldArgs(stage, micros(until))...)
}

// numberJob is carryJob for the stage that sends a document under its new number. The
// number is the document's turn: see ToSendBefore.
func numberJob(j Job, stage, encf string, until time.Time) statement {
	return do(`
		UPDATE jobs SET stage = $6, attempt = 1, lease_until = $7, last_error = '', turn = $8 `+whereJobHeld, j.heldArgs(stage, micros(until), encf)...)
}

// MoveJob moves a job to its next stage, due at runAt, and gives up the lease. The
// commit of this and of every other write of a job returns ErrLeaseLost when another
// worker has the job, or when the job is at another stage than j.
func (b *Batch) MoveJob(j Job, stage string, runAt time.Time) *Batch {
	return b.add(do(`
		UPDATE jobs SET stage = $6, attempt = 0, run_at = $7, lease = '', lease_until = 0, last_error = '' `+whereJobHeld,
		j.heldArgs(stage, micros(runAt))...), ErrLeaseLost)
}

// CarryJob moves a job to its next stage and extends the lease.
func (b *Batch) CarryJob(j Job, stage string, until time.Time) *Batch {
	return b.add(carryJob(j, stage, until), ErrLeaseLost)
}

// HoldJob extends the lease of a job.
func (b *Batch) HoldJob(j Job, until time.Time) *Batch {
	return b.add(do(`
		UPDATE jobs SET lease_until = $6 `+whereJobHeld, j.heldArgs(micros(until))...), ErrLeaseLost)
}

// FinishJob deletes a job: its document needs no more work.
func (b *Batch) FinishJob(j Job) *Batch {
	return b.add(do(`DELETE FROM jobs `+whereJobHeld, j.heldArgs()...), ErrLeaseLost)
}

// RetryJob gives up the lease of a job that failed. Its stage is due again at runAt, and
// has had j.Attempt attempts.
func (b *Batch) RetryJob(j Job, runAt time.Time, why cause.Cause) *Batch {
	return b.add(do(`
		UPDATE jobs SET run_at = $6, attempt = $7, lease = '', lease_until = 0, last_error = $8 `+whereJobHeld,
		j.heldArgs(micros(runAt), j.Attempt, string(why))...), ErrLeaseLost)
}

// WaitingDocument is a document that has a job, or has no final status.
type WaitingDocument struct {
	Scope
	InvoiceID  string
	DocumentID string
	ExternalID string
	Status     fiscal.Status
	CreatedAt  time.Time
	Job        *Job // nil: no worker will continue with the document
}

const (
	waitingColumns    = `i.environment, i.taxpayer_id, i.id, i.document_id, i.external_id, i.status, i.created_at`
	waitingJobColumns = `j.plan, j.stage, j.attempt, j.run_at, j.lease_until, j.last_error`
)

// WaitingDocuments lists the documents that have a job, the oldest first. In the live
// environments it also lists the documents without a job whose status is not final; in
// the sandbox a document may keep any status. An empty field of the scope means all.
// Only the operator uses it.
func (r reader) WaitingDocuments(ctx context.Context, within Scope) ([]WaitingDocument, error) {
	// Both halves use an index. The first reads all jobs, which are few; the second
	// starts from the taxpayers, which are few too.
	return collect(r.rows(ctx, "list waiting documents", `
		SELECT `+waitingColumns+` AS created_at, `+waitingJobColumns+`
		FROM jobs j JOIN documents i ON i.document_id = j.document_id
		WHERE (cast($1 AS text) = '' OR i.environment = $1) AND (cast($2 AS text) = '' OR i.taxpayer_id = $2)
		UNION ALL
		SELECT `+waitingColumns+`, NULL, NULL, NULL, NULL, NULL, NULL
		FROM taxpayers t JOIN documents i ON i.taxpayer_id = t.id
		WHERE i.environment IN ('certification', 'production') AND i.status IN ('queued', 'submitted', 'processing', 'outcome_unknown')
			AND (cast($1 AS text) = '' OR i.environment = $1) AND (cast($2 AS text) = '' OR t.id = $2)
			AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.document_id = i.document_id)
		ORDER BY created_at, 4`, within.Environment, within.TaxpayerID), func(w *WaitingDocument) []any {
		return append(w.columns(), w.jobColumns()...)
	})
}

func (w *WaitingDocument) columns() []any {
	return []any{&w.Environment, &w.TaxpayerID, &w.InvoiceID, &w.DocumentID, &w.ExternalID, &w.Status, instant(&w.CreatedAt)}
}

func (w *WaitingDocument) jobColumns() []any {
	j := new(Job)
	stage := into(func(stage string) { j.Scope, j.DocumentID, j.Stage, w.Job = w.Scope, w.DocumentID, stage, j })
	return []any{orZero(&j.Plan), stage, orZero(&j.Attempt), into(j.setRunAt), instant(&j.LeaseUntil), orZero(&j.Cause)}
}

// JobOf reads the job of a document. The error is ErrNotFound when it has none.
func (r reader) JobOf(ctx context.Context, scope Scope, documentID string) (Job, error) {
	return one(r.rows(ctx, "read job", `
		SELECT plan, stage, attempt, run_at, lease, lease_until, last_error, created_at FROM jobs
		WHERE environment = $1 AND taxpayer_id = $2 AND document_id = $3`,
		scope.Environment, scope.TaxpayerID, documentID), func(j *Job) []any {
		j.Scope, j.DocumentID = scope, documentID
		return []any{&j.Plan, &j.Stage, &j.Attempt, into(j.setRunAt), &j.Lease, instant(&j.LeaseUntil), &j.Cause, instant(&j.CreatedAt)}
	})
}

// TakeOverJob gives the job of a document the lease and the stage of j, even when a
// worker holds another lease, and creates the job when there is none. The next commit of the worker
// returns ErrLeaseLost. The row stays locked until the transaction ends.
func (tx *Tx) TakeOverJob(ctx context.Context, j Job) error {
	return tx.exec(ctx, "take over job", `
		INSERT INTO jobs (document_id, environment, taxpayer_id, plan, stage, attempt, run_at, lease, lease_until, last_error, created_at)
		VALUES ($1, $2, $3, $4, $5, 0, $6, $7, $8, '', $9)
		ON CONFLICT (document_id) DO UPDATE SET stage = excluded.stage, lease = excluded.lease, lease_until = excluded.lease_until`,
		j.DocumentID, j.Environment, j.TaxpayerID, j.Plan, j.Stage, micros(j.RunAt), j.Lease, micros(j.LeaseUntil), micros(j.CreatedAt))
}
