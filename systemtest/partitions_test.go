package systemtest

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/wake"
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
		c.clients.reachMore(t, 10)
		c.clients.finish(t, simulator.FastPolling)
		return
	}
	met := newFigureTable("run", "fault", "lasted", "acknowledged meanwhile")
	results := newFigureTable("faults", clientColumns, "settled after", ledgerColumns)
	for first := 0; first < runs; first += faultsOfASeries {
		last := min(first+faultsOfASeries, runs)
		t.Run(fmt.Sprintf("%d-%d", first+1, last), func(t *testing.T) {
			c := startPartitionedCluster(t, "flaky")
			for run := first; run < last; run++ {
				c.clients.reachMore(t, 40)
				before, fault := c.clients.count.Load(), kinds[run%len(kinds)]
				lasted := fault.least + rand.N(12*time.Second)
				c.meet(t, fault, lasted)
				met.row(run+1, fault.name, lasted, c.clients.count.Load()-before)
			}
			c.clients.reachMore(t, 40)
			l, settled := c.clients.finish(t, simulator.FastPolling) // a look-up that the network has held back arrives together with a later one
			results.row(fmt.Sprintf("%d-%d", first+1, last), c.clients.figures(), settled, l.figures())
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
