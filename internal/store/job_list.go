package store

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// WorkFilter selects documents of the work list. Empty fields do not filter.
type WorkFilter struct {
	Stage         string
	TaxpayerID    string
	CreatedBefore time.Time
	Contingency   *Contingency // only documents that have a deadline because of it
	After         string       // only documents younger than the one with this id
	Limit         int
}

// WorkItem is a document that a worker will continue with.
type WorkItem struct {
	WaitingDocument
	ENCF string
	Type fiscal.Type
}

// WorkList lists the documents that have a job, the oldest first. It looks at a bounded
// number of jobs: next is where the list continues, or empty at its end.
func (r reader) WorkList(ctx context.Context, within Within, f WorkFilter) (found []WorkItem, next string, err error) {
	return filterList(f.Limit, f.After,
		func(after string, limit int) ([]WorkItem, error) { return r.workAfter(ctx, after, limit) },
		func(w WorkItem) string { return w.DocumentID },
		func(w WorkItem) bool {
			return w.Environment == within.Environment && within.Allows(w.TaxpayerID) && f.Selects(w.WaitingDocument) &&
				(f.Stage == "" || w.Job.Stage == f.Stage) &&
				(f.TaxpayerID == "" || w.TaxpayerID == f.TaxpayerID)
		})
}

// Selects reports whether the filter lets a document through by its age and its deadline.
func (f WorkFilter) Selects(w WaitingDocument) bool {
	return (f.CreatedBefore.IsZero() || w.CreatedAt.Before(f.CreatedBefore)) &&
		(f.Contingency == nil || !f.Contingency.Deadline(w.Status, w.CreatedAt).IsZero())
}

func (r reader) workAfter(ctx context.Context, after string, limit int) ([]WorkItem, error) {
	return collect(r.rows(ctx, "list work", `
		SELECT `+waitingColumns+`, coalesce(i.encf, ''), i.ecf_type, `+waitingJobColumns+`
		FROM (SELECT * FROM jobs WHERE document_id > $1 ORDER BY document_id LIMIT `+strconv.Itoa(limit)+`) AS j
		JOIN documents i ON i.document_id = j.document_id
		ORDER BY i.document_id`, after), func(w *WorkItem) []any {
		return slices.Concat(w.columns(), []any{&w.ENCF, &w.Type}, w.jobColumns())
	})
}
