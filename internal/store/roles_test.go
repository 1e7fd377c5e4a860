package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// as opens a connection with a role.
func as(t *testing.T, address, role string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", storetest.As(address, role))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() }) // an error of Close does not matter to the test
	return db
}

// refusal returns the code of the server with which it refuses a statement. The statement
// has no effect in any case.
func refusal(t *testing.T, db *sql.DB, statement string) string {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	var refused *pgconn.PgError
	if _, err := tx.ExecContext(t.Context(), statement); err != nil && !errors.As(err, &refused) {
		t.Fatal(err)
	}
	if refused == nil {
		return "allowed"
	}
	return refused.Code
}

// column reads one column of text.
func column(t *testing.T, db *sql.DB, query string) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var all []string
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		all = append(all, text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func tableNames(t *testing.T, db *sql.DB) []string {
	t.Helper()
	return column(t, db, `SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1`)
}

const denied = "42501" // insufficient_privilege

func TestTheServiceCannotChangeTables(t *testing.T) {
	t.Parallel()
	address := storetest.Address(t, "postgres")
	service := as(t, address, storetest.Service)
	statements := []string{
		`CREATE TABLE t (x TEXT)`, `CREATE SCHEMA s`, `CREATE FUNCTION f() RETURNS INT LANGUAGE sql AS 'SELECT 1'`,
		`CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'`,
		`DROP FUNCTION refuse_change() CASCADE`, `SET ROLE fiscalhub_migrator`, `SET session_replication_role = replica`,
		`GRANT ALL ON invoices TO fiscalhub_reader`,
	}
	for _, table := range tableNames(t, service) {
		statements = append(statements, `ALTER TABLE `+table+` ADD COLUMN extra TEXT`, `DROP TABLE `+table, `TRUNCATE `+table+` CASCADE`,
			`CREATE INDEX ON `+table+` ((1))`, `ALTER TABLE `+table+` DISABLE TRIGGER ALL`)
	}
	if len(statements) < 150 {
		t.Errorf("only %d statements", len(statements))
	}
	for _, statement := range statements {
		if code := refusal(t, service, statement); code != denied && !strings.HasPrefix(statement, "GRANT") {
			t.Errorf("%s: %s, want %s", statement, code, denied)
		}
	}
	if granted := column(t, service, `SELECT grantee::text FROM information_schema.role_table_grants
		WHERE table_schema = 'public' AND table_name = 'invoices' AND grantee = 'fiscalhub_reader' AND privilege_type <> 'SELECT'`); len(granted) != 0 {
		t.Error("the service has given rights to another role")
	}
}

// The rows of append-only tables are protected by rights, not only by triggers.
func TestTheServiceCannotChangeWhatIsAppendOnly(t *testing.T) {
	t.Parallel()
	address := storetest.Address(t, "postgres")
	service := as(t, address, storetest.Service)
	fixed := map[string][]string{ // table: rights that the service does not have
		"history": {"UPDATE", "DELETE"}, "idempotency": {"UPDATE", "DELETE"}, "evidence": {"UPDATE", "DELETE"}, "pages": {"UPDATE", "DELETE"}, "receipts": {"UPDATE", "DELETE"},
		"burned": {"UPDATE", "DELETE"}, "audit_entries": {"UPDATE", "DELETE"}, "audit_checkpoints": {"UPDATE", "DELETE"},
		"attempts": {"DELETE"}, "issued_documents": {"DELETE"}, "events": {"DELETE"},
		"schema_versions": {"INSERT", "UPDATE", "DELETE"}, "schema_migrations": {"INSERT", "UPDATE", "DELETE"}, "database_identity": {"INSERT", "UPDATE", "DELETE"},
	}
	for _, table := range tableNames(t, service) {
		rights := column(t, service, fmt.Sprintf(`SELECT privilege_type::text FROM information_schema.role_table_grants
			WHERE table_schema = 'public' AND table_name = '%s' AND grantee = '%s'`, table, storetest.Service))
		for _, right := range []string{"SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"} {
			row := slices.Contains([]string{"SELECT", "INSERT", "UPDATE", "DELETE"}, right)
			if want := row && !slices.Contains(fixed[table], right); slices.Contains(rights, right) != want {
				t.Errorf("%s on %s: %v, want %v", right, table, !want, want)
			}
		}
	}
	for _, statement := range []string{`UPDATE audit_entries SET actor = 'x'`, `DELETE FROM audit_entries`, `UPDATE history SET kind = 'x'`, `DELETE FROM evidence`, `DELETE FROM issued`, `DELETE FROM notices`} {
		if code := refusal(t, service, statement); code != denied {
			t.Errorf("%s: %s, want %s", statement, code, denied)
		}
	}
}

func TestTheReaderReadsAndCannotWrite(t *testing.T) {
	t.Parallel()
	address := storetest.Address(t, "postgres")
	addScope(t, storetest.Open(t, address, time.Now))
	reader := as(t, address, storetest.Reader)
	if names := column(t, reader, `SELECT legal_name FROM taxpayers`); len(names) != 1 {
		t.Errorf("the reader sees %d taxpayers, want 1", len(names))
	}
	secret := map[string]bool{"secrets": true, "sealed_answers": true}
	for _, table := range tableNames(t, reader) {
		for _, statement := range []string{`DELETE FROM ` + table, `TRUNCATE ` + table, `INSERT INTO ` + table + ` DEFAULT VALUES`, `DROP TABLE ` + table} {
			// The server may refuse the statement because the role reads only, before it asks for rights.
			if code := refusal(t, reader, statement); code != denied && code != "25006" {
				t.Errorf("%s: %s", statement, code)
			}
			if code := refusal(t, reader, `SET TRANSACTION READ WRITE; `+statement); code != denied {
				t.Errorf("%s in a transaction that may write: %s, want %s", statement, code, denied)
			}
		}
		want := "allowed"
		if secret[table] {
			want = denied
		}
		if code := refusal(t, reader, `SELECT count(*) FROM `+table); code != want {
			t.Errorf("count the rows of %s: %s, want %s", table, code, want)
		}
	}
	for _, statement := range []string{
		`SELECT digest FROM credentials`, `SELECT sealed FROM certificates`, `SELECT secret FROM endpoints`, `SELECT old_secret FROM endpoints`,
		`SELECT secret FROM sources`, `SELECT old_secret FROM sources`, `SELECT * FROM secrets`,
		`SELECT password_hash FROM users`, `SELECT sealed FROM users`, `SELECT digest FROM user_sessions`, `SELECT digest FROM user_links`, `SELECT digest FROM recovery_codes`,
	} {
		if code := refusal(t, reader, statement); code != denied {
			t.Errorf("%s: %s, want %s", statement, code, denied)
		}
	}
}

// A database that was used without the roles gets them. The service then sees the state
// of standbys, and a later migration needs no new run of the file.
func TestAnExistingDatabaseGetsTheRoles(t *testing.T) {
	t.Parallel()
	server := storetest.Postgres(t)
	address := server.Empty(t)
	addScope(t, storetest.Open(t, address, time.Now))
	server.CreateRoles(t, address)
	server.CreateRoles(t, address)
	owners := column(t, as(t, address, "postgres"), `
		SELECT DISTINCT tableowner::text FROM pg_tables WHERE schemaname = 'public'
		UNION SELECT proowner::regrole::text FROM pg_proc WHERE pronamespace = 'public'::regnamespace`)
	if !slices.Equal(owners, []string{storetest.Migrator}) {
		t.Errorf("the tables and functions belong to %v", owners)
	}
	s, err := store.Open(t.Context(), storetest.As(address, storetest.Service), store.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler), NoMigrate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	addInvoice(t, s, addScope(t, s), store.NewID())
	if got, err := s.Replication(t.Context()); err != nil || !got.Known {
		t.Errorf("the replication: %+v, %v", got, err)
	}
	if got := column(t, as(t, address, storetest.Service), `SELECT pg_has_role('pg_read_all_stats', 'USAGE')::text`); !slices.Equal(got, []string{"true"}) {
		t.Error("the service cannot see the state of standbys")
	}
	if code := refusal(t, as(t, address, storetest.Service), `CREATE TEMPORARY TABLE t (x TEXT)`); code != denied {
		t.Errorf("the service creates a temporary table: %s", code)
	}

	later := storetest.Open(t, storetest.As(address, storetest.Migrator), time.Now)
	if err := later.Update(t.Context(), func(tx *store.Tx) error {
		return tx.Exec(t.Context(), `CREATE TABLE later (id TEXT NOT NULL PRIMARY KEY); ALTER TABLE documents ADD COLUMN later TEXT`)
	}); err != nil {
		t.Fatal(err)
	}
	update(t, s, func(ctx context.Context, tx *store.Tx) error {
		return tx.Exec(ctx, `INSERT INTO later (id) VALUES ('x')`)
	})
}

// With NoMigrate, Open changes nothing and says which migration is missing.
func TestOpenWithoutMigrating(t *testing.T) {
	t.Parallel()
	options := store.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler), NoMigrate: true}
	eachEmpty(t, func(t *testing.T, empty func() string) {
		address := empty()
		for range 2 {
			if s, err := store.Open(t.Context(), address, options); !errors.Is(err, store.ErrNotMigrated) {
				t.Fatalf("an empty database: %v, %v", s, err)
			}
		}
		made := storetest.Open(t, address, time.Now)
		s, err := store.Open(t.Context(), address, options)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		update(t, made, func(ctx context.Context, tx *store.Tx) error {
			return tx.Exec(ctx, `DELETE FROM schema_migrations WHERE version = $1`, 14)
		})
		_, err = store.Open(t.Context(), address, options)
		if !errors.Is(err, store.ErrNotMigrated) || !strings.Contains(err.Error(), "0014_audit.sql") {
			t.Errorf("a database that misses a migration: %v", err)
		}
	})
}

// A role that may not change tables learns that the database must be migrated first.
func TestARoleThatMayNotMigrateIsTold(t *testing.T) {
	t.Parallel()
	server := storetest.Postgres(t)
	address := server.Empty(t)
	server.CreateRoles(t, address)
	_, err := store.Open(t.Context(), storetest.As(address, storetest.Service), store.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if !errors.Is(err, store.ErrNotMigrated) || errors.Is(err, store.ErrUnavailable) {
		t.Errorf("got %v, want ErrNotMigrated", err)
	}
}
