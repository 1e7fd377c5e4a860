package storetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// copyGroup is how many documents one transaction copies.
const copyGroup = 20_000

// copiedTables are the tables with the rows of a document.
func copiedTables() []string {
	return []string{"documents", "history", "idempotency", "events", "issued_documents", "evidence", "attempts"}
}

// Copies are documents that a benchmark adds to a database.
type Copies struct {
	Documents int           // copies of the only document of the database
	Waiting   int           // how many of them have a job, which waits for a day
	Span      time.Duration // the copies are from this time before now
	Progress  func(documents int)
}

// CopyDocuments fills a database that has one document with copies of all its rows, each
// with its own ids, number and times.
func CopyDocuments(ctx context.Context, address string, c Copies) (err error) {
	db, sqlite, err := openForCopies(address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var o original
	if err := db.QueryRowContext(ctx, `SELECT id, document_id FROM documents`).Scan(&o.invoice, &o.document); err != nil {
		return err
	}
	statements := make([]string, 0, len(copiedTables()))
	for _, table := range copiedTables() {
		text, err := o.copyText(ctx, db, table, sqlite)
		if err != nil {
			return err
		}
		statements = append(statements, text)
	}
	first := time.Now().Add(-c.Span).UnixMicro()
	step := c.Span.Microseconds() / int64(max(c.Documents, 1))
	for n := 1; n <= c.Documents; n += copyGroup {
		for _, text := range statements {
			if _, err := db.ExecContext(ctx, text, n, min(n+copyGroup-1, c.Documents), first, step); err != nil {
				return fmt.Errorf("%w in %s", err, text)
			}
		}
		c.Progress(n - 1)
	}
	_, err = db.ExecContext(ctx, `
		INSERT INTO jobs (document_id, environment, taxpayer_id, plan, stage, attempt, run_at, lease, lease_until, last_error, created_at)
		SELECT document_id, environment, taxpayer_id, 'live', 'poll', 0, cast($1 AS bigint), '', 0, '', created_at
		FROM documents WHERE external_id LIKE 'copy-%' LIMIT $2`, time.Now().Add(24*time.Hour).UnixMicro(), c.Waiting)
	return err
}

func openForCopies(address string) (db *sql.DB, sqlite bool, err error) {
	path, sqlite := strings.CutPrefix(address, "sqlite:")
	if sqlite {
		db, err = sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)&_pragma=synchronous(off)&_pragma=cache_size(-1000000)")
	} else {
		db, err = sql.Open("pgx", As(address, "postgres"))
	}
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, sqlite, err
}

// An original is the document that is copied.
type original struct{ invoice, document string }

// copyText returns the statement that copies the rows of the document in a table. Its
// arguments are the first and the last number of the copies, the time of copy 0, and the
// microseconds between two copies.
func (o original) copyText(ctx context.Context, db *sql.DB, table string, sqlite bool) (string, error) {
	columns, err := columnsOf(ctx, db, table, sqlite)
	if err != nil {
		return "", err
	}
	numbers := `SELECT n, cast($3 AS bigint) + n * cast($4 AS bigint) AS at FROM generate_series(cast($1 AS bigint), cast($2 AS bigint)) n`
	hex := func(value string, digits int) string { return fmt.Sprintf(`lpad(to_hex(%s), %d, '0')`, value, digits) }
	decimal := func(value string, digits int) string {
		return fmt.Sprintf(`lpad(cast(%s AS text), %d, '0')`, value, digits)
	}
	if sqlite {
		numbers = `SELECT n, $3 + n * $4 AS at FROM (WITH RECURSIVE c (n) AS (SELECT $1 UNION ALL SELECT n + 1 FROM c WHERE n < $2) SELECT n FROM c)`
		hex = func(value string, digits int) string { return fmt.Sprintf(`printf('%%0%dx', %s)`, digits, value) }
		decimal = func(value string, digits int) string { return fmt.Sprintf(`printf('%%0%dd', %s)`, digits, value) }
	}
	owner := "document_id = '" + o.document + "'"
	switch table {
	case "history":
		owner = "invoice_id = '" + o.invoice + "'"
	case "idempotency":
		owner = "object_id = '" + o.invoice + "'"
	}
	values := make([]string, len(columns))
	for i, column := range columns {
		old := "t." + column
		switch {
		case slices.Contains([]string{"id", "document_id", "invoice_id", "object_id"}, column):
			values[i] = hex("c.at / 1000 / 65536", 8) + ` || '-' || ` + hex("c.at / 1000 % 65536", 4) + ` || substr(` + old + `, 14, 11) || ` + hex("c.n", 12)
		case slices.Contains([]string{"external_id", "key", "track_id", "request_id"}, column):
			values[i] = `CASE WHEN ` + old + ` IS NULL OR ` + old + ` = '' THEN ` + old + ` ELSE 'copy-' || ` + decimal("c.n", 8) + ` END`
		case column == "encf":
			values[i] = `CASE WHEN ` + old + ` IS NULL THEN NULL ELSE substr(` + old + `, 1, 3) || ` + decimal("100000000 + c.n", 10) + ` END`
		case column == "range_id":
			values[i] = `'copies'` // a number range that is used up
		case table == "events" && column == "number":
			values[i] = old + ` + c.n * 10`
		case slices.Contains([]string{"created_at", "updated_at", "at", "opened_at", "closed_at", "signed_at"}, column):
			values[i] = `c.at`
		default:
			values[i] = old
		}
	}
	return fmt.Sprintf(`INSERT INTO %s (%s) SELECT %s FROM (%s) c CROSS JOIN (SELECT * FROM %s WHERE %s) t`,
		table, strings.Join(columns, ", "), strings.Join(values, ", "), numbers, table, owner), nil
}

// columnsOf returns the columns of a table that have a value of their own.
func columnsOf(ctx context.Context, db *sql.DB, table string, sqlite bool) (columns []string, err error) {
	query := `SELECT column_name FROM information_schema.columns WHERE table_name = $1 AND is_generated = 'NEVER' ORDER BY ordinal_position`
	if sqlite {
		query = `SELECT name FROM pragma_table_info($1)`
	}
	rows, err := db.QueryContext(ctx, query, table)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		columns = append(columns, name)
	}
	return columns, rows.Err()
}

// TableSizes returns how many bytes each table has on disk, with its indexes.
func TableSizes(ctx context.Context, address string) (sizes map[string]int64, err error) {
	db, sqlite, err := openForCopies(address)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	query := `SELECT relname, pg_total_relation_size(relid) FROM pg_stat_user_tables`
	if sqlite {
		query = `SELECT m.tbl_name, sum(s.pgsize) FROM dbstat s JOIN sqlite_schema m ON m.name = s.name WHERE s.aggregate = TRUE GROUP BY 1`
	}
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	sizes = map[string]int64{}
	for rows.Next() {
		var name string
		var size int64
		if err := rows.Scan(&name, &size); err != nil {
			return nil, err
		}
		sizes[name] = size
	}
	return sizes, rows.Err()
}
