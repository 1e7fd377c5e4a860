package store_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// schema is the part of the schema that must be the same on all engines, as sorted lines.
type schema struct {
	Columns []string // table.column type nullability
	Indexes []string // table (columns) unique or not
	Foreign []string // table.column -> table.column
}

// lines returns the sorted rows of a query with one column.
func lines(t *testing.T, s *store.Store, query string) []string {
	t.Helper()
	rows, err := s.Query(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var all []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		all = append(all, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

func sqliteSchema(t *testing.T) schema {
	t.Helper()
	s := storetest.Open(t, storetest.Address(t, "sqlite"), time.Now)
	const tables = `FROM pragma_table_list t`
	const own = ` WHERE t.schema = 'main' AND t.type = 'table' AND t.name NOT LIKE 'sqlite_%'`
	columns := lines(t, s, `SELECT t.name || '.' || c.name || ' ' || c.type || CASE c."notnull" WHEN 1 THEN ' not null' ELSE ' null' END `+
		tables+` JOIN pragma_table_xinfo(t.name) c`+own) // with generated columns
	for i := range columns {
		columns[i] = strings.NewReplacer(" INTEGER", " BIGINT", " BLOB", " BYTEA").Replace(columns[i])
	}
	return schema{
		Columns: columns,
		Indexes: lines(t, s, `SELECT t.name || ' (' ||
			(SELECT group_concat(name, ', ') FROM (SELECT name FROM pragma_index_info(i.name) ORDER BY seqno)) ||
			CASE i."unique" WHEN 1 THEN ') unique' ELSE ')' END `+tables+` JOIN pragma_index_list(t.name) i`+own),
		Foreign: lines(t, s, `SELECT t.name || '.' || f."from" || ' -> ' || f."table" || '.' || f."to" `+
			tables+` JOIN pragma_foreign_key_list(t.name) f`+own),
	}
}

func postgresSchema(t *testing.T) schema {
	t.Helper()
	s := storetest.Open(t, storetest.Address(t, "postgres"), time.Now)
	return schema{
		Columns: lines(t, s, `SELECT table_name || '.' || column_name || ' ' || upper(data_type) ||
			CASE is_nullable WHEN 'NO' THEN ' not null' ELSE ' null' END
			FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
			WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`),
		Indexes: lines(t, s, `SELECT c.relname || ' (' ||
			(SELECT string_agg(a.attname, ', ' ORDER BY k.n) FROM unnest(i.indkey) WITH ORDINALITY k(attnum, n)
				JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum) ||
			CASE WHEN i.indisunique THEN ') unique' ELSE ')' END
			FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'public'`),
		Foreign: lines(t, s, `SELECT c.relname || '.' || a.attname || ' -> ' || fc.relname || '.' || fa.attname
			FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_class fc ON fc.oid = k.confrelid
			JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.conkey[1]
			JOIN pg_attribute fa ON fa.attrelid = fc.oid AND fa.attnum = k.confkey[1]
			WHERE k.contype = 'f'`),
	}
}

// Each statement runs on both engines, so both must have the same tables.
func TestTheEnginesHaveTheSameTables(t *testing.T) {
	t.Parallel()
	sqlite, postgres := sqliteSchema(t), postgresSchema(t)
	if len(sqlite.Columns) < 50 || len(sqlite.Indexes) < 10 || len(sqlite.Foreign) < 1 {
		t.Errorf("too few columns, indexes or foreign keys were read: %+v", sqlite)
	}
	if diff := cmp.Diff(sqlite, postgres); diff != "" {
		t.Errorf("-sqlite +postgres:\n%s", diff)
	}
}

// Reports read the tables under their earlier names too. On PostgreSQL, nodes of an earlier
// version write through them during an upgrade.
func TestEarlierNamesOfTables(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		for _, query := range []string{
			`SELECT sequence FROM invoices`, `SELECT sequence_id FROM issued`, `SELECT sequence FROM notices`,
			`SELECT notice_id, sequence FROM deliveries`, `SELECT notice_id FROM delivery_attempts`, `SELECT seen_number FROM sequences`,
		} {
			update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.Exec(ctx, query+` WHERE 1 = 0`) })
		}
		if s.Engine() == "postgres" {
			update(t, s, func(ctx context.Context, tx *store.Tx) error {
				return tx.Exec(ctx, `
					INSERT INTO notices (environment, taxpayer_id, id, kind, document_id, sequence, at, body)
					VALUES ('production', 't', 'e', 'k', 'd', 7, 1, '') ON CONFLICT (environment, taxpayer_id, id) DO NOTHING`)
			})
			var revision int64
			if err := s.QueryRow(t.Context(), `SELECT revision FROM events WHERE id = 'e'`).Scan(&revision); err != nil || revision != 7 {
				t.Errorf("an event of an earlier program has the revision %d, %v", revision, err)
			}
		}
	})
}
