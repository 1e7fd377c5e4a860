package store_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// needStatistics are statements that PostgreSQL plans well only when it has statistics, and
// why this does no harm.
func needStatistics() map[string]string {
	return map[string]string{
		"Tx.RevokeCertificate":       "a taxpayer has few certificates",
		"Tx.RewrapCertificate":       "a taxpayer has few certificates",
		"Store.ClaimExport":          "an environment has few open exports",
		"Tx.Unpark":                  "a taxpayer has few parked messages",
		"Tx.TakeUnconfirmedResponse": "a signer has few unconfirmed responses",
		"reader.BuyerOfDocument":     "a person opens the page of a document",
		"reader.Event":               "a client asks for one event",
	}
}

// A statement that names all columns of a unique key finds its row with these columns. With
// fewer columns each execution would read more rows as the table grows. This holds even while
// the server has no statistics, but for the statements above.
func TestAPostgresPlanUsesTheWholeKey(t *testing.T) {
	t.Parallel()
	conn := connection(t, storetest.Address(t, "postgres"))
	fillAllTables(t, conn, 2_000)
	indexes := allIndexes(t, conn)
	exceptions, needed := needStatistics(), map[string]bool{}
	for _, u := range unusedKeys(t, conn, indexes) {
		needed[u.function] = true
		if exceptions[u.function] == "" {
			t.Error(u)
		}
	}
	for name := range exceptions {
		if !needed[name] {
			t.Errorf("%s needs no exception", name)
		}
	}
}

// unusedKey says that a statement names a unique key and is not planned with it.
type unusedKey struct{ function, problem string }

func (u unusedKey) String() string { return u.function + ": " + u.problem }

// unusedKeys plans every statement of the package.
func unusedKeys(t *testing.T, conn *sql.Conn, indexes map[string]index) (found []unusedKey) {
	t.Helper()
	planned := 0
	for _, s := range statements(t) {
		if !regexp.MustCompile(`^\s*(SELECT|UPDATE|DELETE|WITH)\b`).MatchString(s.text) {
			continue
		}
		if _, err := conn.ExecContext(t.Context(), `PREPARE planned AS `+s.text); err != nil {
			continue // a part of the statement is known only at run time
		}
		planned++
		for _, step := range planOf(t, conn.QueryRowContext, "planned").all() {
			named, searched := step.keys(indexes), step.searched(indexes)
			if len(named) > 0 && !slices.ContainsFunc(named, func(key []string) bool { return containsAll(searched, key) }) {
				found = append(found, unusedKey{s.function, fmt.Sprintf("PostgreSQL searches %s for %v in %q, and not for one of %v:\n%s",
					step.Table, searched, step.Index, named, s.text)})
			}
		}
		if _, err := conn.ExecContext(t.Context(), `DEALLOCATE planned`); err != nil {
			t.Fatal(err)
		}
	}
	if planned < 200 {
		t.Errorf("the test planned %d statements only", planned)
	}
	return found
}

// A connection that made its plans in an empty database makes better ones while the tables
// grow, also when the server collects no statistics.
func TestPostgresPlansAreRenewed(t *testing.T) {
	t.Parallel()
	address := storetest.Address(t, "postgres")
	conn := connection(t, address)
	s := storetest.Open(t, address, time.Now) // one caller uses one of its connections
	var none []byte
	if err := s.QueryRow(t.Context(), `
		PREPARE find AS SELECT class FROM attempts
		WHERE environment = $1 AND taxpayer_id = $2 AND document_id = $3 AND number = $4`).Scan(&none); err != sql.ErrNoRows { //nolint:errorlint // not wrapped
		t.Fatal(err)
	}
	index := func() string {
		t.Helper()
		return planOf(t, s.QueryRow, "find").Index
	}
	first := index()
	if _, err := conn.ExecContext(t.Context(), `
		INSERT INTO attempts (document_id, number, environment, taxpayer_id, kind, sha256, opened_at, class, detail)
		SELECT n, 1, 'production', 'taxpayer', 'submit', '', n, '', '' FROM generate_series(1, 5000) n`); err != nil {
		t.Fatal(err)
	}
	if first == "attempts_pkey" || index() != first {
		t.Fatalf("the plan of an empty table uses %s, then %s: this test needs a bad plan that the server keeps", first, index())
	}
	for range 64 {
		index()
	}
	if last := index(); last != "attempts_pkey" {
		t.Errorf("the connection still reads attempts through %s", last)
	}
}

