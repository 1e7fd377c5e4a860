package store

import (
	"context"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// A StatusPosition is the place at which a walk over the documents with a status
// continues. The zero value is the beginning.
type StatusPosition struct{ taxpayerID, invoiceID string }

// DocumentsWithStatus lists up to limit ids of documents of all taxpayers that have a
// status, after a position, and the position of the last one. It reads the index of
// these documents alone, so a backlog of documents with another status does not slow it
// down.
func (r reader) DocumentsWithStatus(ctx context.Context, env fiscal.Environment, status fiscal.Status, after StatusPosition, limit int) ([]string, StatusPosition, error) {
	columns := func(id *string) []any { return []any{&after.taxpayerID, &after.invoiceID, id} }
	// First the rest of the taxpayer at which the walk stopped, then the other taxpayers. The
	// comparison of rows makes both engines use the index by status.
	ids, err := collect(r.rows(ctx, "list documents with a status", `
		SELECT taxpayer_id, id, document_id FROM documents
		WHERE environment = $1 AND taxpayer_id = $2 AND (status, id) > ($3, $4) AND status <= $3 ORDER BY status, id LIMIT $5`,
		env, after.taxpayerID, status, after.invoiceID, limit), columns)
	if err != nil || len(ids) == limit {
		return ids, after, err
	}
	// SQLite keeps the order of the tables in a CROSS JOIN: it searches the index once for
	// each taxpayer.
	more, err := collect(r.rows(ctx, "list documents with a status", `
		SELECT i.taxpayer_id, i.id, i.document_id FROM taxpayers t CROSS JOIN documents i
		WHERE t.id > $2 AND i.environment = $1 AND i.taxpayer_id = t.id AND (i.status, i.id) > ($3, '') AND i.status <= $3
		ORDER BY t.id, i.status, i.id LIMIT $4`,
		env, after.taxpayerID, status, limit-len(ids)), columns)
	return append(ids, more...), after, err
}
