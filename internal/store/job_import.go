package store

import (
	"context"
	"time"
)

// importBatch is how many jobs one statement of ImportJobs adds, so that no statement
// takes long.
const importBatch = 50_000

// ImportJobs adds count suspended jobs without documents to a scope, created one
// microsecond after the other from the given moment. The ids of their documents continue
// with the number first. Only benchmarks use it, to fill a database quickly. It is here
// because no other package contains SQL.
func (s *Store) ImportJobs(ctx context.Context, scope Scope, stage string, first, count int64, created time.Time) error {
	for last := first + count; first < last; first += importBatch {
		err := s.Update(ctx, func(tx *Tx) error {
			return tx.exec(ctx, "import jobs", `
				WITH RECURSIVE n (i) AS (SELECT cast($1 AS bigint) UNION ALL SELECT i + 1 FROM n WHERE i < $2)
				INSERT INTO jobs (document_id, environment, taxpayer_id, plan, stage, attempt, run_at, lease, lease_until, last_error, created_at)
				SELECT '00000000-0000-7000-8000-' || substr(cast(1000000000000 + i AS text), 2), cast($3 AS text), cast($4 AS text), 'live', cast($5 AS text),
					0, cast($6 AS bigint) + $7 + i, '', 0, 'the authority does not answer', $7 + i FROM n`,
				first, min(first+importBatch, last)-1, scope.Environment, scope.TaxpayerID, stage, int64(suspendedFrom), micros(created))
		})
		if err != nil {
			return err
		}
	}
	return nil
}