// fillAllTables adds rows to every table, with a different value in each column but
// environment and taxpayer_id.
func fillAllTables(t *testing.T, conn *sql.Conn, rows int) {
	t.Helper()
	for _, drop := range firstColumn(t, conn, `
		SELECT format('ALTER TABLE %s DROP CONSTRAINT %I CASCADE', conrelid::regclass, conname)
		FROM pg_constraint WHERE contype IN ('c', 'f') AND connamespace = 'public'::regnamespace`) {
		if _, err := conn.ExecContext(t.Context(), drop); err != nil {
			t.Fatal(err)
		}
	}
	for _, fill := range firstColumn(t, conn, `
		SELECT format('INSERT INTO %I (%s) SELECT %s FROM generate_series(1, $1::bigint) n ON CONFLICT DO NOTHING', table_name,
			string_agg(quote_ident(column_name), ', ' ORDER BY ordinal_position),
			string_agg(CASE
				WHEN column_name = 'environment' THEN '''production'''
				WHEN column_name = 'taxpayer_id' THEN '''taxpayer'''
				WHEN data_type = 'boolean' THEN 'false'
				WHEN data_type = 'bytea' THEN 'sha256(n::text::bytea)'
				ELSE 'n' END || '::' || data_type, ', ' ORDER BY ordinal_position))
		FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
		WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND is_generated = 'NEVER'
		GROUP BY table_name`) {
		if _, err := conn.ExecContext(t.Context(), fill, rows); err != nil {
			t.Fatalf("%s: %v", fill, err)
		}
	}
}

// firstColumn returns the first column of the result of a query.
func firstColumn(t *testing.T, conn *sql.Conn, query string) (values []string) {
	t.Helper()
	rows, err := conn.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var value string
		if err := rows.Scan(&value); err != nil {
			t.Fatal(err)
		}
		values = append(values, value)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return values
}

type index struct {
	table   string
	unique  bool // in the whole table
	columns []string
}

// allIndexes reads the indexes of all tables.
func allIndexes(t *testing.T, conn *sql.Conn) map[string]index {
	t.Helper()
	indexes := map[string]index{}
	for _, line := range firstColumn(t, conn, `
		SELECT concat_ws(' ', x.indexrelid::regclass, x.indrelid::regclass, (x.indisunique AND x.indpred IS NULL AND x.indexprs IS NULL)::text,
			string_agg(a.attname, ' ' ORDER BY a.attnum))
		FROM pg_index x JOIN pg_attribute a ON a.attrelid = x.indexrelid
		GROUP BY x.indexrelid, x.indrelid, x.indisunique, x.indpred, x.indexprs`) {
		words := strings.Fields(line)
		indexes[words[0]] = index{words[1], words[2] == "true", words[3:]}
	}
	return indexes
}

func containsAll(all, some []string) bool {
	return !slices.ContainsFunc(some, func(name string) bool { return !slices.Contains(all, name) })
}

// A planStep is a step of a plan, as PostgreSQL shows it.
type planStep struct {
	Table     string     `json:"Relation Name"`
	Index     string     `json:"Index Name"`
	Condition string     `json:"Index Cond"`
	Filter    string     `json:"Filter"`
	Plans     []planStep `json:"Plans"`
}

// all returns the step and all steps below it.
func (s planStep) all() []planStep {
	steps := []planStep{s}
	for _, p := range s.Plans {
		steps = append(steps, p.all()...)
	}
	return steps
}

// comparedIn returns the columns that must have one value in a row that meets the conditions.
func comparedIn(conditions string) (columns []string) {
	if strings.Contains(conditions, " OR ") {
		return nil
	}
	for _, m := range regexp.MustCompile(`\((\w+) = [^A]`).FindAllStringSubmatch(conditions, -1) {
		columns = append(columns, m[1])
	}
	return columns
}

// keys returns the unique keys that the step names.
func (s planStep) keys(indexes map[string]index) (named [][]string) {
	compared := comparedIn(s.Condition + " " + s.Filter)
	for _, x := range indexes {
		if x.table == s.Table && x.unique && containsAll(compared, x.columns) {
			named = append(named, x.columns)
		}
	}
	return named
}

// searched returns the first columns of the index that the step looks for. It reads all rows
// that have their values.
func (s planStep) searched(indexes map[string]index) []string {
	columns, compared := indexes[s.Index].columns, comparedIn(s.Condition)
	for i, column := range columns {
		if !slices.Contains(compared, column) {
			return columns[:i]
		}
	}
	return columns
}

// planOf returns the plan of a prepared statement, for any values of its arguments.
func planOf(t *testing.T, query func(ctx context.Context, query string, args ...any) *sql.Row, name string) planStep {
	t.Helper()
	var arguments int
	if err := query(t.Context(), `
		SELECT coalesce(array_length(parameter_types, 1), 0) FROM pg_prepared_statements WHERE name = $1`, name).Scan(&arguments); err != nil {
		t.Fatal(err)
	}
	execution := name
	if arguments > 0 {
		execution += "(" + strings.Repeat(", NULL", arguments)[2:] + ")"
	}
	var encoded string
	if err := query(t.Context(), `EXPLAIN (FORMAT JSON) EXECUTE `+execution).Scan(&encoded); err != nil {
		t.Fatal(err)
	}
	var plans []struct{ Plan planStep }
	if err := json.Unmarshal([]byte(encoded), &plans); err != nil {
		t.Fatal(err)
	}
	return plans[0].Plan
}
