package store

import "context"

// deletedChunks is how many chunks one transaction deletes.
const deletedChunks = 16

// SaveExportChunk stores a part of the file of an export. Chunks are numbered from 0, and
// a chunk that is there is replaced.
func (tx *Tx) SaveExportChunk(ctx context.Context, e Export, n int64, bytes []byte) error {
	return tx.exec(ctx, "save export chunk", `
		INSERT INTO export_chunks (environment, taxpayer_id, export_id, n, bytes) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (environment, taxpayer_id, export_id, n) DO UPDATE SET bytes = excluded.bytes`,
		e.Environment, e.TaxpayerID, e.ID, n, bytes)
}

// ExportChunk reads a part of the file of an export. The error is ErrNotFound when there
// is none.
func (r reader) ExportChunk(ctx context.Context, e Export, n int64) ([]byte, error) {
	return one(r.rows(ctx, "read export chunk", `
		SELECT bytes FROM export_chunks WHERE environment = $1 AND taxpayer_id = $2 AND export_id = $3 AND n = $4`,
		e.Environment, e.TaxpayerID, e.ID, n), only[[]byte])
}

// DeletedExports lists exports of all environments that were deleted and still have chunks.
func (r reader) DeletedExports(ctx context.Context) ([]Export, error) {
	return collect(r.rows(ctx, "list deleted exports", `
		SELECT c.environment, c.taxpayer_id, c.export_id FROM export_chunks c
		WHERE c.n = 0 AND NOT EXISTS (
			SELECT 1 FROM exports e WHERE e.environment = c.environment AND e.taxpayer_id = c.taxpayer_id AND e.id = c.export_id)
		LIMIT 100`), func(e *Export) []any { return []any{&e.Environment, &e.TaxpayerID, &e.ID} })
}

// DeleteExportChunks deletes the chunks of an export, a few in each transaction. The first
// chunk is the last one, so that DeletedExports finds what an interruption has left.
func (s *Store) DeleteExportChunks(ctx context.Context, e Export) error {
	for {
		deleted, err := s.run(ctx, "delete export chunks", do(`
			DELETE FROM export_chunks WHERE environment = $1 AND taxpayer_id = $2 AND export_id = $3 AND n IN (
				SELECT n FROM export_chunks WHERE environment = $1 AND taxpayer_id = $2 AND export_id = $3 ORDER BY n DESC LIMIT $4)`,
			string(e.Environment), e.TaxpayerID, e.ID, deletedChunks))
		if err != nil || deleted == 0 {
			return err
		}
	}
}
