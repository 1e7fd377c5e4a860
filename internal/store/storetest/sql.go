package storetest

import (
	"database/sql"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver of PostgreSQL
	_ "modernc.org/sqlite"             // the driver of SQLite
)

// OpenSQL opens the database of a store with database/sql as a superuser, so that a test
// can read its tables or damage them.
func OpenSQL(t testing.TB, address string) *sql.DB {
	t.Helper()
	driver, source := "pgx", As(address, "postgres")
	if path, ok := strings.CutPrefix(address, "sqlite:"); ok {
		driver, source = "sqlite", "file:"+path+"?_pragma=busy_timeout(5000)"
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() }) // an error of Close does not matter to the test
	return db
}
