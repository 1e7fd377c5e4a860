package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// fill adds the waiting jobs from first to last. They become due one microsecond after
// the other and belong to the given number of taxpayers in turn.
func fill(ctx context.Context, tx *store.Tx, first, last, taxpayers int, stage string, due time.Time) error {
	return tx.Exec(ctx, `
		WITH RECURSIVE n (i) AS (SELECT cast($1 AS bigint) UNION ALL SELECT i + 1 FROM n WHERE i < $2)
		INSERT INTO jobs (document_id, environment, taxpayer_id, plan, stage, attempt, run_at, lease, lease_until, last_error, created_at)
		SELECT 'd' || cast(10000000 + i AS text), 'sandbox', 't' || cast(1000 + i % $3 AS text), 'plan', $4, 0, $5 + i, '', 0, '', $5 FROM n`,
		first, last, taxpayers, stage, due.UnixMicro())
}

// claimCase is a claim on a backlog that must not cost more when the backlog grows.
type claimCase struct {
	name      string
	taxpayers int       // how many have jobs
	except    []string  // taxpayers that have their share
	at        time.Time // when the claim happens
	want      int       // how many jobs the claim takes
	front     *store.Front
}

// request returns the claim.
func (c claimCase) request() store.Claim {
	claim := store.Claim{Queue: store.QueueMain, Lease: store.NewID(), Now: c.at, Until: c.at.Add(time.Minute), Limit: 8, Suspended: 8, Front: c.front}
	copy(claim.Except[:], c.except)
	return claim
}

// claimCases are claims on a backlog that became due at noon. The job of one more
// taxpayer becomes due a minute later.
func claimCases() []claimCase {
	soon, later := noon.Add(time.Second), noon.Add(time.Hour)
	four := []string{"t1000", "t1001", "t1002", "t1003"}
	return []claimCase{
		{"before anything is due", 1, nil, noon.Add(-time.Hour), 0, nil},
		{"one taxpayer", 1, nil, soon, 8, nil},
		{"one taxpayer that has its share", 1, four[:1], soon, 0, nil},
		{"one taxpayer that has its share, and another waits", 1, four[:1], later, 1, nil},
		{"many taxpayers", 40, nil, soon, 8, nil},
		{"many taxpayers, and some have their share", 40, four, later, 8, nil},
		{"many taxpayers before anything is due", 40, four, noon.Add(-time.Hour), 0, nil},
	}
}

// claim claims jobs and looks for the next one.
func (c claimCase) claim(ctx context.Context, t *testing.T, tx *store.Tx) {
	t.Helper()
	claim := c.request()
	due, err := tx.DueJobs(ctx, fiscal.Sandbox, claim)
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := tx.Claim(ctx, fiscal.Sandbox, claim, due)
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range jobs {
		if slices.Contains(c.except, j.TaxpayerID) {
			t.Errorf("claimed a job of %s, which has its share", j.TaxpayerID)
		}
	}
	if len(jobs) != c.want {
		t.Errorf("claimed %d jobs, want %d", len(jobs), c.want)
	}
	if _, err = tx.NextJobAfter(ctx, fiscal.Sandbox, claim); err != nil && !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
}

// connection returns one connection to the database of a store, with the settings of
// the service that determine plans.
func connection(t *testing.T, address string) *sql.Conn {
	t.Helper()
	s := storetest.Open(t, address, time.Now)
	conn, err := storetest.OpenSQL(t, address).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // before the database
	if s.Engine() == "sqlite" {
		return conn
	}
	for _, name := range []string{"plan_cache_mode", "enable_seqscan", "jit"} {
		var value string
		if err := s.QueryRow(t.Context(), `SELECT current_setting($1)`, name).Scan(&value); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.ExecContext(t.Context(), `SET `+name+` = `+value); err != nil {
			t.Fatal(err)
		}
	}
	return conn
}

