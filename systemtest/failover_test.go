package systemtest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

// failoverSettings returns how many failovers a test runs, and how many documents the
// clients create in each phase. Without FAILOVER_RUNS the test is skipped: a failover
// takes half a minute, and package live tests the same rules in one process.
func failoverSettings(t *testing.T) (runs, documents int) {
	t.Helper()
	if runs = setting(t, "FAILOVER_RUNS", 0); runs == 0 {
		t.Skip("`make failover` runs this test")
	}
	harness.Program(t) // before the clients begin
	return runs, setting(t, "FAILOVER_DOCUMENTS", 150)
}

// The primary of a synchronous standby is killed under load, and the standby is
// promoted. Nothing that was acknowledged may be lost, and numbers go on without a gap.
func TestFailoverToASynchronousStandby(t *testing.T) {
	runs, documents := failoverSettings(t)
	figures := newFigureTable("run", "address", clientColumns, "settled after", ledgerColumns)
	for run := range runs {
		t.Run(strconv.Itoa(run+1), func(t *testing.T) {
			c := startCluster(t, true, run%2 == 1)
			c.clients.reach(t, documents+rand.IntN(documents/2))
			c.fail(t)
			c.clients.reachMore(t, documents)
			l, settled := c.clients.finish(t)
			checkNoFence(t, c.nodes[:]...)
			figures.row(run+1, c.addressKind(), c.clients.figures(), settled, l.figures())
		})
	}
	t.Logf("%d failovers to a synchronous standby\n%s", runs, figures)
}

// The primary of an asynchronous standby is killed under load after the standby has
// missed commits, and the standby is promoted. The ranges must be fenced before any
// number is issued, and no number may be used twice after the release.
func TestFailoverToAnAsynchronousStandby(t *testing.T) {
	runs, documents := failoverSettings(t)
	figures := newFigureTable("run", "address", clientColumns, "fenced after", "abandoned", "at the authority", "settled after", ledgerColumns)
	for run := range runs {
		t.Run(strconv.Itoa(run+1), func(t *testing.T) {
			c := startCluster(t, false, run%2 == 1)
			c.clients.reach(t, documents)
			c.standby.Disconnect(t, c.primary)
			c.clients.reachMore(t, documents/2+rand.IntN(documents/2))
			c.fail(t)
			fenced := c.checkFence(t)
			c.release(t)
			c.clients.reachMore(t, documents)
			settled := c.clients.settle(t)
			// The copy does not know when a verdict was last asked for.
			l := c.clients.checkLedger(t, simulator.FastPolling)
			if l.lost == 0 || l.found == 0 {
				t.Errorf("%d invoices are lost, and the authority has %d abandoned numbers: the standby missed nothing", l.lost, l.found)
			}
			figures.row(run+1, c.addressKind(), c.clients.figures(), fmt.Sprintf("%d ms", fenced.Milliseconds()), l.abandoned, l.found, settled, l.figures())
		})
	}
	t.Logf("%d failovers to an asynchronous standby\n%s", runs, figures)
}

// addressKind says how the nodes find the database, for the table of figures.
func (c *cluster) addressKind() string {
	if c.virtual != nil {
		return "virtual"
	}
	return "two hosts"
}

// checkFence waits until every range is fenced, and checks that no number was taken
// from the older copy, that the logs of both nodes and the readiness of the taxpayer
// say what to do, and that clients are refused. It returns the time from the promotion
// to the fence.
func (c *cluster) checkFence(t *testing.T) time.Duration {
	t.Helper()
	begun := time.Now()
	s := storetest.Open(t, c.address, time.Now)
	before := c.ranges(t, s)
	open := func(r store.NumberRange) bool { return r.FencedAt.IsZero() }
	harness.Eventually(t, 30*time.Second, "every range is fenced", func() bool { return !slices.ContainsFunc(c.ranges(t, s), open) })
	took := time.Since(begun)
	for i, n := range c.nodes {
		harness.Eventually(t, 30*time.Second, "the log of node "+strconv.Itoa(i)+" says what to do", func() bool {
			return strings.Contains(n.Log.String(), "Every number range is fenced. Run `fiscalhub reconcile` for each taxpayer.")
		})
	}
	if shown := fmt.Sprint(c.operate(t, "taxpayer", "show", c.client.Taxpayer)); !strings.Contains(shown, "sequence.fenced") {
		t.Errorf("the readiness of the taxpayer does not name the fence: %s", shown)
	}
	harness.Eventually(t, 30*time.Second, "clients are refused", func() bool {
		c.clients.mu.Lock()
		defer c.clients.mu.Unlock()
		return c.clients.refused > 0
	})
	for i, r := range c.ranges(t, s) {
		if r.Next != before[i].Next {
			t.Errorf("the range of type %s went from %d to %d before the release", r.Type, before[i].Next, r.Next)
		}
	}
	return took
}

