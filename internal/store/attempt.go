package store

import (
	"context"
	"strconv"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/cause"
)

// Class is the result of a request to the tax authority or to a buyer, seen from
// the network: whether the other side received it and answered.
type Class string

// The classes of an attempt. An open attempt has none.
const (
	NotReceived  Class = "not_received" // the other side certainly did not receive it
	Conclusive   Class = "conclusive"   // the other side answered
	Inconclusive Class = "inconclusive" // the other side may have received it
)

// Attempt is one sending of a document. It is recorded before the first byte is
// sent.
type Attempt struct {
	Scope
	DocumentID string
	Number     int64
	Kind       string // submit or deliver
	Digest     []byte // SHA-256 of the bytes that were sent
	OpenedAt   time.Time
	ClosedAt   time.Time // zero: open
	Class      Class
	Cause      cause.Cause // why it had no answer; stored as detail
	Replaced   bool        // it sent the document under a number that was replaced since
}

// ofReplacedNumber selects the attempts a that sent a document under a number that was
// replaced since.
const ofReplacedNumber = `EXISTS (SELECT 1 FROM issued_documents r WHERE r.former_document_id = a.document_id AND r.sent_sha256 = a.sha256)`

// Attempts lists the attempts to send a document, the first one first.
func (r reader) Attempts(ctx context.Context, scope Scope, documentID string) ([]Attempt, error) {
	return collect(r.rows(ctx, "read attempts", `
		SELECT number, kind, sha256, opened_at, closed_at, class, detail,
			`+ofReplacedNumber+`
		FROM attempts a
		WHERE environment = $1 AND taxpayer_id = $2 AND document_id = $3 ORDER BY number`,
		scope.Environment, scope.TaxpayerID, documentID), func(a *Attempt) []any {
		a.Scope, a.DocumentID = scope, documentID
		return []any{&a.Number, &a.Kind, &a.Digest, instant(&a.OpenedAt), instant(&a.ClosedAt), &a.Class, &a.Cause, &a.Replaced}
	})
}

// OpenAttempt records that the service is about to send a document. Attempts are
// numbered from 1.
func (b *Batch) OpenAttempt(a Attempt) *Batch {
	return b.add(do(`
		INSERT INTO attempts (document_id, number, environment, taxpayer_id, kind, sha256, opened_at, closed_at, class, detail)
		VALUES ($1, $2, $3, $4, $5, $6, $7, NULL, '', '')`,
		a.DocumentID, a.Number, string(a.Environment), a.TaxpayerID, a.Kind, a.Digest, micros(a.OpenedAt)), nil)
}

// CloseAttempt records how an attempt ended. It does not change a closed attempt.
func (b *Batch) CloseAttempt(a Attempt) *Batch {
	return b.add(do(`
		UPDATE attempts SET closed_at = $5, class = $6, detail = $7
		WHERE environment = $1 AND taxpayer_id = $2 AND document_id = $3 AND number = $4 AND closed_at IS NULL`,
		string(a.Environment), a.TaxpayerID, a.DocumentID, a.Number, micros(a.ClosedAt), string(a.Class), string(a.Cause)), nil)
}

// Unsent selects documents of a number range that wait to be sent to the tax authority.
type Unsent struct {
	UpTo string    // the highest number, an e-NCF; empty: all numbers
	Idle time.Time // only jobs whose lease has ended then; zero: all jobs
}

// lostChunk is how many jobs a transaction of OpenLostAttempts looks at.
const lostChunk = 500

// OpenLostAttempts opens an attempt for each of the selected documents that has none
// open: the database may have lost the record that the document was sent. A worker then
// asks the tax authority before it sends the document.
//
// It goes over the jobs of the taxpayer in short transactions, from the first to the last
// one. A job can move back meanwhile, so it starts again until it finds nothing to do.
func (s *Store) OpenLostAttempts(ctx context.Context, n NumberRange, u Unsent, at time.Time) error {
	for {
		opened, after := int64(0), dueJob{runAt: -1}
		for {
			jobs, err := s.mainJobsAfter(ctx, n.Scope, after, lostChunk)
			if err != nil {
				return err
			}
			if len(jobs) == 0 {
				break
			}
			after = jobs[len(jobs)-1]
			some, err := s.run(ctx, "open lost attempts", openLostAttempts(n, u, at, jobs))
			if err != nil {
				return err
			}
			opened += some
		}
		if opened == 0 {
			return nil
		}
	}
}

// mainJobsAfter lists jobs of a taxpayer in the main queue, in the order of the index
// jobs_of_taxpayer.
func (r reader) mainJobsAfter(ctx context.Context, scope Scope, after dueJob, limit int) ([]dueJob, error) {
	return collect(r.rows(ctx, "list jobs", `
		SELECT document_id, taxpayer_id, run_at FROM jobs
		WHERE environment = $1 AND queue = $2 AND taxpayer_id = $3 AND (run_at, document_id) > ($4, $5)
		ORDER BY taxpayer_id, run_at, document_id LIMIT `+strconv.Itoa(limit), scope.Environment, QueueMain, scope.TaxpayerID, after.runAt, after.documentID),
		(*dueJob).columns)
}

// openLostAttempts opens the attempts of the selected documents among the given jobs.
func openLostAttempts(n NumberRange, u Unsent, at time.Time, jobs []dueJob) statement {
	documents := make([]string, len(jobs))
	for i, j := range jobs {
		documents[i] = j.documentID
	}
	ids, args := placeholders(documents)
	next := func(value any) string {
		args = append(args, value)
		return "$" + strconv.Itoa(len(args))
	}
	conditions := ""
	if !u.Idle.IsZero() {
		conditions += ` AND j.lease_until <= ` + next(micros(u.Idle))
	}
	if u.UpTo != "" {
		conditions += ` AND i.encf <= ` + next(u.UpTo)
	}
	text := `
		INSERT INTO attempts (document_id, number, environment, taxpayer_id, kind, sha256, opened_at, closed_at, class, detail)
		SELECT i.document_id, coalesce((SELECT max(a.number) FROM attempts a WHERE a.document_id = i.document_id), 0) + 1,
			i.environment, i.taxpayer_id, 'submit', i.sent_sha256, cast(` + next(micros(at)) + ` AS bigint), NULL, '', cast(` + next(string(cause.New(cause.LostAttempt))) + ` AS text)
		FROM jobs j JOIN issued_documents i ON i.document_id = j.document_id
		WHERE j.document_id IN (` + ids + `) AND j.stage = 'submit' AND i.range_id = ` + next(n.ID) + conditions + `
			AND NOT EXISTS (SELECT 1 FROM attempts o WHERE o.document_id = i.document_id AND o.closed_at IS NULL)
		ON CONFLICT DO NOTHING` // a worker has opened one at the same moment
	return do(text, args...)
}
