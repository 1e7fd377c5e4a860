package systemtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/tabwriter"
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
	virtual          *forwarder // nil: the nodes know both servers
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
		c.virtual = newForwarder(t, c.primary)
		address = c.virtual.url("fiscalhub")
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
		c.virtual.pointAt(c.standby)
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

// settle stops the clients and waits until every document has its final status. It
// returns how long that took.
func (c *cluster) settle(t *testing.T) time.Duration {
	t.Helper()
	c.clients.stopAll()
	begun := time.Now()
	for _, n := range c.nodes {
		harness.Eventually(t, verdictLimit, "every document has its final status", func() bool { return c.isSettled(t, n.Base) })
	}
	return time.Since(begun)
}

// A figureTable prints the figures of several runs.
type figureTable struct {
	text  strings.Builder
	lines *tabwriter.Writer
}

func newFigureTable(columns ...string) *figureTable {
	t := &figureTable{}
	t.lines = tabwriter.NewWriter(&t.text, 0, 8, 2, ' ', tabwriter.AlignRight)
	t.row(columns...)
	return t
}

func (t *figureTable) row(cells ...string) {
	_, _ = fmt.Fprintln(t.lines, strings.Join(cells, "\t")+"\t") // a string cannot fail
}

func (t *figureTable) String() string {
	_ = t.lines.Flush()
	return t.text.String()
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
