package store

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"
	"time"
)

// row is what scanning needs of *sql.Row and *sql.Rows.
type row interface{ Scan(dest ...any) error }

// collect reads and closes rows.
func collect[T any](d *dialect, what string, rows *sql.Rows, scan func(row) (T, error)) ([]T, error) {
	defer func() { _ = rows.Close() }() // rows.Err tells what matters
	var all []T
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, d.wrap(what, err)
		}
		all = append(all, one)
	}
	return all, d.wrap(what, rows.Err())
}

// micros is how instants are stored: microseconds since 1970 UTC.
func micros(t time.Time) int64 { return t.UnixMicro() }

// optionalMicros stores the zero time as NULL.
func optionalMicros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return micros(t)
}

func fromMicros(n int64) time.Time { return time.UnixMicro(n).UTC() }

func fromNull(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return fromMicros(n.Int64)
}

func orNotFound(err error) error {
	if err != nil {
		return err
	}
	return sql.ErrNoRows
}

func optionalText(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// optionalBytes stores no bytes as NULL.
func optionalBytes(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}

// changeOne runs a statement that must find its row.
func (tx *Tx) changeOne(ctx context.Context, what string, otherwise error, s statement) error {
	n, err := s.run(ctx, tx.q)
	if err != nil {
		return tx.d.wrap(what, err)
	}
	if n == 0 {
		return otherwise
	}
	return nil
}

// some tells a row from none.
func (r reader) some(what string, err error) (bool, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, r.d.wrap(what, err)
}

// behind reads columns that stand before those of another reader.
type behind struct {
	row
	first []any
}

func (b behind) Scan(to ...any) error { return b.row.Scan(append(b.first, to...)...) }

// placeholders are those of a list of values. The list is filled up to a power of
// two with its last value, so that few different statements are ever prepared.
func placeholders(values []string) (list string, args []any) {
	size := 1
	for size < len(values) {
		size *= 2
	}
	marks := make([]string, size)
	for i := range size {
		marks[i] = "$" + strconv.Itoa(i+1)
		args = append(args, values[min(i, len(values)-1)])
	}
	return strings.Join(marks, ", "), args
}

// prefixed puts the name of a table before each of its columns.
func prefixed(table, columns string) string {
	return table + strings.ReplaceAll(columns, ", ", ", "+table)
}

// statement is a statement with its arguments.
type statement struct {
	text string
	args []any
}

// run executes a statement and returns how many rows it changed.
func (s statement) run(ctx context.Context, q querier) (int64, error) {
	done, err := q.ExecContext(ctx, s.text, s.args...)
	if err != nil {
		return 0, err
	}
	return done.RowsAffected()
}
