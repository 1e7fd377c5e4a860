package store

import (
	"context"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// DocumentsWithJob lists up to limit ids of documents that still have a job, in the
// order of ids, after afterID. A caller that walks over all of them reads a bounded
// number of rows at a time.
func (r reader) DocumentsWithJob(ctx context.Context, env fiscal.Environment, afterID string, limit int) ([]string, error) {
	rows, err := r.q.QueryContext(ctx, `
		SELECT document_id FROM jobs WHERE document_id > $2 AND environment = $1 ORDER BY document_id LIMIT $3`, env, afterID, limit)
	if err != nil {
		return nil, r.d.wrap("list documents with a job", err)
	}
	return collect(r.d, "list documents with a job", rows, func(row row) (id string, err error) {
		err = row.Scan(&id)
		return id, err
	})
}
