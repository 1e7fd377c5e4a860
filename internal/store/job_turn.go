package store

import (
	"context"
	"strconv"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/cause"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// ToSend is a document with a number that waits to be sent. The column jobs.turn has its
// number, as long as the document takes part in the order of its range.
type ToSend struct {
	DocumentID string
	ENCF       string
	Lease      string
	LeaseUntil time.Time
	RunAt      time.Time // zero for a suspended job
	Suspended  bool
	Summarized bool // the authority gets its summary
}

// Leased reports whether a worker has the document.
func (t ToSend) Leased(now time.Time) bool {
	return t.Lease != "" && t.LeaseUntil.After(now) && !t.LeaseUntil.After(now.Add(longestLease))
}

// Wait returns how long it is until the document is due. One that lies further ahead than
// any pause is due: a clock stored it which was ahead.
func (t ToSend) Wait(now time.Time) time.Duration {
	if micros(t.RunAt) > farAhead(now, LongestPause(QueueMain)) {
		return 0
	}
	return t.RunAt.Sub(now)
}

// ToSendBefore lists the documents of a taxpayer with the lowest numbers of a type below
// the given one that wait to be sent: nothing of them is under way. Documents that were set
// aside are left out.
func (r reader) ToSendBefore(ctx context.Context, scope Scope, encf fiscal.ENCF, limit int) ([]ToSend, error) {
	first, err := fiscal.NewENCF(encf.Type(), 1)
	if err != nil {
		return nil, err
	}
	// The limit is part of the statement, as in readFront.
	return collect(r.rows(ctx, "find documents to send", `
		SELECT document_id, turn, lease, lease_until, run_at,
			EXISTS (SELECT 1 FROM issued_documents i WHERE i.document_id = j.document_id AND i.summary IS NOT NULL) FROM jobs j
		WHERE environment = $1 AND taxpayer_id = $2 AND stage = 'submit' AND turn >= $3 AND turn < $4
			AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.document_id = j.document_id AND a.closed_at IS NULL)
		ORDER BY turn LIMIT `+strconv.Itoa(limit), scope.Environment, scope.TaxpayerID, first.String(), encf.String()), func(w *ToSend) []any {
		run := into(func(at int64) {
			var j Job
			j.setRunAt(at)
			w.RunAt, w.Suspended = j.RunAt, j.Suspended
		})
		return []any{&w.DocumentID, &w.ENCF, &w.Lease, instant(&w.LeaseUntil), run, &w.Summarized}
	})
}

// LetGoFirst moves suspended jobs to the front of all suspended jobs, in the given order.
func (s *Store) LetGoFirst(ctx context.Context, scope Scope, documentIDs []string, now time.Time) error {
	rows := new(Batch)
	for i, id := range documentIDs {
		rows.add(do(`
			UPDATE jobs SET run_at = $4
			WHERE environment = $1 AND taxpayer_id = $2 AND document_id = $3 AND stage = 'submit' AND run_at >= $5
				AND (lease_until <= $6 OR lease_until > $7)`,
			string(scope.Environment), scope.TaxpayerID, id, int64(suspendedFrom)+int64(i), int64(suspendedFrom), micros(now), micros(now.Add(longestLease))), nil)
	}
	return s.Commit(ctx, rows)
}

// QueueJob gives up the lease of a job that waits until documents with lower numbers were
// sent. It waits among the suspended jobs, where those are.
func (b *Batch) QueueJob(j Job, why cause.Cause) *Batch {
	return b.add(do(`
		UPDATE jobs SET run_at = created_at + $6, attempt = $7, lease = '', lease_until = 0, last_error = $8 `+whereJobHeld,
		j.heldArgs(int64(suspendedFrom), j.Attempt, string(why))...), ErrLeaseLost)
}

// SetAsideJob is RetryJob for a document that has a reason of its own to wait: documents
// with higher numbers do not wait for it.
func (b *Batch) SetAsideJob(j Job, runAt time.Time, why cause.Cause) *Batch {
	return b.add(do(`
		UPDATE jobs SET run_at = $6, attempt = $7, lease = '', lease_until = 0, last_error = $8, turn = NULL `+whereJobHeld,
		j.heldArgs(micros(runAt), j.Attempt, string(why))...), ErrLeaseLost)
}
