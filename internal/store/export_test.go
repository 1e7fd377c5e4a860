package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/database"
)

// Exec runs any statement in a transaction.
func (tx *Tx) Exec(ctx context.Context, query string, args ...any) error {
	_, err := tx.q.ExecContext(ctx, query, args...)
	return tx.d.wrap("exec", err)
}

// Query runs any query outside of a transaction.
func (s *Store) Query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return s.q.QueryContext(ctx, query, args...)
}

// QueryRow runs any query of one row outside of a transaction.
func (s *Store) QueryRow(ctx context.Context, query string, args ...any) *sql.Row {
	return s.q.QueryRowContext(ctx, query, args...)
}

// SuspendedFrom is the first run_at of suspended jobs.
const SuspendedFrom = suspendedFrom

// How many rows one transaction changes at most.
const (
	PurgeBatch = purgeBatch
	CloseBatch = closeBatch
)

// Explainer shows how the engine runs the statements of a transaction. It prepares
// each statement once, as the service does: later runs have the plan of the first.
type Explainer struct {
	database.Querier
	postgres bool
	prepared map[string]string
	Blocks   int      // blocks that PostgreSQL read to find rows
	Plans    []string // a plan for each statement
}

// TxOn runs the statements of a transaction on a connection of the test, which begins
// and ends the transaction itself.
func TxOn(conn *sql.Conn, engine string) *Tx {
	d := &database.Dialect{Name: engine}
	if engine == "postgres" {
		d.SkipLocked = "FOR UPDATE SKIP LOCKED"
	}
	return &Tx{reader{q: conn, d: newDialect(d)}, time.Now}
}

// Explain makes the transaction explain each query before it runs it.
func (tx *Tx) Explain() *Explainer {
	e := &Explainer{Querier: tx.q, postgres: tx.d.Name == "postgres", prepared: map[string]string{}}
	tx.q = e
	return e
}

// Reset forgets the plans so far.
func (e *Explainer) Reset() { e.Blocks, e.Plans = 0, nil }

func (e *Explainer) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := e.explain(ctx, query, args); err != nil {
		return nil, fmt.Errorf("explain: %w", err)
	}
	return e.Querier.QueryContext(ctx, query, args...)
}

func (e *Explainer) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if err := e.explain(ctx, query, args); err != nil {
		panic(err) // a row cannot carry the error
	}
	return e.Querier.QueryRowContext(ctx, query, args...)
}

func (e *Explainer) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if command, _, _ := strings.Cut(strings.TrimSpace(query), " "); command == "INSERT" || command == "UPDATE" || command == "DELETE" {
		if err := e.explain(ctx, query, args); err != nil {
			return nil, fmt.Errorf("explain: %w", err)
		}
	}
	return e.Querier.ExecContext(ctx, query, args...)
}

func (e *Explainer) explain(ctx context.Context, query string, args []any) error {
	if !e.postgres {
		return e.explainSQLite(ctx, query, args)
	}
	name, known := e.prepared[query]
	if !known {
		name = fmt.Sprintf("explained_%d", len(e.prepared))
		e.prepared[query] = name
		if _, err := e.Querier.ExecContext(ctx, `PREPARE `+name+` AS `+query); err != nil {
			return err
		}
	}
	values := make([]string, len(args))
	for i, arg := range args {
		values[i] = "'" + strings.ReplaceAll(fmt.Sprint(arg), "'", "''") + "'"
	}
	if _, err := e.Querier.ExecContext(ctx, `SAVEPOINT explained`); err != nil {
		return err
	}
	var text string
	err := e.Querier.QueryRowContext(ctx, `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE `+name+` (`+strings.Join(values, ", ")+`)`).Scan(&text)
	if err != nil {
		return err
	}
	var plans []struct{ Plan explainedPlan }
	if err := json.Unmarshal([]byte(text), &plans); err != nil {
		return err
	}
	e.Blocks += plans[0].Plan.blocks()
	e.Plans = append(e.Plans, text)
	_, err = e.Querier.ExecContext(ctx, `ROLLBACK TO explained`)
	return err
}

// explainedPlan is a plan in the words of PostgreSQL.
type explainedPlan struct {
	Node  string `json:"Node Type"`
	Hit   int    `json:"Shared Hit Blocks"`
	Read  int    `json:"Shared Read Blocks"`
	Plans []explainedPlan
}

// blocks returns how many blocks the plan reads to find its rows. What it reads to
// change them is left out: that depends on how full their pages are at the moment.
func (p explainedPlan) blocks() int {
	if p.Node == "ModifyTable" && len(p.Plans) > 0 {
		return p.Plans[0].blocks()
	}
	return p.Hit + p.Read
}

func (e *Explainer) explainSQLite(ctx context.Context, query string, args []any) error {
	rows, err := e.Querier.QueryContext(ctx, `EXPLAIN QUERY PLAN `+query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	var plan []string
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			return err
		}
		plan = append(plan, detail)
	}
	e.Plans = append(e.Plans, strings.Join(plan, "\n"))
	return rows.Err()
}

// TakeNumbers takes numbers of a range without documents. The error is ErrNumbersTaken when
// the range does not give them.
func (tx *Tx) TakeNumbers(ctx context.Context, n NumberRange, count int64) error {
	return tx.writeOne(ctx, "take numbers", ErrNumbersTaken, takeNumbers(n, count))
}

// NumberEvents gives events of a taxpayer a position in its feed.
func (tx *Tx) NumberEvents(ctx context.Context, scope Scope) error {
	return tx.numberEvents(ctx, scope, 0)
}
