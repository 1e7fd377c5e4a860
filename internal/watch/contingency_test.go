package watch

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// line is a node's connection to the authority.
type line struct {
	now      func() time.Time
	cut      bool // the node cannot reach the authority
	answered time.Time
	failed   time.Time // the first failure after the last answer
}

// call is what the traffic of the node does.
func (l *line) call() error {
	if !l.cut {
		l.answered, l.failed = l.now(), time.Time{}
		return nil
	}
	if l.failed.IsZero() {
		l.failed = l.now()
	}
	return errors.New("no answer")
}

func (l *line) Down() (time.Time, bool)       { return l.failed, !l.failed.IsZero() }
func (l *line) Failing() (time.Time, bool)    { return l.failed, !l.failed.IsZero() }
func (l *line) LastAnswer() (time.Time, bool) { return l.answered, !l.answered.IsZero() }
func (l *line) Probe(context.Context) error   { return l.call() }

// env is a cluster of nodes on one database.
type env struct {
	t       *testing.T
	clock   *storetest.Clock
	address string
	store   *store.Store
	nodes   []*Watcher
	lines   []*line
}

func newEnv(t *testing.T, address string, nodes int) *env {
	t.Helper()
	e := &env{t: t, clock: storetest.NewClock(), address: address}
	e.store = storetest.Open(t, address, e.clock.Now)
	for range nodes {
		e.start()
	}
	return e
}

// start adds a node that knows nothing yet.
func (e *env) start() {
	e.t.Helper()
	l := &line{now: e.clock.Now}
	w, err := New(Options{
		Store: e.store, Env: fiscal.Production, Authority: l, Now: e.clock.Now,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		e.t.Fatal(err)
	}
	e.nodes, e.lines = append(e.nodes, w), append(e.lines, l)
}

// pass lets time pass in steps of five seconds. Each node calls the authority now and
// then, and checks the outage at every step.
func (e *env) pass(d time.Duration, traffic bool) {
	e.t.Helper()
	for end := e.clock.Now().Add(d); e.clock.Now().Before(end); e.clock.Advance(5 * time.Second) {
		for i, w := range e.nodes {
			if traffic {
				_ = e.lines[i].call()
			}
			if err := w.CheckOutage(e.t.Context(), pipeline.Signals{Wake: func() {}, Notify: func(store.Scope) {}}); err != nil {
				e.t.Fatal(err)
			}
		}
	}
}

// contingencies returns how many there were, and whether one lasts.
func (e *env) contingencies() (count int, active bool) {
	e.t.Helper()
	row := storetest.OpenSQL(e.t, e.address).QueryRowContext(e.t.Context(),
		`SELECT count(*), count(*) - count(ended_at) FROM contingencies`)
	var lasting int
	if err := row.Scan(&count, &lasting); err != nil {
		e.t.Fatal(err)
	}
	return count, lasting > 0
}

func (e *env) want(what string, count int, active bool) {
	e.t.Helper()
	if gotCount, gotActive := e.contingencies(); gotCount != count || gotActive != active {
		e.t.Errorf("%s: %d contingencies, active %t; want %d, %t", what, gotCount, gotActive, count, active)
	}
}

// A node that is cut off alone does not begin a contingency, with traffic on the other
// node and without.
func TestNodeThatIsCutOffBeginsNoContingency(t *testing.T) {
	t.Parallel()
	for name, traffic := range map[string]bool{"with traffic": true, "without traffic": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.EachAddress(t, func(t *testing.T, address string) {
				e := newEnv(t, address, 2)
				e.pass(time.Minute, true)
				e.lines[0].cut = true
				_ = e.lines[0].call()
				e.pass(25*time.Minute, traffic)
				e.want("one node is cut off", 0, false)
			})
		})
	}
}

// A contingency begins once when no node has an answer for ten minutes, survives a
// restart of every node, and ends once with the first answer that a node really gets.
func TestContingencyOfTheCluster(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		e := newEnv(t, address, 2)
		e.pass(time.Minute, true)
		for _, l := range e.lines {
			l.cut = true
		}
		e.pass(9*time.Minute, true)
		e.want("nine minutes", 0, false)
		e.pass(2*time.Minute, true)
		e.want("eleven minutes", 1, true)
		e.pass(12*time.Minute, true)
		e.want("later", 1, true)

		e.nodes, e.lines = nil, nil // every node starts again, and knows nothing
		e.start()
		e.start()
		for _, l := range e.lines {
			l.cut = true
		}
		e.pass(12*time.Minute, false)
		e.want("after a restart, without traffic", 1, true)

		e.lines[1].cut = false // one node reaches the authority again
		e.pass(time.Minute, false)
		e.want("an answer", 1, false)
		e.pass(12*time.Minute, true)
		e.want("one node is still cut off", 1, false)
	})
}

