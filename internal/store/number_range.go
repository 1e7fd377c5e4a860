package store

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// ErrOverlap means that the range contains numbers of another range of the same RNC.
var ErrOverlap = errors.New("store: the range overlaps another range of the same RNC")

// ErrNumbersTaken means that the range has too few numbers left, or another transaction took
// numbers of it, fenced it or released it after it was read.
var ErrNumbersTaken = errors.New("store: another transaction changed the number range, or too few numbers are left")

// NumberRange is a range of numbers that the tax authority has authorised a taxpayer to
// use for one type of document. Next is the next number to take; when it is greater
// than Last, no number is left.
type NumberRange struct {
	Scope
	ID                string
	Type              fiscal.Type
	First, Last, Next int64
	Expires           fiscal.Date // zero: never
	FencedAt          time.Time   // zero: not fenced; a fenced range gives no numbers until it is released
	CreatedAt         time.Time
	Seen              int64 // the highest number of a fenced range that a witness has reported, or UnknownSeen
}

// Left returns how many numbers are left.
func (n NumberRange) Left() int64 { return n.Last - n.Next + 1 }

// Expired reports whether the range has expired on the given day.
func (n NumberRange) Expired(day fiscal.Date) bool {
	return !n.Expires.IsZero() && n.Expires.Before(day)
}

const numberRangeColumns = `id, environment, taxpayer_id, ecf_type, first_number, last_number, next_number, expires, fenced_at, created_at, seen_number`

// AddNumberRange stores a range. The error is ErrNotFound when there is no such
// taxpayer, and ErrOverlap when a taxpayer with the same RNC has a range with one of its
// numbers.
func (tx *Tx) AddNumberRange(ctx context.Context, n NumberRange) error {
	// The lock keeps another transaction from adding a range of the RNC after the check.
	err := tx.writeOne(ctx, "lock taxpayers", ErrNotFound, do(`
		UPDATE taxpayers SET updated_at = updated_at
		WHERE rnc = (SELECT rnc FROM taxpayers WHERE id = $1)`, n.TaxpayerID))
	if err != nil {
		return err
	}
	other, err := one(tx.rows(ctx, "add number range", `
		SELECT count(*) FROM number_ranges q JOIN taxpayers t ON t.id = q.taxpayer_id
		WHERE q.environment = $1 AND q.ecf_type = $2 AND q.first_number <= $3 AND q.last_number >= $4
			AND t.rnc = (SELECT rnc FROM taxpayers WHERE id = $5)`,
		n.Environment, n.Type, n.Last, n.First, n.TaxpayerID), only[int64])
	if err != nil {
		return err
	}
	if other > 0 {
		return ErrOverlap
	}
	err = tx.exec(ctx, "add number range", `
		INSERT INTO number_ranges (`+numberRangeColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
		n.ID, n.Environment, n.TaxpayerID, n.Type, n.First, n.Last, n.Next, n.Expires.String(), optionalMicros(n.FencedAt), micros(n.CreatedAt), n.Seen)
	if err != nil {
		return err
	}
	return tx.Audit(ctx, n.auditEntry("sequence.add", nil, n.auditFields()))
}

// auditFields returns what the audit log shows of a range.
func (n NumberRange) auditFields() map[string]any {
	return map[string]any{
		"type": n.Type, "from": n.First, "to": n.Last, "next": n.Next, "expires": n.Expires.String(), "fenced_at": auditTime(n.FencedAt),
	}
}

// auditEntry returns a change of the range for the audit log.
func (n NumberRange) auditEntry(action string, before, after map[string]any) AuditEntry {
	return AuditEntry{n.Scope, action, "sequence:" + n.ID, before, after}
}

// NumberRanges lists the ranges of all taxpayers and environments, the oldest first.
// The operator and the fence use it.
func (r reader) NumberRanges(ctx context.Context) ([]NumberRange, error) {
	return collect(r.rows(ctx, "list number ranges", `SELECT `+numberRangeColumns+` FROM number_ranges ORDER BY id`), (*NumberRange).columns)
}

// NumberRangesOf lists the ranges of a taxpayer for a type of document, the lowest
// first.
func (r reader) NumberRangesOf(ctx context.Context, scope Scope, t fiscal.Type) ([]NumberRange, error) {
	return collect(r.rows(ctx, "read number ranges", `
		SELECT `+numberRangeColumns+` FROM number_ranges
		WHERE environment = $1 AND taxpayer_id = $2 AND ecf_type = $3 ORDER BY first_number`,
		scope.Environment, scope.TaxpayerID, t), (*NumberRange).columns)
}

// NumberRange reads a range of a taxpayer.
func (r reader) NumberRange(ctx context.Context, scope Scope, id string) (NumberRange, error) {
	return one(r.rows(ctx, "read number range", `
		SELECT `+numberRangeColumns+` FROM number_ranges WHERE environment = $1 AND taxpayer_id = $2 AND id = $3`,
		scope.Environment, scope.TaxpayerID, id), (*NumberRange).columns)
}

