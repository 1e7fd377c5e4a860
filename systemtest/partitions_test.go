package systemtest

import (
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
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

// The hosts of the network.
var (
	nodeNames = []string{"node-0", "node-1"}
	hostNames = append([]string{"database", "authority", "clients"}, nodeNames...)
)

// A partitionedCluster is two nodes, a PostgreSQL server, the simulator of the authority
// and clients, each on a host of a network that can fail.
type partitionedCluster struct {
	*env
	network *partition.Network
	nodes   [2]*harness.Server
	clients *clients
}

func startPartitionedCluster(t *testing.T, profile string) *partitionedCluster {
	t.Helper()
	c := &partitionedCluster{network: partition.New(t, hostNames...)}
	program := harness.Program(t)
	pg := c.startDatabase(t)
	address, err := pg.Create("fiscalhub")
	if err != nil {
		t.Fatal(err)
	}
	// The operator and the checks of the test use the socket of the server.
	c.env = envOptions{program: program, address: address, profile: profile}.start(t)
	authority, roots := c.startAuthority(t)
	database := "postgres://postgres@" + c.network.Host("database").Address.String() + ":5432/fiscalhub?sslmode=disable"
	for i, name := range nodeNames {
		args := c.nodeArgs(i)
		args[slices.Index(args, "--database")+1] = database
		args[slices.Index(args, "--authority")+1] = authority
		host := c.network.Host(name)
		cmd := exec.CommandContext(t.Context(), program, append([]string{"serve", "--listen", host.Address.String() + ":8080"}, args...)...)
		cmd.Env = append(harness.Environment(), "SSL_CERT_FILE="+roots)
		var node *harness.Server
		err := host.Do(func() (err error) {
			node, err = harness.Launch(cmd)
			return err
		})
		c.nodes[i] = node.Until(t, err)
	}
	transport, _ := c.client.HTTP.Transport.(*http.Transport)
	transport.DialContext, c.client.HTTP.Timeout = c.network.Host("clients").Dial, 10*time.Second
	c.clients = startClients(t, c.env, c.nodes[:]...)
	return c
}

// server returns the process of a node.
func (c *partitionedCluster) server(node string) *harness.Server {
	return c.nodes[slices.Index(nodeNames, node)]
}

// startDatabase starts a PostgreSQL server on its host.
func (c *partitionedCluster) startDatabase(t *testing.T) (pg *storetest.Server) {
	t.Helper()
	storetest.Postgres(t) // not on the host: other tests use it
	dir, err := os.MkdirTemp("", "fiscalhub-hba-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	rules := filepath.Join(dir, "pg_hba.conf")
	if err := os.WriteFile(rules, []byte("local all all trust\nhost all all "+partition.Prefix.String()+" trust\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]os.FileMode{dir: 0o755, rules: 0o644} { // the server runs as another user
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	host := c.network.Host("database")
	err = host.Do(func() error {
		pg = storetest.PrivatePostgres(t, "listen_addresses="+host.Address.String(), "hba_file="+rules)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return pg
}

// startAuthority serves the simulator on its host. It returns its address, and the file
// of the certificate that the nodes must trust.
func (c *partitionedCluster) startAuthority(t *testing.T) (address, roots string) {
	t.Helper()
	host := c.network.Host("authority")
	listener, err := host.Listen(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	identity := harness.NewIdentity(t, 1, time.Now().Add(time.Hour), host.Address.AsSlice())
	certificate, err := tls.X509KeyPair(identity.Chain, identity.Key)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(c.sim.Handler())
	_ = server.Listener.Close()
	server.Listener, server.TLS = listener, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	roots = filepath.Join(c.dir, "authority.pem")
	if err := os.WriteFile(roots, identity.Chain, 0o600); err != nil {
		t.Fatal(err)
	}
	return "https://" + listener.Addr().String(), roots
}
