package store_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// otherPlans are statements that PostgreSQL plans in another way, with or without
// statistics, and why this does no harm.
func otherPlans() map[string]string {
	return map[string]string{
		"Tx.RevokeCertificate":        "a taxpayer has few certificates",
		"Tx.RewrapCertificate":        "a taxpayer has few certificates",
		"Tx.Unpark":                   "a taxpayer has few parked messages",
		"reader.Event":                "a client asks for one event",
		"reader.Parked":               "a taxpayer has few parked messages",
		"reader.ParkedWithDocument":   "there are few parked messages",
		"reader.UnconfirmedResponses": "a document has few unconfirmed responses",
		"reader.VerdictTimes":         "the table has one row for each taxpayer and hour",
	}
}

// PostgreSQL searches an index for as many columns as the statement compares. With fewer
// columns each execution would read more rows as the table grows. This holds with statistics
// and without them.
func TestAPostgresPlanSearchesForAllColumns(t *testing.T) {
	t.Parallel()
	conn := connection(t, storetest.Address(t, "postgres"))
	fillAllTables(t, conn, 2_000)
	exceptions, needed := otherPlans(), map[string]bool{}
	for _, statistics := range []bool{false, true} {
		if statistics {
			if _, err := conn.ExecContext(t.Context(), `ANALYZE`); err != nil {
				t.Fatal(err)
			}
		}
		for _, w := range weakPlans(t, conn) {
			needed[w.function] = true
			if exceptions[w.function] == "" {
				t.Errorf("statistics: %v, %s", statistics, w)
			}
		}
	}
	for name := range exceptions {
		if !needed[name] {
			t.Errorf("%s needs no exception", name)
		}
	}
}

// weakPlan says that a statement is planned with fewer columns than it compares.
type weakPlan struct{ function, problem string }

func (w weakPlan) String() string { return w.function + ": " + w.problem }

