package systemtest

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/wake"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
	"github.com/fiscalhub/fiscalhub/systemtest/partition"
)

// faultsOfASeries is how many faults a cluster meets before all documents are compared
// with the authority.
const faultsOfASeries = 6

// A networkFault is something that happens to the network or to a node for some time.
type networkFault struct {
	name  string
	begin func(t *testing.T, c *partitionedCluster, node string)
	least time.Duration // how long it lasts
}

var allLost = partition.Fault{Loss: 1}

// networkFaults returns all faults.
func networkFaults() []networkFault {
	cut := func(peer string, there, back bool) func(*testing.T, *partitionedCluster, string) {
		return func(_ *testing.T, c *partitionedCluster, node string) {
			if there {
				c.network.Break(node, peer, allLost)
			}
			if back {
				c.network.Break(peer, node, allLost)
			}
		}
	}
	everywhere := func(f partition.Fault) func(*testing.T, *partitionedCluster, string) {
		return func(_ *testing.T, c *partitionedCluster, _ string) {
			for _, from := range hostNames {
				for _, to := range hostNames {
					c.network.Break(from, to, f)
				}
			}
		}
	}
	return []networkFault{
		{"a node and the database: both directions", cut("database", true, true), 3 * time.Second},
		{"a node to the database", cut("database", true, false), 3 * time.Second},
		{"the database to a node", cut("database", false, true), 3 * time.Second},
		{"a node and the authority: both directions", cut("authority", true, true), 3 * time.Second},
		{"a node to the authority", cut("authority", true, false), 3 * time.Second},
		{"the authority to a node", cut("authority", false, true), 3 * time.Second},
		{"a node and the clients: both directions", cut("clients", true, true), 3 * time.Second},
		{"a node to the clients", cut("clients", true, false), 3 * time.Second},
		{"a node and everything", func(_ *testing.T, c *partitionedCluster, node string) {
			for _, peer := range hostNames {
				c.network.Break(node, peer, allLost)
				c.network.Break(peer, node, allLost)
			}
		}, 3 * time.Second},
		{"a fifth of all packets", everywhere(partition.Fault{Loss: 0.2}), 3 * time.Second},
		{"a delay of 150 ms everywhere", everywhere(partition.Fault{Delay: 150 * time.Millisecond}), 3 * time.Second},
		{"a node is paused beyond its leases", func(t *testing.T, c *partitionedCluster, node string) {
			t.Helper()
			c.server(node).Signal(t, syscall.SIGSTOP)
		}, 3*time.Second + wake.Pace(20).Lease()},
	}
}

// Two nodes, the database, the authority and the clients are hosts of a network that
// fails under load, and nodes stop for longer than their leases. Nothing that was
// acknowledged may be lost, no number may be used twice, and every document must end with
// its true status. PARTITION_RUNS is the number of faults. Without it the test runs one
// short fault.
func TestPartitions(t *testing.T) {
	t.Parallel()
	runs, kinds := setting(t, "PARTITION_RUNS", 0), networkFaults()
	if runs == 0 {
		c := startPartitionedCluster(t, "happy")
		c.clients.reach(t, 10)
		c.meet(t, kinds[2], 2*time.Second)
		c.clients.reach(t, int(c.clients.count.Load())+10)
		c.finish(t)
		return
	}
	met := newFigureTable("run", "fault", "lasted", "acknowledged meanwhile")
	results := newFigureTable("faults", "acknowledged", "retried", "longest silence", "settled after", "lost", "untrue status", "numbers twice", "gaps", "violations")
	for first := 0; first < runs; first += faultsOfASeries {
		last := min(first+faultsOfASeries, runs)
		t.Run(fmt.Sprintf("%d-%d", first+1, last), func(t *testing.T) {
			c := startPartitionedCluster(t, "flaky")
			for run := first; run < last; run++ {
				c.clients.reach(t, int(c.clients.count.Load())+40)
				before, fault := c.clients.count.Load(), kinds[run%len(kinds)]
				lasted := fault.least + rand.N(12*time.Second)
				c.meet(t, fault, lasted)
				met.row(strconv.Itoa(run+1), fault.name, seconds(lasted), strconv.FormatInt(c.clients.count.Load()-before, 10))
			}
			c.clients.reach(t, int(c.clients.count.Load())+40)
			l, settled := c.finish(t)
			results.row(fmt.Sprintf("%d-%d", first+1, last), strconv.Itoa(len(c.clients.acks)), strconv.Itoa(c.clients.retried), seconds(c.clients.silence), seconds(settled),
				strconv.Itoa(l.lost), strconv.Itoa(l.untrue), strconv.Itoa(l.twice), strconv.Itoa(l.gaps), strconv.Itoa(l.violations))
		})
	}
	t.Logf("%d faults\n%s\n%s", runs, met, results)
}

// meet lets the cluster meet a fault for some time.
func (c *partitionedCluster) meet(t *testing.T, f networkFault, lasts time.Duration) {
	t.Helper()
	node := nodeNames[rand.IntN(len(nodeNames))]
	f.begin(t, c, node)
	time.Sleep(lasts)
	c.network.Heal()
	c.server(node).Signal(t, syscall.SIGCONT) // does nothing to a node that runs
}

// finish stops the clients, lets the nodes finish all documents, and compares these with
// the authority.
func (c *partitionedCluster) finish(t *testing.T) (ledger, time.Duration) {
	t.Helper()
	c.clients.stopAll()
	begun := time.Now()
	for _, n := range c.nodes {
		harness.Eventually(t, verdictLimit, "every document has its final status", func() bool { return c.isSettled(t, n.Base) })
	}
	settled := time.Since(begun)
	c.clients.checkReplays(t)
	// A look-up that the network has held back arrives together with a later one.
	l := c.clients.checkLedger(t, simulator.FastPolling)
	if l.lost > 0 || l.abandoned > 0 {
		t.Errorf("%d acknowledged invoices are lost, and %d numbers were abandoned", l.lost, l.abandoned)
	}
	return l, settled
}