func (n *NumberRange) columns() []any {
	expires := parse(&n.Expires, func(text string) (fiscal.Date, error) {
		if text == "" {
			return fiscal.Date{}, nil
		}
		return fiscal.ParseDate(text)
	})
	return []any{
		&n.ID, &n.Environment, &n.TaxpayerID, &n.Type, &n.First, &n.Last, &n.Next, expires, instant(&n.FencedAt), instant(&n.CreatedAt), &n.Seen,
	}
}

// takeNumbers takes count numbers of a range, starting with n.Next. It changes no row when
// the stored range has another next number, is fenced, or has too few numbers left.
func takeNumbers(n NumberRange, count int64) statement {
	return do(`
		UPDATE number_ranges SET next_number = next_number + cast($5 AS bigint)
		WHERE environment = $1 AND taxpayer_id = $2 AND id = $3 AND next_number = $4
			AND next_number + cast($5 AS bigint) <= last_number + 1 AND fenced_at IS NULL AND seen_number < next_number`,
		string(n.Environment), n.TaxpayerID, n.ID, n.Next, count)
}

// FenceNumberRange fences a range: it gives no numbers until it is released.
func (b *Batch) FenceNumberRange(n NumberRange, at time.Time) *Batch {
	return b.add(do(`
		UPDATE number_ranges SET fenced_at = $4
		WHERE environment = $1 AND taxpayer_id = $2 AND id = $3`,
		string(n.Environment), n.TaxpayerID, n.ID, micros(at)), nil)
}

// FenceBehind fences a range when its next number is mark or lower, and reports whether
// it did. It does not change a fenced range.
func (tx *Tx) FenceBehind(ctx context.Context, n NumberRange, mark int64, at time.Time) (bool, error) {
	fenced, err := tx.write(ctx, "fence number range", do(`
		UPDATE number_ranges SET fenced_at = $5
		WHERE environment = $1 AND taxpayer_id = $2 AND id = $3 AND next_number <= $4 AND fenced_at IS NULL`,
		string(n.Environment), n.TaxpayerID, n.ID, mark, micros(at)))
	if err != nil || !fenced {
		return false, err
	}
	return true, tx.Audit(ctx, n.auditEntry("sequence.fence", nil, map[string]any{"fenced_at": auditTime(at), "behind": mark}))
}

// UnknownSeen is the Seen of a range of which a witness cannot say how far it was seen.
const UnknownSeen = math.MaxInt64

// ReportSeen stores the highest number of a range that a witness knows, or UnknownSeen, where
// it is higher than what the database knows: numbers up to it were seen and are not issued
// again.
func (tx *Tx) ReportSeen(ctx context.Context, n NumberRange, seen int64) error {
	return tx.exec(ctx, "report seen numbers", `
		UPDATE number_ranges SET seen_number = $4
		WHERE environment = $1 AND taxpayer_id = $2 AND id = $3 AND seen_number < $4 AND next_number <= $4`,
		string(n.Environment), n.TaxpayerID, n.ID, seen)
}

// FenceAgain is ReportSeen for a range that is fenced: the fence begins at the given moment,
// because reports of other nodes from before do not explain it.
func (tx *Tx) FenceAgain(ctx context.Context, n NumberRange, seen int64, at time.Time) error {
	return tx.exec(ctx, "report seen numbers", `
		UPDATE number_ranges SET seen_number = $4, fenced_at = $5
		WHERE environment = $1 AND taxpayer_id = $2 AND id = $3 AND seen_number < $4 AND next_number <= $4 AND fenced_at IS NOT NULL`,
		string(n.Environment), n.TaxpayerID, n.ID, seen, micros(at))
}

// ReleaseNumberRange releases a fenced range and sets its next number. The error is
// ErrNumbersTaken when another transaction released or fenced it after it was read, or a
// witness has reported a number since.
func (tx *Tx) ReleaseNumberRange(ctx context.Context, n NumberRange, next int64) error {
	err := tx.writeOne(ctx, "release number range", ErrNumbersTaken, do(`
		UPDATE number_ranges SET fenced_at = NULL, next_number = $6, seen_number = 0
		WHERE environment = $1 AND taxpayer_id = $2 AND id = $3 AND next_number = $4 AND fenced_at = $5 AND seen_number = $7`,
		string(n.Environment), n.TaxpayerID, n.ID, n.Next, micros(n.FencedAt), next, n.Seen))
	if err != nil {
		return err
	}
	after := n
	after.Next, after.FencedAt, after.Seen = next, time.Time{}, 0
	return tx.Audit(ctx, n.auditEntry("sequence.release", n.auditFields(), after.auditFields()))
}