// weakPlans plans every statement of the package.
func weakPlans(t *testing.T, conn *sql.Conn) (found []weakPlan) {
	t.Helper()
	indexes := allIndexes(t, conn)
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
			best, searched := step.best(indexes), step.searched(indexes)
			x := indexes[step.Index]
			if one := x.unique && len(searched) == len(x.columns); !one && len(searched) < len(best) {
				found = append(found, weakPlan{s.function, fmt.Sprintf("PostgreSQL searches %s for %v in %q, and not for %v:\n%s",
					step.Table, searched, step.Index, best, s.text)})
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
		WHERE environment = $1 AND taxpayer_id = $2 AND document_id = $3 AND number = $4`).Scan(&none); !errors.Is(err, sql.ErrNoRows) {
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

// A read reads rows. Its result does not matter.
type read func(ctx context.Context, tx *store.Tx) error

// ignore returns the error of a read, but that nothing was found.
func ignore[T any](_ T, err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// reads must not read the rows of other values or times.
func reads() map[string]read {
	scope := store.Scope{Environment: fiscal.Production, TaxpayerID: "taxpayer"}
	part := store.IDSpan{Before: "g", Limit: 25}
	list := func(f store.InvoiceFilter) read {
		f.Limit = part.Limit
		return func(ctx context.Context, tx *store.Tx) error { return ignore(tx.ListInvoices(ctx, scope, f)) }
	}
	within := store.Within{Environment: scope.Environment, All: true}
	return map[string]read{
		"invoices":                   list(store.InvoiceFilter{}),
		"invoices of a status":       list(store.InvoiceFilter{Status: fiscal.Queued}),
		"older invoices of a status": list(store.InvoiceFilter{Status: fiscal.Queued, Before: "7"}),
		"an external id":             list(store.InvoiceFilter{ExternalID: "77", Status: fiscal.Queued}),
		"documents of a taxpayer":    func(ctx context.Context, tx *store.Tx) error { return ignore(tx.InvoicesOf(ctx, scope, "", part)) },
		"documents of a taxpayer with a status": func(ctx context.Context, tx *store.Tx) error {
			return ignore(tx.InvoicesOf(ctx, scope, fiscal.Queued, part))
		},
		"documents with a status": func(ctx context.Context, tx *store.Tx) error {
			return ignore(tx.DocumentsByStatus(ctx, scope.Environment, fiscal.Queued, part))
		},
		"documents with a total": func(ctx context.Context, tx *store.Tx) error {
			return ignore(tx.DocumentsByTotal(ctx, scope.Environment, "none", part))
		},
		"documents of a taxpayer with a total": func(ctx context.Context, tx *store.Tx) error {
			return ignore(tx.DocumentsByTotalOf(ctx, scope, "none", part))
		},
		"documents of a buyer": func(ctx context.Context, tx *store.Tx) error {
			return ignore(tx.DocumentsOfBuyer(ctx, store.Buyer{Scope: scope, ID: "none"}, part))
		},
		"documents with a track id": func(ctx context.Context, tx *store.Tx) error {
			return ignore(tx.DocumentsByTrackID(ctx, scope.Environment, "77"))
		},
		"documents of a request": func(ctx context.Context, tx *store.Tx) error {
			return ignore(tx.DocumentsOfRequest(ctx, scope.Environment, "77"))
		},
		"documents with an id": func(ctx context.Context, tx *store.Tx) error { return ignore(tx.DocumentsByID(ctx, within, "77")) },
		"found documents": func(ctx context.Context, tx *store.Tx) error {
			return ignore(tx.FoundDocuments(ctx, within, []string{"none", "no other"}))
		},
		"a document": func(ctx context.Context, tx *store.Tx) error { return ignore(tx.InvoiceOfDocument(ctx, scope, "none")) },
		"a document under its number": func(ctx context.Context, tx *store.Tx) error {
			return ignore(tx.IssuedUnder(ctx, scope.Environment, "77", "none"))
		},
		"the history of an invoice":  func(ctx context.Context, tx *store.Tx) error { return ignore(tx.History(ctx, scope, "77")) },
		"the evidence of a document": func(ctx context.Context, tx *store.Tx) error { return ignore(tx.EvidenceOf(ctx, scope, "77")) },
		"the deliveries of a document": func(ctx context.Context, tx *store.Tx) error {
			return ignore(tx.DeliveriesOfDocument(ctx, scope, "77"))
		},
		"the attempts of an event": func(ctx context.Context, tx *store.Tx) error { return ignore(tx.AttemptsOfEvent(ctx, scope, "77")) },
		"numbers sent now": func(ctx context.Context, tx *store.Tx) error {
			return ignore(tx.SentSince(ctx, scope.Environment, time.UnixMicro(manyRows-2)))
		},
	}
}

// manyRows are rows of a table in the tests of lists. Then a table has hundreds of blocks.
const manyRows = 5_000

// On PostgreSQL a list reads only the rows that it returns, with statistics and without them:
// a rare status must not take longer than a frequent one.
func TestAPostgresListReadsNoOtherRows(t *testing.T) {
	t.Parallel()
	const most = 60 // blocks: for 25 rows and the depths of the indexes
	conn := connection(t, storetest.Address(t, "postgres"))
	fillAllTables(t, conn, manyRows)
	tx := store.TxOn(conn, "postgres")
	explained := tx.Explain()
	for _, statistics := range []bool{false, true} {
		if statistics {
			execute(t, tx, `ANALYZE`)
		}
		for name, read := range reads() {
			explained.Reset()
			execute(t, tx, `BEGIN`)
			if err := read(t.Context(), tx); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			execute(t, tx, `ROLLBACK`)
			if explained.Blocks > most {
				t.Errorf("statistics: %v, %s: PostgreSQL reads %d blocks: %s", statistics, name, explained.Blocks, explained.Plans)
			}
		}
	}
}

// On SQLite a list searches an index that has the order of the list.
func TestASQLiteListReadsNoOtherRows(t *testing.T) {
	t.Parallel()
	tx := store.TxOn(connection(t, storetest.Address(t, "sqlite")), "sqlite")
	explained := tx.Explain()
	for name, read := range reads() {
		explained.Reset()
		if err := read(t.Context(), tx); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, plan := range explained.Plans {
			// There are few taxpayers, and few rows of one document are sorted.
			ofOne := strings.HasPrefix(name, "the ")
			if strings.Contains(strings.ReplaceAll(plan, "SCAN t ", ""), "SCAN") || strings.Contains(plan, "TEMP B-TREE") && !ofOne {
				t.Errorf("%s: the plan reads or sorts other rows:\n%s", name, plan)
			}
		}
		if name == "invoices of a status" && !strings.Contains(explained.Plans[0], "(status,id)>") {
			t.Errorf("%s: SQLite does not search for the status:\n%s", name, explained.Plans[0])
		}
	}
}

// fillAllTables adds rows to every table. All belong to one taxpayer and have the same status,
// kind and so on; each has other values in the other columns.
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
				WHEN data_type = 'text' AND column_name IN ('status', 'state', 'stage', 'kind', 'plan', 'ecf_type', 'class', 'field') THEN '''same'''
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
	whole   bool // has all rows of the table
	unique  bool
	columns []string
}

// allIndexes reads the indexes of all tables.
func allIndexes(t *testing.T, conn *sql.Conn) map[string]index {
	t.Helper()
	indexes := map[string]index{}
	for _, line := range firstColumn(t, conn, `
		SELECT concat_ws(' ', x.indexrelid::regclass, x.indrelid::regclass, (x.indpred IS NULL AND x.indexprs IS NULL)::text, x.indisunique::text,
			string_agg(a.attname, ' ' ORDER BY a.attnum))
		FROM pg_index x JOIN pg_attribute a ON a.attrelid = x.indexrelid
		GROUP BY x.indexrelid, x.indrelid, x.indpred, x.indexprs, x.indisunique`) {
		words := strings.Fields(line)
		indexes[words[0]] = index{words[1], words[2] == "true", words[3] == "true", words[4:]}
	}
	return indexes
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

// best returns the most columns of an index that the step could look for.
func (s planStep) best(indexes map[string]index) (best []string) {
	compared := comparedIn(s.Condition + " " + s.Filter)
	for _, x := range indexes {
		if n := prefix(x.columns, compared); x.table == s.Table && x.whole && n > len(best) {
			best = x.columns[:n]
		}
	}
	return best
}

// prefix returns how many of the first columns were compared.
func prefix(columns, compared []string) int {
	for i, column := range columns {
		if !slices.Contains(compared, column) {
			return i
		}
	}
	return len(columns)
}

// searched returns the first columns of the index that the step looks for. It reads all rows
// that have their values.
func (s planStep) searched(indexes map[string]index) []string {
	columns := indexes[s.Index].columns
	return columns[:prefix(columns, comparedIn(s.Condition))]
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

// A claim of deliveries reads only the events that it returns, although the server has no
// statistics.
func TestAPostgresClaimReadsNoOtherEvents(t *testing.T) {
	t.Parallel()
	const most = 300 // blocks for 24 events
	address := storetest.Address(t, "postgres")
	s := storetest.Open(t, address, time.Now)
	e := addEndpoint(t, s, sampleEndpoint(addLiveScope(t, s), "*"))
	update(t, s, func(ctx context.Context, tx *store.Tx) error {
		return errors.Join(
			tx.Exec(ctx, `
				INSERT INTO events (environment, taxpayer_id, id, kind, document_id, revision, at, body)
				SELECT $1, $2, 'evt_' || md5(n::text), 'a', md5(n::text), 1, n, repeat('x', 600)::bytea FROM generate_series(1, 6000) n`, string(e.Environment), e.TaxpayerID),
			tx.Exec(ctx, `
				INSERT INTO webhook_deliveries (endpoint_id, event_id, environment, taxpayer_id, kind, document_id, revision, state, attempt, run_at, lease, lease_until, created_at)
				SELECT $1, id, environment, taxpayer_id, kind, document_id, revision, 'pending', 0, at, '', 0, at FROM events`, e.ID))
	})
	read := func() (blocks int64) {
		t.Helper()
		if err := s.QueryRow(t.Context(), `
			SELECT heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit FROM pg_statio_user_tables WHERE relname = 'events'`).Scan(&blocks); err != nil {
			t.Fatal(err)
		}
		return blocks
	}
	sender, err := store.Open(t.Context(), address, store.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	before := read()
	now, later := claimAhead(t, sender, "a", 20)
	if err := sender.Close(); err != nil { // the server counts the blocks of a session when it ends
		t.Fatal(err)
	}
	for range 200 {
		if read() > before {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	time.Sleep(100 * time.Millisecond) // the other sessions of the sender
	if blocks := read() - before; len(now)+len(later) != 24 || blocks == 0 || blocks > most {
		t.Errorf("a claim of %d deliveries reads %d blocks of events, want at most %d", len(now)+len(later), blocks, most)
	}
}