// release runs the command that operators run after such a failover, once with the data
// folder of each node.
func (c *cluster) release(t *testing.T) {
	t.Helper()
	for i := range c.nodes {
		if code, said := c.reconcile(t, c.nodeArgs(i)); code != 0 {
			t.Fatalf("reconcile: exit code %d\n%s", code, said)
		}
	}
}

// A cluster is a PostgreSQL server with a standby, two nodes with a data folder each,
// and clients that create invoices through both nodes.
type cluster struct {
	*env
	primary, standby *storetest.Server
	virtual          *relay // nil: the nodes know both servers
	nodes            [2]*harness.Server
	clients          *clients
}

// startCluster starts the servers, the nodes and the clients.
func startCluster(t *testing.T, synchronous, virtual bool) *cluster {
	t.Helper()
	c, address := startServers(t, synchronous, virtual)
	c.env = newEnv(t, address, "flaky")
	c.startNodes(t, synchronous)
	c.clients = startClients(t, c.env, c.nodes[:]...)
	return c
}

// startServers starts the servers, and returns the address of their database. With a
// virtual address, the nodes know only that; a server that ends then leaves its connections
// open. Without it, they know both servers and use the one that accepts writes.
func startServers(t *testing.T, synchronous, virtual bool) (c *cluster, address string) {
	t.Helper()
	c = &cluster{primary: storetest.PrivatePostgres(t)}
	if _, err := c.primary.Create("fiscalhub"); err != nil {
		t.Fatal(err)
	}
	c.standby = c.primary.Standby(t, "second")
	if synchronous {
		if err := c.primary.Configure("synchronous_standby_names", "second"); err != nil {
			t.Fatal(err)
		}
	}
	address = c.primary.URLWith(c.standby, "fiscalhub")
	if virtual {
		c.virtual = newVirtualAddress(t, c.primary)
		address = c.virtual.database("fiscalhub")
	}
	return c, address
}

// startNodes starts the nodes, and returns when they know their standby.
func (c *cluster) startNodes(t *testing.T, synchronous bool) {
	t.Helper()
	for i := range c.nodes {
		c.nodes[i] = harness.Serve(t, c.nodeArgs(i)...)
	}
	c.waitForReplication(t, synchronous)
}

// waitForReplication waits until both nodes have recorded whether commits wait for the
// standby.
func (c *cluster) waitForReplication(t *testing.T, synchronous bool) {
	t.Helper()
	want := "lossy"
	if synchronous {
		want = "lossless"
	}
	for i := range c.nodes {
		harness.Eventually(t, 30*time.Second, "a node records that the replication is "+want, func() bool {
			text, err := os.ReadFile(filepath.Join(c.nodeDir(i), "witness-certification.timeline"))
			return err == nil && strings.Contains(string(text), want)
		})
	}
}

// fail ends the primary at once, and promotes the standby. It returns when the standby
// accepts writes.
func (c *cluster) fail(t *testing.T) {
	t.Helper()
	c.primary.Halt()
	if err := c.standby.Promote(); err != nil {
		t.Fatal(err)
	}
	if c.virtual != nil {
		c.virtual.pointAt(socketOf(c.standby))
	}
}

// ranges reads the number ranges.
func (c *cluster) ranges(t *testing.T, s *store.Store) []store.NumberRange {
	t.Helper()
	all, err := s.NumberRanges(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all
}
