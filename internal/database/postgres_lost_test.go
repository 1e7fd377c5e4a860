package database_test

import (
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fiscalhub/fiscalhub/internal/database"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// terminateAll ends the connections that the service has to a database, and returns when
// they have ended.
func terminateAll(t *testing.T, db *sql.DB) {
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

// warm opens as many connections as the service uses, and returns them to the pool.
func warm(t *testing.T, s *database.DB) {
	t.Helper()
	together(16, func(int) {
		var one string
		if err := s.Reader().QueryRowContext(t.Context(), `SELECT 'x' FROM pg_sleep(0.1)`).Scan(&one); err != nil {
			t.Error(err)
		}
	})
}

// The connection of a transaction dies before its commit. The transaction runs again.
func TestATransactionThatLosesItsConnectionRunsAgain(t *testing.T) {
	t.Parallel()
	address := storetest.Postgres(t).Empty(t)
	s, db := open(t, address), admin(t, address)
	for name, after := range map[string]func(database.Querier) error{
		"a statement fails":       func(q database.Querier) error { return execute(t.Context(), q, `UPDATE items SET id = 'x'`) },
		"only the commit is left": func(database.Querier) error { return nil },
	} {
		runs := 0
		err := s.Update(t.Context(), func(q database.Querier) error {
			runs++
			if err := add(t.Context(), q); err != nil {
				return err
			}
			if runs == 1 {
				warm(t, s)
				terminateAll(t, db)
			}
			return after(q)
		})
		if name == "only the commit is left" && errors.Is(err, database.ErrOutcomeUnknown) {
			continue // the commit was sent, and its answer is lost
		}
		if err != nil || runs != 2 {
			t.Errorf("%s: %v after %d runs", name, err, runs)
		}
		if n := countItems(t, s); n == 0 {
			t.Errorf("%s: no item is stored", name)
		}
	}
}

// The server says why it ended a session. Only then another connection may work; a failure
// of the statement itself would come again.
func TestASessionThatTheServerEndedIsLost(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]bool{
		"57P01": true, "57P02": true, "08006": true,
		"57P05": true, // it was idle for too long
		"57014": false, "53300": false, "40001": false, "23505": false, "55P03": false,
	} {
		if got := database.PostgresLost(fmt.Errorf("x: %w", &pgconn.PgError{Code: code})); got != want {
			t.Errorf("%s: %t", code, got)
		}
	}
}
