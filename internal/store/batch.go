package store

import (
	"context"
	"errors"
	"time"
)

// ErrInvoiceChanged says that an invoice is no longer as it was when it was read.
var ErrInvoiceChanged = errors.New("the invoice has changed meanwhile")

// A Batch is a list of writes that are committed together or not at all, with
// nothing to read in between: an engine at the other end of a network gets all
// of them in one exchange. The first error of making one is told by the commit.
type Batch struct {
	writes []change
	err    error
}

// change is a statement and what it means that it changes nothing; nil: that
// there was nothing to change.
type change struct {
	statement
	idle error
}

func (b *Batch) add(s statement, idle error) *Batch {
	b.writes = append(b.writes, change{s, idle})
	return b
}

// Fail makes the commit end in an error, unless it is nil.
func (b *Batch) Fail(err error) *Batch {
	b.err = errors.Join(b.err, err)
	return b
}

// Append puts the writes of another batch behind those of this one.
func (b *Batch) Append(other *Batch) *Batch {
	b.writes, b.err = append(b.writes, other.writes...), errors.Join(b.err, other.err)
	return b
}

// Commit commits the writes in a transaction of their own.
func (s *Store) Commit(ctx context.Context, b *Batch) error {
	if b.err != nil {
		return b.err
	}
	statements := make([]statement, len(b.writes))
	for i, w := range b.writes {
		statements[i] = w.statement
	}
	err := s.batch(ctx, statements, func(rows []int64) error {
		for i, w := range b.writes {
			if rows[i] == 0 && w.idle != nil {
				return w.idle
			}
		}
		return nil
	})
	return s.d.wrap("commit", err)
}

// Do makes the writes part of the transaction.
func (tx *Tx) Do(ctx context.Context, b *Batch) error {
	if b.err != nil {
		return b.err
	}
	for _, w := range b.writes {
		rows, err := w.run(ctx, tx.q)
		if err == nil && rows == 0 {
			err = w.idle
		}
		if err != nil {
			return tx.d.wrap("write", err)
		}
	}
	return nil
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

// ChangeStatus gives an invoice and its document their next status. It ends in
// ErrMoved when the invoice is no longer as the move found it.
func (b *Batch) ChangeStatus(before, after Invoice) *Batch {
	if !before.Status.MayBecome(after.Status) {
		b.err = errors.Join(b.err, errors.New("store: an invoice that is "+string(before.Status)+" cannot become "+string(after.Status)))
		return b
	}
	return b.changeInvoice(before, after, before.Revision+1)
}

// UpdateInvoice gives an invoice other messages, and leaves its status.
func (b *Batch) UpdateInvoice(before, after Invoice) *Batch {
	after.Status, after.TrackID = before.Status, before.TrackID
	return b.changeInvoice(before, after, before.Revision)
}

func (b *Batch) changeInvoice(before, after Invoice, sequence int64) *Batch {
	messages, err := encodeMessages(after.Messages)
	b.err = errors.Join(b.err, err)
	return b.add(statement{`
		UPDATE invoices SET status = $6, sequence = $7, messages = $8, updated_at = $9, track_id = $10
		WHERE environment = $1 AND taxpayer_id = $2 AND id = $3 AND sequence = $4 AND updated_at = $5`, []any{
		string(before.Environment), before.TaxpayerID, before.ID, before.Revision, micros(before.UpdatedAt),
		string(after.Status), sequence, messages, micros(after.UpdatedAt), optionalText(after.TrackID),
	}}, ErrInvoiceChanged)
}

// AddHistoryEntry appends to the history of an invoice.
func (b *Batch) AddHistoryEntry(e HistoryEntry) *Batch { return b.add(addHistoryEntry(e), nil) }

// OpenAttempt records that a document is about to be sent. Numbers count from 1.
func (b *Batch) OpenAttempt(a Attempt) *Batch {
	return b.add(statement{`
		INSERT INTO attempts (document_id, number, environment, taxpayer_id, kind, sha256, opened_at, closed_at, class, detail)
		VALUES ($1, $2, $3, $4, $5, $6, $7, NULL, '', '')`, []any{
		a.DocumentID, a.Number, string(a.Environment), a.TaxpayerID, a.Kind, a.Digest, micros(a.OpenedAt),
	}}, nil)
}

// CloseAttempt records how an attempt ended. One that is closed stays as it is.
func (b *Batch) CloseAttempt(a Attempt) *Batch {
	return b.add(statement{`
		UPDATE attempts SET closed_at = $5, class = $6, detail = $7
		WHERE environment = $1 AND taxpayer_id = $2 AND document_id = $3 AND number = $4 AND closed_at IS NULL`, []any{
		string(a.Environment), a.TaxpayerID, a.DocumentID, a.Number, micros(a.ClosedAt), string(a.Class), a.Detail,
	}}, nil)
}

// AddEvidence appends evidence; what is known already is not added again.
func (b *Batch) AddEvidence(e Evidence) *Batch {
	var raw any // not a nil slice, which some drivers take for empty bytes
	if e.Raw != nil {
		raw = e.Raw
	}
	return b.add(statement{`
		INSERT INTO evidence (document_id, id, environment, taxpayer_id, at, kind, track_id, verdict, body, digest, raw)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
		ON CONFLICT DO NOTHING`, []any{
		e.DocumentID, e.ID, string(e.Environment), e.TaxpayerID, micros(e.At), e.Kind, e.TrackID, int64(e.Verdict), e.Body, e.Digest, raw,
	}}, nil)
}

// SettleNumber says what became of a document's number.
func (b *Batch) SettleNumber(i Issued, state NumberState) *Batch {
	return b.add(statement{`
		UPDATE issued SET number_state = $5
		WHERE environment = $1 AND rnc = $2 AND encf = $3 AND taxpayer_id = $4`, []any{
		string(i.Environment), i.RNC, i.ENCF, i.TaxpayerID, string(state),
	}}, nil)
}

// FenceNumberRange keeps a range from being used until it is released.
func (b *Batch) FenceNumberRange(s NumberRange, at time.Time) *Batch {
	return b.add(statement{`
		UPDATE sequences SET fenced_at = $4
		WHERE environment = $1 AND taxpayer_id = $2 AND id = $3`, []any{
		string(s.Environment), s.TaxpayerID, s.ID, micros(at),
	}}, nil)
}