// measure runs the claims of the cases and returns how many blocks each one reads.
func measure(t *testing.T, tx *store.Tx, explained *store.Explainer, cases []claimCase) (blocks map[string]int) {
	t.Helper()
	blocks = map[string]int{}
	for _, c := range cases {
		execute(t, tx, `BEGIN`)
		explained.Reset()
		c.claim(t.Context(), t, tx)
		blocks[c.name] = explained.Blocks
		execute(t, tx, `ROLLBACK`)
	}
	return blocks
}

func execute(t *testing.T, tx *store.Tx, text string, args ...any) {
	t.Helper()
	if err := tx.Exec(t.Context(), text, args...); err != nil {
		t.Fatal(err)
	}
}

// On PostgreSQL a claim reads as many blocks with many waiting jobs as with 1,000, but
// for the greater depth of the indexes. This holds for due jobs and for suspended ones,
// for plans that the server made while there were few jobs, and for new plans. `make
// soak` runs it for a million jobs.
func TestAPostgresClaimDoesNotReadTheBacklog(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]time.Time{"due": noon, "suspended": time.UnixMicro(store.SuspendedFrom + noon.UnixMicro())} {
		for _, taxpayers := range []int{1, 40} {
			t.Run(fmt.Sprint(name, ", taxpayers ", taxpayers), func(t *testing.T) {
				t.Parallel()
				cases := slices.DeleteFunc(claimCases(), func(c claimCase) bool {
					return c.taxpayers != taxpayers || name == "suspended" && c.at.Before(noon) // nothing waits for its time
				})
				claimFromBacklog(t, cases, taxpayers, first)
			})
		}
	}
}

// claimFromBacklog compares claims with few and with many waiting jobs. The first job
// is due at the given time.
func claimFromBacklog(t *testing.T, cases []claimCase, taxpayers int, first time.Time) {
	t.Helper()
	const few = 1_000
	tx := store.TxOn(connection(t, storetest.Address(t, "postgres")), "postgres")
	execute(t, tx, `ALTER TABLE jobs SET (autovacuum_enabled = off)`) // the server keeps the plans
	execute(t, tx, addOther, noon.Add(time.Minute).UnixMicro())
	explained := tx.Explain()
	grow := func(from, to int) {
		t.Helper()
		if err := fill(t.Context(), tx, from, to, taxpayers, "first", first); err != nil {
			t.Fatal(err)
		}
	}
	grow(1, 100)
	measure(t, tx, explained, cases) // makes the plans
	grow(101, few)
	old := measure(t, tx, explained, cases)
	grow(few+1, sizeOf(t, "BACKLOG_JOBS", 10_000))
	compare(t, "old plans", old, measure(t, tx, explained, cases))
	execute(t, tx, `ANALYZE jobs`)
	compare(t, "new plans", old, measure(t, tx, explained, cases))
}

// addOther adds a job of another taxpayer.
const addOther = `
	INSERT INTO jobs (document_id, environment, taxpayer_id, plan, stage, attempt, run_at, lease, lease_until, last_error, created_at)
	VALUES ('other', 'sandbox', 'other', 'plan', 'first', 0, $1, '', 0, '', 0)`

func compare(t *testing.T, plans string, few, many map[string]int) {
	t.Helper()
	t.Logf("%s: %v blocks with few jobs, %v with many", plans, few, many)
	for name := range few {
		if many[name] >= 2*few[name] {
			t.Errorf("%s, %s: a claim reads %d blocks with few jobs, %d with many", name, plans, few[name], many[name])
		}
	}
}

// On SQLite every statement of a claim searches an index that has the order of the
// result. Only the few jobs that are found by their ids are sorted.
func TestASQLiteClaimDoesNotReadTheBacklog(t *testing.T) {
	t.Parallel()
	for _, taxpayers := range []int{1, 40} {
		tx := store.TxOn(connection(t, storetest.Address(t, "sqlite")), "sqlite")
		execute(t, tx, addOther, noon.Add(time.Minute).UnixMicro())
		if err := fill(t.Context(), tx, 1, 500, taxpayers, "first", noon); err != nil {
			t.Fatal(err)
		}
		explained := tx.Explain()
		for _, c := range claimCases() {
			if c.taxpayers != taxpayers {
				continue
			}
			explained.Reset()
			execute(t, tx, `BEGIN`)
			c.claim(t.Context(), t, tx)
			execute(t, tx, `ROLLBACK`)
			if len(explained.Plans) < 2 {
				t.Errorf("%s: %d statements were explained", c.name, len(explained.Plans))
			}
			for _, plan := range explained.Plans {
				byID := strings.Contains(plan, "(document_id=?)")
				if strings.Contains(plan, "SCAN jobs") || (strings.Contains(plan, "TEMP B-TREE") && !byID) {
					t.Errorf("%s: the plan reads or sorts the backlog:\n%s", c.name, plan)
				}
			}
		}
	}
}

