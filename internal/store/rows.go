package store

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/database"
)

// row is the part of *sql.Row and *sql.Rows that reads the columns of one row.
type row interface{ Scan(dest ...any) error }

// collect reads all rows with scan and closes them.
func collect[T any](d *dialect, what string, rows *sql.Rows, scan func(row) (T, error)) ([]T, error) {
	defer func() { _ = rows.Close() }() // rows.Err reports any failure
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

// rowExists reports whether a query of one row found it. err is the error of the
// query.
func (r reader) rowExists(what string, err error) (bool, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, r.d.wrap(what, err)
}

// afterScan reads the first columns of a row into its own variables. Another scan
// function then reads the columns that follow.
type afterScan struct {
	row
	first []any
}

func (a afterScan) Scan(dest ...any) error { return a.row.Scan(append(a.first, dest...)...) }

// statement is a statement with its arguments.
type statement database.Statement

// run executes the statement and returns how many rows it changed.
func (s statement) run(ctx context.Context, q database.Querier) (int64, error) {
	return database.Statement(s).Run(ctx, q)
}

// batch runs statements in one transaction. check receives the number of rows that each
// of them changed; an error of check rolls back.
func (s *Store) batch(ctx context.Context, statements []statement, check func(rows []int64) error) error {
	return s.Batch(ctx, forEngine(statements), check)
}

// forEngine returns statements in the form that the engine takes.
func forEngine(statements []statement) []database.Statement {
	all := make([]database.Statement, len(statements))
	for i, s := range statements {
		all[i] = database.Statement(s)
	}
	return all
}

// change executes a statement and reports whether it changed a row.
func (tx *Tx) write(ctx context.Context, what string, s statement) (bool, error) {
	n, err := s.run(ctx, tx.q)
	return err == nil && n > 0, tx.d.wrap(what, err)
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

// fromOptionalMicros reads NULL as the zero time.
func fromOptionalMicros(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return fromMicros(n.Int64)
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
