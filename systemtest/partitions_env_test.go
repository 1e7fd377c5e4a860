package systemtest

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
	"github.com/fiscalhub/fiscalhub/systemtest/partition"
)

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
	c.env = newEnvWith(t, envOptions{program: program, address: address, profile: profile})
	authority, roots := c.startAuthority(t)
	database := "postgres://postgres@" + c.network.Host("database").Address.String() + ":5432/fiscalhub?sslmode=disable"
	for i, name := range nodeNames {
		args := c.nodeArgs(i)
		args[slices.Index(args, "--database")+1] = database
		args[slices.Index(args, "--authority")+1] = authority
		host := c.network.Host(name)
		cmd := exec.CommandContext(t.Context(), program, append([]string{"serve", "--listen", host.Address.String() + ":8080"}, args...)...)
		cmd.Env = append(harness.Environment(), "SSL_CERT_FILE="+roots)
		err := host.Do(func() (err error) {
			c.nodes[i], err = harness.Launch(cmd)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			<-c.nodes[i].Done
		})
	}
	transport := &http.Transport{DialContext: c.network.Host("clients").Dial, MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	c.client.HTTP = &http.Client{Transport: transport, Timeout: 10 * time.Second}
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