func TestTheQueueFollowsFromTheStage(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			for i, stage := range []string{"issue", "submit", "poll", "reconcile", "deliver", "delivered", ""} {
				if err := fill(ctx, tx, i, i, 1, stage, noon); err != nil {
					return err
				}
			}
			return nil
		})
		for _, line := range lines(t, s, `SELECT stage || ' ' || queue FROM jobs`) {
			stage, queue, _ := strings.Cut(line, " ")
			if string(store.QueueOf(stage)) != queue {
				t.Errorf("stage %q: the table has the queue %q, QueueOf returns %q", stage, queue, store.QueueOf(stage))
			}
		}
	})
}

func TestAClaimTakesJobsOfItsQueue(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(fill(ctx, tx, 1, 100, 1, "deliver", noon.Add(-time.Hour)), fill(ctx, tx, 201, 202, 1, "issue", noon))
		})
		later := noon.Add(time.Second)
		for queue, want := range map[store.Queue]time.Time{
			store.QueueMain: noon.Add(201 * time.Microsecond), store.QueueDeliver: noon.Add(time.Microsecond - time.Hour),
			"": noon.Add(time.Microsecond - time.Hour),
		} {
			queues := []store.Queue{queue}
			if queue == "" {
				queues = nil
			}
			if next, err := s.NextJob(t.Context(), fiscal.Sandbox, later, queues...); err != nil || !next.Equal(want) {
				t.Errorf("the next job of queue %q is due at %s, %v; want %s", queue, next, err, want)
			}
		}
		taken := func(queue store.Queue, limit int) (stages string) {
			update(t, s, func(ctx context.Context, tx *store.Tx) error {
				jobs, err := take(ctx, tx, store.Claim{Queue: queue, Lease: store.NewID(), Now: later, Until: later.Add(time.Minute), Limit: limit})
				for _, j := range jobs {
					stages += " " + j.Stage
				}
				return err
			})
			return stages
		}
		if got := taken(store.QueueMain, 10); got != " issue issue" {
			t.Errorf("the main queue has%s", got)
		}
		if got := taken(store.QueueDeliver, 2); got != " deliver deliver" {
			t.Errorf("the queue of deliveries has%s", got)
		}
		if got := taken("", 1); got != " deliver" {
			t.Errorf("all queues have%s", got)
		}
	})
}

// A taxpayer with a long backlog has its share. The others get equal shares, whatever
// the order of their ids.
func TestAClaimDividesTheLimitBetweenTheOthers(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		busy := addScope(t, s)
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return fill(ctx, tx, 1, 500, 1, "first", noon.Add(-time.Hour))
		})
		var others []store.Scope
		for i := range 3 {
			scope := addScope(t, s)
			others = append(others, scope)
			for n := range 5 {
				addJob(t, s, scope, fmt.Sprint(i, "-", n), noon.Add(time.Duration(-i)*time.Minute))
			}
		}
		addJob(t, s, busy, "future", noon.Add(time.Hour))
		got := map[string]int{}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			c := store.Claim{Lease: "l", Now: noon, Until: noon.Add(time.Minute), Limit: 6, Except: [4]string{"t1000"}}
			jobs, err := take(ctx, tx, c)
			for _, j := range jobs {
				got[j.TaxpayerID]++
			}
			return err
		})
		for _, scope := range others {
			if got[scope.TaxpayerID] != 2 {
				t.Errorf("the other taxpayers got %v, want 2 jobs for each", got)
			}
		}
	})
}
