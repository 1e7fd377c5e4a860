package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// ErrOverlap says that a range has numbers of another range of the same RNC.
var ErrOverlap = errors.New("store: the range overlaps another one")

// ErrNumbersTaken says that somebody else has taken numbers of the sequence, or
// that it was fenced, since it was read.
var ErrNumbersTaken = errors.New("store: the next number is another by now")

// NumberRange is a range of numbers that the authority has granted a taxpayer for
// one type of document. Next is the number that will be taken next; beyond Last
// there is none left.
type NumberRange struct {
	Scope
	ID                string
	Type              fiscal.Type
	First, Last, Next int64
	Expires           fiscal.Date // zero: never
	FencedAt          time.Time   // zero: not fenced
	CreatedAt         time.Time
}

// Left is how many numbers remain.
func (s NumberRange) Left() int64 { return s.Last - s.Next + 1 }

// Expired tells whether the range may no longer be used on a day.
func (s NumberRange) Expired(day fiscal.Date) bool {
	return !s.Expires.IsZero() && s.Expires.Before(day)
}

const sequenceColumns = `id, environment, taxpayer_id, ecf_type, first_number, last_number, next_number, expires, fenced_at, created_at`

// AddNumberRange stores a range. The error is ErrNotFound when there is no such
// taxpayer, and ErrOverlap when a number of it belongs to another range of the
// same RNC, of whichever taxpayer.
func (tx *Tx) AddNumberRange(ctx context.Context, s NumberRange) error {
	// Whoever adds a range for the RNC waits here for whoever else does.
	done, err := tx.q.ExecContext(ctx, `
		UPDATE taxpayers SET updated_at = updated_at
		WHERE rnc = (SELECT rnc FROM taxpayers WHERE id = $1)`, s.TaxpayerID)
	if err != nil {
		return tx.d.wrap("add sequence", err)
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return tx.d.wrap("add sequence", orNotFound(err))
	}
	var other int64
	err = tx.q.QueryRowContext(ctx, `
		SELECT count(*) FROM sequences q JOIN taxpayers t ON t.id = q.taxpayer_id
		WHERE q.environment = $1 AND q.ecf_type = $2 AND q.first_number <= $3 AND q.last_number >= $4
			AND t.rnc = (SELECT rnc FROM taxpayers WHERE id = $5)`,
		s.Environment, s.Type, s.Last, s.First, s.TaxpayerID).Scan(&other)
	if err != nil {
		return tx.d.wrap("add sequence", err)
	}
	if other > 0 {
		return ErrOverlap
	}
	_, err = tx.q.ExecContext(ctx, `
		INSERT INTO sequences (`+sequenceColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		s.ID, s.Environment, s.TaxpayerID, s.Type, s.First, s.Last, s.Next, s.Expires.String(), optionalMicros(s.FencedAt), micros(s.CreatedAt))
	return tx.d.wrap("add sequence", err)
}

// NumberRanges lists all ranges, the oldest first.
func (r reader) NumberRanges(ctx context.Context) ([]NumberRange, error) {
	rows, err := r.q.QueryContext(ctx, `SELECT `+sequenceColumns+` FROM sequences WHERE environment <> '' AND taxpayer_id <> '' ORDER BY id`)
	if err != nil {
		return nil, r.d.wrap("list sequences", err)
	}
	return collect(r.d, "list sequences", rows, scanNumberRange)
}

// NumberRangesOf lists the ranges of a taxpayer for a type, the lowest first.
func (r reader) NumberRangesOf(ctx context.Context, scope Scope, t fiscal.Type) ([]NumberRange, error) {
	rows, err := r.q.QueryContext(ctx, `
		SELECT `+sequenceColumns+` FROM sequences
		WHERE environment = $1 AND taxpayer_id = $2 AND ecf_type = $3 ORDER BY first_number`,
		scope.Environment, scope.TaxpayerID, t)
	if err != nil {
		return nil, r.d.wrap("read sequences", err)
	}
	return collect(r.d, "read sequences", rows, scanNumberRange)
}

