package systemtest

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
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
		nodes[i].Kill()
		takeViolations(t, e.sim)
		nodes[i] = harness.Serve(t, e.nodeArgs(i)...)
		c.pointAt(nodes...)
		if n%50 == 0 {
			t.Logf("%d kills in %s: %d invoices acknowledged", n, seconds(time.Since(begun)), c.count.Load())
		}
	}
	killing := time.Since(begun)
	l, settled := c.finish(t)
	checkNoFence(t, nodes...)
	figures := newFigureTable("engine", "nodes", "kills", "time", clientColumns, "settled after", ledgerColumns)
	figures.row(engine, len(nodes), kills, killing, c.figures(), settled, l.figures())
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

// The service is killed at random moments while it issues documents to an authority
// that loses answers. Each document must end with one number and one content.
// LIVE_KILLS and LIVE_DOCUMENTS make the test longer.
func TestKilledServiceIssuesEachDocumentOnce(t *testing.T) {
	t.Parallel()
	kills, documents := setting(t, "LIVE_KILLS", 2), setting(t, "LIVE_DOCUMENTS", 40)
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, "flaky")
		server := w.serve(t)
		created := make(chan struct{})
		go func() {
			defer close(created)
			for n := range documents {
				w.createInvoice(t, n)
			}
		}()
		for range kills {
			time.Sleep(200*time.Millisecond + rand.N(800*time.Millisecond))
			server.Kill()
			server = w.serve(t)
		}
		<-created
		w.settle(t)
		w.checkDocuments(t, documents)
	})
}

// setting reads a count from an environment variable.
func setting(t *testing.T, name string, byDefault int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return byDefault
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Two nodes share a PostgreSQL database. One is killed, and the other must finish
// all documents.
func TestSurvivingNodeFinishesAllDocuments(t *testing.T) {
	t.Parallel()
	documents := setting(t, "LIVE_DOCUMENTS", 40)
	w := newEnv(t, storetest.Address(t, "postgres"), "flaky")
	first := w.serve(t)
	w.serve(t)
	for n := range documents {
		if n == documents/2 {
			first.Signal(t, syscall.SIGKILL)
		}
		w.createInvoice(t, n)
	}
	first.Ended(t)
	w.settle(t)
	w.checkDocuments(t, documents)
}

// After many kills the server must have every invoice that it answered with 202,
// once, and replay each answer byte for byte.
func TestKilledServerKeepsAcknowledgedInvoices(t *testing.T) {
	t.Parallel()
	const kills, creations = 8, 600
	storetest.EachAddress(t, func(t *testing.T, address string) {
		args := []string{"--data", filepath.Join(t.TempDir(), "data"), "--database", address, "--rate-limit", "0", "--log-level", "error"}
		server := harness.Serve(t, args...)
		c := startClientsEvery(t, &env{client: server.Client(t)}, 0, server)
		args = append(args, "--no-bootstrap")
		for killed := 1; killed <= kills && !t.Failed(); killed++ {
			c.reach(t, killed*creations/kills+rand.IntN(creations/kills/2))
			time.Sleep(rand.N(15 * time.Millisecond)) // the kill meets any point of a commit
			server.Kill()
			server = harness.Serve(t, args...)
			c.pointAt(server)
		}
		c.reach(t, creations+50)
		c.stopAll()
		if c.failed > 0 {
			t.Errorf("%d requests were answered with 500", c.failed)
		}
		t.Logf("%d creations were acknowledged over %d kills", len(c.acks), kills)
		c.checkReplays(t)
	})
}
