package systemtest

import (
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

// A nodeRelay forwards connections to a node, and can cut them. While the node is down, a
// connection waits, so that only requests under way get no answer.
type nodeRelay struct {
	listener net.Listener
	running  sync.WaitGroup

	mu      sync.Mutex
	node    string // host and port; empty: the node is down
	up      *sync.Cond
	closed  bool
	clients []net.Conn
}

func newNodeRelay(t *testing.T) *nodeRelay {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &nodeRelay{listener: listener}
	r.up = sync.NewCond(&r.mu)
	r.running.Go(r.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		r.mu.Lock()
		r.closed = true
		r.mu.Unlock()
		r.up.Broadcast()
		r.cut(0)
		r.running.Wait()
	})
	return r
}

// base returns the address that clients use.
func (r *nodeRelay) base() string { return "http://" + r.listener.Addr().String() }

// pointAt forwards new and waiting connections to the host and port of a node. An empty
// address makes them wait.
func (r *nodeRelay) pointAt(node string) {
	r.mu.Lock()
	r.node = node
	r.mu.Unlock()
	r.up.Broadcast()
}

// cut closes every n-th connection to a client; with 0 it closes all of them.
func (r *nodeRelay) cut(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, c := range r.clients {
		if n == 0 || i%n == 0 {
			_ = c.Close()
		}
	}
}

func (r *nodeRelay) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return // the test has ended
		}
		r.mu.Lock()
		r.clients = append(r.clients, client)
		r.mu.Unlock()
		r.running.Go(func() { r.forward(client) })
	}
}

// waitForNode returns the address of the node, or false when the test has ended.
func (r *nodeRelay) waitForNode() (string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.node == "" && !r.closed {
		r.up.Wait()
	}
	return r.node, !r.closed
}

// forward copies in both directions until one side ends. The node notices the end of a
// client a little later, so that it may finish a request that the client has given up.
func (r *nodeRelay) forward(client net.Conn) {
	defer func() {
		_ = client.Close()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.clients = slices.DeleteFunc(r.clients, func(c net.Conn) bool { return c == client })
	}()
	node, ok := r.waitForNode()
	if !ok {
		return
	}
	server, err := net.Dial("tcp", node) //nolint:noctx // on this machine
	if err != nil {
		return // the node was killed
	}
	defer func() { _ = server.Close() }()
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	})
	_, _ = io.Copy(server, client)
	time.Sleep(rand.N(20 * time.Millisecond))
	_ = server.Close()
	back.Wait()
}

// A relayedNode is a node of the service behind a relay.
type relayedNode struct {
	args    []string // of a restart
	process *harness.Server
	relay   *nodeRelay
}

// startRelayedNodes starts the nodes of an engine on an empty database: two on
// PostgreSQL, one on SQLite.
func startRelayedNodes(t *testing.T, engine string) (*harness.Client, []*relayedNode) {
	t.Helper()
	count, address := 1, storetest.Address(t, "sqlite")
	if engine == "postgres" {
		count, address = 2, storetest.Postgres(t).Empty(t)
	}
	args := []string{"--data", t.TempDir(), "--database", address, "--rate-limit", "0", "--log-level", "error"}
	restart := append(slices.Clone(args), "--no-bootstrap", "--no-migrate")
	var nodes []*relayedNode
	for i := range count {
		n := &relayedNode{args: restart, relay: newNodeRelay(t)}
		if i == 0 {
			n.process = harness.Serve(t, args...)
		} else {
			n.process = harness.Serve(t, restart...)
		}
		n.relay.pointAt(hostOf(t, n.process.Base))
		nodes = append(nodes, n)
	}
	return nodes[0].process.Client(t), nodes
}

func hostOf(t *testing.T, base string) string {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// killAndRestart ends a node with SIGKILL and starts it again. Meanwhile its clients wait.
func (n *relayedNode) killAndRestart(t *testing.T) {
	t.Helper()
	n.relay.pointAt("")
	n.process.Signal(t, syscall.SIGKILL)
	n.process.Ended(t)
	n.process = harness.Serve(t, n.args...)
	n.relay.pointAt(hostOf(t, n.process.Base))
}