// NumberRange reads a range of a taxpayer.
func (r reader) NumberRange(ctx context.Context, scope Scope, id string) (NumberRange, error) {
	s, err := scanNumberRange(r.q.QueryRowContext(ctx, `
		SELECT `+sequenceColumns+` FROM sequences WHERE environment = $1 AND taxpayer_id = $2 AND id = $3`,
		scope.Environment, scope.TaxpayerID, id))
	return s, r.d.wrap("read sequence", err)
}

func scanNumberRange(r row) (NumberRange, error) {
	var s NumberRange
	var expires string
	var fenced sql.NullInt64
	var created int64
	err := r.Scan(&s.ID, &s.Environment, &s.TaxpayerID, &s.Type, &s.First, &s.Last, &s.Next, &expires, &fenced, &created)
	if err != nil {
		return NumberRange{}, err
	}
	s.CreatedAt = fromMicros(created)
	if fenced.Valid {
		s.FencedAt = fromMicros(fenced.Int64)
	}
	if expires != "" {
		s.Expires, err = fiscal.ParseDate(expires)
	}
	return s, err
}

// TakeNumbers takes numbers of a sequence, beginning with the one that was next
// when it was read. The row stays locked until the transaction ends, and numbers
// whose transaction fails go back. The error is ErrNumbersMoved when another
// number is next by now, or too few are left.
func (tx *Tx) TakeNumbers(ctx context.Context, s NumberRange, count int64) error {
	n, err := takeNumbers(s, count).run(ctx, tx.q)
	if err == nil && n == 0 {
		err = ErrNumbersTaken
	}
	return tx.d.wrap("take numbers", err)
}

func takeNumbers(s NumberRange, count int64) statement {
	return statement{`
		UPDATE sequences SET next_number = next_number + cast($5 AS bigint)
		WHERE environment = $1 AND taxpayer_id = $2 AND id = $3 AND next_number = $4
			AND next_number + cast($5 AS bigint) <= last_number + 1 AND fenced_at IS NULL`, []any{
		string(s.Environment), s.TaxpayerID, s.ID, s.Next, count,
	}}
}

// FenceNumberRange keeps a range from being used until it is released.
func (b *Batch) FenceNumberRange(s NumberRange, at time.Time) *Batch {
	return b.add(statement{`
		UPDATE sequences SET fenced_at = $4
		WHERE environment = $1 AND taxpayer_id = $2 AND id = $3`, []any{
		string(s.Environment), s.TaxpayerID, s.ID, micros(at),
	}}, nil)
}

// FenceBehind fences a range whose next number is not beyond a mark, and tells
// whether it did. One that is fenced stays as it is.
func (tx *Tx) FenceBehind(ctx context.Context, s NumberRange, mark int64, at time.Time) (bool, error) {
	done, err := tx.q.ExecContext(ctx, `
		UPDATE sequences SET fenced_at = $5
		WHERE environment = $1 AND taxpayer_id = $2 AND id = $3 AND next_number <= $4 AND fenced_at IS NULL`,
		s.Environment, s.TaxpayerID, s.ID, mark, micros(at))
	if err != nil {
		return false, tx.d.wrap("fence sequence", err)
	}
	n, err := done.RowsAffected()
	return n > 0, tx.d.wrap("fence sequence", err)
}

// ReleaseNumberRange lets a fenced range be used again, from a number on. The error
// is ErrNumbersMoved when it was released, or fenced anew, since it was read.
func (tx *Tx) ReleaseNumberRange(ctx context.Context, s NumberRange, next int64) error {
	done, err := tx.q.ExecContext(ctx, `
		UPDATE sequences SET fenced_at = NULL, next_number = $6
		WHERE environment = $1 AND taxpayer_id = $2 AND id = $3 AND next_number = $4 AND fenced_at = $5`,
		s.Environment, s.TaxpayerID, s.ID, s.Next, micros(s.FencedAt), next)
	if err != nil {
		return tx.d.wrap("release sequence", err)
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		if err == nil {
			err = ErrNumbersTaken
		}
		return tx.d.wrap("release sequence", err)
	}
	return nil
}