// jobs returns all rows of the queue.
func (e *env) jobs() (rows []string) {
	e.t.Helper()
	all, err := storetest.OpenSQL(e.t, e.address).QueryContext(e.t.Context(),
		`SELECT document_id || ' ' || stage || ' ' || run_at || ' ' || attempt FROM jobs ORDER BY document_id`)
	if err != nil {
		e.t.Fatal(err)
	}
	defer func() { _ = all.Close() }()
	for all.Next() {
		var row string
		if err := all.Scan(&row); err != nil {
			e.t.Fatal(err)
		}
		rows = append(rows, row)
	}
	if err := all.Err(); err != nil {
		e.t.Fatal(err)
	}
	return rows
}

// The end of a contingency changes no job, so that it costs the same however many wait.
// It wakes the workers.
func TestTheEndOfAContingencyChangesNoJob(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		e := newEnv(t, address, 1)
		e.pass(time.Minute, true)
		e.lines[0].cut = true
		e.pass(15*time.Minute, true)
		e.want("during the outage", 1, true)
		_, err := storetest.OpenSQL(t, address).ExecContext(t.Context(), `
			INSERT INTO jobs (document_id, environment, taxpayer_id, plan, stage, attempt, run_at, lease, lease_until, last_error, created_at)
			VALUES ('a', 'production', 't', 'live', 'submit', 7, $1, '', 0, 'no answer', 0), ('b', 'production', 't', 'live', 'poll', 7, $1, '', 0, 'no answer', 0)`,
			e.clock.Now().Add(time.Hour).UnixMicro())
		if err != nil {
			t.Fatal(err)
		}
		before, woken := e.jobs(), 0
		e.lines[0].cut = false
		s := pipeline.Signals{Wake: func() { woken++ }, Notify: func(store.Scope) {}}
		for range 3 {
			e.clock.Advance(5 * time.Second)
			if err := e.nodes[0].CheckOutage(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
		e.want("after the outage", 1, false)
		if diff := cmp.Diff(before, e.jobs()); diff != "" {
			t.Errorf("the end of the contingency changed jobs (-before +after):\n%s", diff)
		}
		if woken != 1 {
			t.Errorf("the workers were woken %d times, want once", woken)
		}
	})
}

// The clock is a day ahead, and is then corrected. Contingencies begin and end as if it had
// been right all the time.
func TestContingencyAfterAClockThatWasAhead(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines() {
		for name, restart := range map[string]bool{"the process goes on": false, "the process is new": true} {
			e := newEnv(t, storetest.Address(t, engine), 1)
			right := e.clock.Now()
			correct := func() {
				e.clock.Set(right.Add(time.Hour))
				if restart {
					cut := e.lines[0].cut
					e.nodes, e.lines = nil, nil
					e.start()
					e.lines[0].cut = cut
				}
			}
			e.clock.Advance(24 * time.Hour)
			e.pass(time.Minute, true)
			e.lines[0].cut = true
			e.pass(5*time.Minute, true)
			correct()
			e.pass(12*time.Minute, true)
			e.want(name+": the authority stays out of reach", 1, true)
			e.lines[0].cut = false
			e.pass(time.Minute, true)
			e.want(name+": it answers", 1, false)

			right = e.clock.Now()
			e.clock.Advance(24 * time.Hour)
			e.lines[0].cut = true
			e.pass(12*time.Minute, true)
			e.want(name+": another one begins", 2, true)
			correct()
			e.lines[0].cut = false
			e.pass(time.Minute, true)
			e.want(name+": it ends", 2, false)
			e.lines[0].cut = true
			e.pass(12*time.Minute, true)
			e.want(name+": a third one begins", 3, true)
			e.lines[0].cut = false
			e.pass(time.Minute, true)
			e.want(name+": it ends too", 3, false)
		}
	}
}
