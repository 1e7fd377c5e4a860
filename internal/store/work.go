package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

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

// AnyDocument reads a document of whichever scope by its own id or by that of
// its invoice. It is for the operator.
func (r reader) AnyDocument(ctx context.Context, id string) (Invoice, error) {
	var scope Scope
	var documentID string
	err := r.q.QueryRowContext(ctx, `
		SELECT environment, taxpayer_id, document_id FROM invoices
		WHERE environment <> '' AND taxpayer_id <> '' AND document_id = $1
		UNION ALL
		SELECT i.environment, i.taxpayer_id, i.document_id FROM taxpayers t JOIN invoices i ON i.taxpayer_id = t.id
		WHERE i.environment IN ('sandbox', 'certification', 'production') AND i.id = $1
		LIMIT 1`, id).Scan(&scope.Environment, &scope.TaxpayerID, &documentID)
	if err != nil {
		return Invoice{}, r.d.wrap("find document", err)
	}
	return r.InvoiceOfDocument(ctx, scope, documentID)
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
