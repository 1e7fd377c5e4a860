package systemtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

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
