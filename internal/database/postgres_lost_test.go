package database_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fiscalhub/fiscalhub/internal/database"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

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
				storetest.Warm(t, s.Reader())
				storetest.TerminateAll(t, db)
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
