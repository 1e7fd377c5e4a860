package systemtest

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

// killPause is the time between two sales of a client while nodes are killed. A node
// lives for about a second: clients must not create more than it can send.
const killPause = 500 * time.Millisecond

// A node is killed KILL_RUNS times while clients create live invoices. Nothing that was
// acknowledged may be lost, and each document must end with one number, one content and
// its true status. `make kills` runs the test; TestKilledServiceIssuesEachDocumentOnce is
// its short form.
func TestKillsUnderLoad(t *testing.T) {
	kills := setting(t, "KILL_RUNS", 0)
	if kills == 0 {
		t.Skip("`make kills` runs this test")
	}
	harness.Program(t) // before the clients begin
	for _, engine := range storetest.Engines() {
		if only := os.Getenv("KILL_ENGINE"); only != "" && only != engine {
			continue
		}
		t.Run(engine, func(t *testing.T) { killUnderLoad(t, engine, kills) })
	}
}

// killUnderLoad kills nodes at random moments, two of them on PostgreSQL and one on
// SQLite, and compares all invoices with the authority.
func killUnderLoad(t *testing.T, engine string, kills int) {
	t.Helper()
	begun := time.Now()
	e := newEnv(t, storetest.Address(t, engine), "flaky")
	nodes := []*harness.Server{harness.Serve(t, e.nodeArgs(0)...)}
	if engine == "postgres" {
		nodes = append(nodes, harness.Serve(t, e.nodeArgs(1)...))
	}
	c := startClientsEvery(t, e, killPause, nodes...)
	for n := 1; n <= kills && !t.Failed(); n++ {
		if acknowledged := c.count.Load(); n%4 > 0 {
			// The node works. Every fourth kill may meet its start.
			harness.Eventually(t, settleLimit, "an invoice is acknowledged after a start", func() bool { return c.count.Load() > acknowledged || t.Failed() })
		}
		time.Sleep(rand.N(500 * time.Millisecond)) // the kill meets any point of the work
		i := rand.IntN(len(nodes))
		nodes[i].Signal(t, syscall.SIGKILL)
		nodes[i].Ended(t)
		takeViolations(t, e.sim)
		nodes[i] = harness.Serve(t, e.nodeArgs(i)...)
		for j := range c.nodes {
			c.nodes[j].Store(&nodes[j%len(nodes)].Base)
		}
		if n%50 == 0 {
			t.Logf("%d kills in %s: %d invoices acknowledged", n, seconds(time.Since(begun)), c.count.Load())
		}
	}
	killing := time.Since(begun)
	c.stopAll()
	settling := time.Now()
	for _, n := range nodes {
		harness.Eventually(t, verdictLimit, "every document has its final status", func() bool { return e.isSettled(t, n.Base) })
	}
	settled := time.Since(settling)
	c.checkReplays(t)
	takeViolations(t, e.sim)
	l := c.checkLedger(t)
	if l.lost > 0 || l.abandoned > 0 {
		t.Errorf("%d acknowledged invoices are lost, and %d numbers were abandoned", l.lost, l.abandoned)
	}
	for i, n := range nodes {
		if strings.Contains(n.Log.String(), "fenced") {
			t.Errorf("node %d fenced its ranges:\n%s", i, n.Log)
		}
	}
	figures := newFigureTable("engine", "nodes", "kills", "time", "acknowledged", "retried", "longest silence", "settled after", "lost", "untrue status", "numbers twice", "gaps", "violations")
	figures.row(engine, strconv.Itoa(len(nodes)), strconv.Itoa(kills), seconds(killing), strconv.Itoa(len(c.acks)), strconv.Itoa(c.retried), seconds(c.silence), seconds(settled),
		strconv.Itoa(l.lost), strconv.Itoa(l.untrue), strconv.Itoa(l.twice), strconv.Itoa(l.gaps), strconv.Itoa(l.violations))
	t.Logf("\n%s", figures)
}

// takeViolations removes the violations that the simulator has counted, because it keeps
// only some of them, and reports them as errors, except for the token that each new process
// asks for.
func takeViolations(t *testing.T, sim *simulator.Simulator) {
	t.Helper()
	all := sim.Violations()
	if len(all) == 0 {
		return
	}
	sim.ClearViolations()
	for _, v := range all {
		if v.Kind != simulator.TokenAgain {
			t.Errorf("violation: %v", v)
		}
	}
}
