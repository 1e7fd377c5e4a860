package storetest

import (
	"database/sql"
	"sync"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/database"
)

// TerminateAll ends the connections that the service has to a database, and returns when
// they have ended.
func TerminateAll(t *testing.T, db *sql.DB) {
	t.Helper()
	var began string
	if err := db.QueryRowContext(t.Context(), `SELECT clock_timestamp()::text`).Scan(&began); err != nil {
		t.Fatal(err)
	}
	for left := 1; left > 0; {
		if err := db.QueryRowContext(t.Context(), `
			SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name = 'fiscalhub' AND backend_start <= $1::timestamptz`, began).Scan(&left); err != nil {
			t.Fatal(err)
		}
	}
}

// Warm opens as many connections as the service uses, and returns them to the pool.
func Warm(t *testing.T, reader database.Querier) {
	t.Helper()
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			var one string
			if err := reader.QueryRowContext(t.Context(), `SELECT 'x' FROM pg_sleep(0.1)`).Scan(&one); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
