package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/database"
)

// result is the answer to a query.
type result struct {
	*sql.Rows
	err  error // of the query
	wrap func(error) error
}

// rows runs a query. Its caller reads the result with collect or one.
func (r reader) rows(ctx context.Context, what, query string, args ...any) result {
	rows, err := r.q.QueryContext(ctx, query, args...) //nolint:rowserrcheck // collect and one check it
	return result{rows, err, func(err error) error { return r.d.wrap(what, err) }}
}

// collect reads and closes a result. columns returns the destinations of the columns of a row.
func collect[T any](from result, columns func(*T) []any) (all []T, err error) {
	if from.err != nil {
		return nil, from.wrap(from.err)
	}
	defer func() { _ = from.Close() }() // Err reports any failure
	for from.Next() {
		var one T
		if err := from.Scan(columns(&one)...); err != nil {
			return nil, from.wrap(err)
		}
		all = append(all, one)
	}
	return all, from.wrap(from.Err())
}

// one is collect for a single row. The error is ErrNotFound when there is none.
func one[T any](from result, columns func(*T) []any) (found T, err error) {
	destinations := columns(&found)
	if from.err != nil {
		return found, from.wrap(from.err)
	}
	defer func() { _ = from.Close() }()
	if from.Next() {
		return found, from.wrap(cmp.Or(from.Scan(destinations...), from.Close()))
	}
	return found, from.wrap(cmp.Or(from.Err(), sql.ErrNoRows))
}

// only is the single column of a row.
func only[T any](value *T) []any { return []any{value} }

// ifFound returns err, or nil when err is ErrNotFound.
func ifFound(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// exists reports whether a query finds a row with one column.
func (r reader) exists(ctx context.Context, what, query string, args ...any) (bool, error) {
	_, err := one(r.rows(ctx, what, query, args...), only[int64])
	return err == nil, ifFound(err)
}

// scanned is a destination that gets the value of a column. NULL does not call it: the field
// keeps its zero value.
type scanned[C any] func(C) error

// Scan implements sql.Scanner.
func (s scanned[C]) Scan(column any) error {
	var value sql.Null[C]
	if err := value.Scan(column); err != nil || !value.Valid {
		return err
	}
	return s(value.V)
}

// into is a destination that calls set with the value of the column.
func into[C any](set func(C)) scanned[C] {
	return func(column C) error {
		set(column)
		return nil
	}
}

// parse is a destination for a column that read turns into a value.
func parse[C, T any](to *T, read func(C) (T, error)) scanned[C] {
	return func(column C) (err error) {
		*to, err = read(column)
		return err
	}
}

// via is parse for a function that cannot fail.
func via[C, T any](to *T, read func(C) T) scanned[C] {
	return into(func(column C) { *to = read(column) })
}

// orZero reads NULL as the zero value.
func orZero[T any](to *T) scanned[T] { return via(to, func(column T) T { return column }) }

// instant reads what micros or optionalMicros stored.
func instant(to *time.Time) scanned[int64] { return via(to, fromMicros) }

// elapsed reads microseconds.
func elapsed(to *time.Duration) scanned[int64] {
	return via(to, func(n int64) time.Duration { return time.Duration(n) * time.Microsecond })
}

// maxLooked is how many rows a page of a filtered list looks at. A page with fewer rows
// than asked for then has a position at which the list continues.
const maxLooked = 5000

// filterList reads parts of a list with read and keeps the elements that match, until it
// has limit of them, the list ends, or maxLooked elements were read. next is the id after
// which the list continues, and empty at its end.
func filterList[T any](limit int, after string, read func(after string, limit int) ([]T, error), id func(T) string, matches func(T) bool) (found []T, next string, err error) {
	chunk := limit + 1
	for looked := 0; looked < maxLooked; {
		some, err := read(after, chunk)
		if err != nil {
			return nil, "", err
		}
		for _, one := range some {
			if !matches(one) {
				continue
			}
			if len(found) == limit {
				return found, id(found[limit-1]), nil
			}
			found = append(found, one)
		}
		if len(some) < chunk {
			return found, "", nil
		}
		after, looked, chunk = id(some[len(some)-1]), looked+len(some), 1000
	}
	return found, after, nil
}

// statement is a statement that writes, with its arguments.
type statement = database.Statement

// do returns a statement.
func do(text string, args ...any) statement { return statement{Text: text, Args: args} }

// exec executes a statement.
func (tx *Tx) exec(ctx context.Context, what, text string, args ...any) error {
	_, err := tx.q.ExecContext(ctx, text, args...)
	return tx.d.wrap(what, err)
}

// run executes a statement and returns how many rows it changed.
func (tx *Tx) run(ctx context.Context, what string, s statement) (int64, error) {
	n, err := s.Run(ctx, tx.q)
	return n, tx.d.wrap(what, err)
}

// run executes a statement in a transaction of its own and returns how many rows it changed.
func (s *Store) run(ctx context.Context, what string, one statement) (n int64, err error) {
	err = s.Update(ctx, func(tx *Tx) (err error) {
		n, err = tx.run(ctx, what, one)
		return err
	})
	return n, err
}

// write executes a statement and reports whether it changed a row.
func (tx *Tx) write(ctx context.Context, what string, s statement) (bool, error) {
	n, err := tx.run(ctx, what, s)
	return err == nil && n > 0, err
}

// writeOne executes a statement that must change a row. It returns otherwise when
// the statement changes none.
func (tx *Tx) writeOne(ctx context.Context, what string, otherwise error, s statement) error {
	changed, err := tx.write(ctx, what, s)
	if err == nil && !changed {
		return otherwise
	}
	return err
}

// placeholders returns the list $1, $2, … for an IN condition, and its arguments.
// The last value fills the list up to a power of two, so that the engine prepares
// only a few different statements.
func placeholders(values []string) (list string, args []any) { return placeholdersFrom(1, values) }

// placeholdersFrom is placeholders for a list that begins with $first.
func placeholdersFrom(first int, values []string) (list string, args []any) {
	size := 1
	for size < len(values) {
		size *= 2
	}
	for i := range size {
		args = append(args, values[min(i, len(values)-1)])
	}
	return numbered(first, size), args
}

// numbered returns the placeholders of count arguments, which begin with $first.
func numbered(first, count int) string {
	marks := make([]string, count)
	for i := range marks {
		marks[i] = "$" + strconv.Itoa(first+i)
	}
	return strings.Join(marks, ", ")
}

// qualified puts the alias of a table before each of its columns.
func qualified(alias, columns string) string {
	return alias + "." + strings.ReplaceAll(columns, ", ", ", "+alias+".")
}

// micros is the stored form of an instant: microseconds since 1970 UTC.
func micros(t time.Time) int64 { return t.UnixMicro() }

func fromMicros(n int64) time.Time { return time.UnixMicro(n).UTC() }

// optionalMicros stores the zero time as NULL.
func optionalMicros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return micros(t)
}

// optionalText stores the empty string as NULL.
func optionalText(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// optionalBytes stores a nil slice as NULL. Some drivers store a nil slice as empty
// bytes.
func optionalBytes(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}

// oneIf is the stored form of a boolean: 1 for true, 0 for false.
func oneIf(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
