package systemtest

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// A relay forwards connections to a server, and can cut them. While the server is down, a
// connection waits, so that only requests under way get no answer.
type relay struct {
	listener net.Listener
	network  string
	carry    func(client, server net.Conn) // until one of them ends
	running  sync.WaitGroup

	mu      sync.Mutex
	server  string // empty: the server is down
	up      *sync.Cond
	closed  bool
	clients []net.Conn
}

func newRelay(t *testing.T, network, server string, carry func(client, server net.Conn)) *relay {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: listener, network: network, server: server, carry: carry}
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
func (r *relay) base() string { return "http://" + r.listener.Addr().String() }

// pointAt forwards new and waiting connections to a server. An empty address makes them
// wait.
func (r *relay) pointAt(server string) {
	r.mu.Lock()
	r.server = server
	r.mu.Unlock()
	r.up.Broadcast()
}

// cut closes every n-th connection to a client; with 0 it closes all of them.
func (r *relay) cut(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, c := range r.clients {
		if n == 0 || i%n == 0 {
			_ = c.Close()
		}
	}
}

func (r *relay) accept() {
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

// waitForServer returns the address of the server, or false when the test has ended.
func (r *relay) waitForServer() (string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.server == "" && !r.closed {
		r.up.Wait()
	}
	return r.server, !r.closed
}

func (r *relay) forward(client net.Conn) {
	defer func() {
		_ = client.Close()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.clients = slices.DeleteFunc(r.clients, func(c net.Conn) bool { return c == client })
	}()
	address, ok := r.waitForServer()
	if !ok {
		return
	}
	server, err := net.Dial(r.network, address) //nolint:noctx // on this machine
	if err != nil {
		return // no server listens
	}
	defer func() { _ = server.Close() }()
	r.carry(client, server)
}

// carryToNode copies in both directions until one side ends. The node notices the end of a
// client a little later, so that it may finish a request that the client has given up.
func carryToNode(client, node net.Conn) {
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(client, node)
		_ = client.Close()
	})
	_, _ = io.Copy(node, client)
	time.Sleep(rand.N(20 * time.Millisecond))
	_ = node.Close()
	back.Wait()
}

// newVirtualAddress returns the virtual address of a database. When a server ends, its
// connections stay open and get no answer, as after a machine has lost its power.
func newVirtualAddress(t *testing.T, to *storetest.Server) *relay {
	t.Helper()
	return newRelay(t, "unix", socketOf(to), func(client, server net.Conn) {
		var back sync.WaitGroup
		defer back.Wait()
		back.Go(func() { _, _ = io.Copy(client, server) })
		for buffer := make([]byte, 64<<10); ; {
			n, err := client.Read(buffer)
			if _, broken := server.Write(buffer[:n]); broken != nil && !errors.Is(broken, net.ErrClosed) {
				_ = server.Close()
			}
			if err != nil {
				_ = errors.Join(client.Close(), server.Close())
				return
			}
		}
	})
}

func socketOf(s *storetest.Server) string { return filepath.Join(s.Dir, ".s.PGSQL.5432") }

// database returns the address of a database behind the relay.
func (r *relay) database(name string) string {
	host, port, _ := strings.Cut(r.listener.Addr().String(), ":")
	return "postgres:///" + name + "?" + url.Values{"host": {host}, "port": {port}, "user": {"postgres"}, "sslmode": {"disable"}}.Encode()
}

// cutAfter is the most bytes that a connection of a cutter transports. A creation and its
// answer have about 2,300.
const cutAfter = 7000

// newCutter returns the address of a relay that resets each connection after a random
// number of bytes, in the middle of a request or of an answer. It counts them.
func newCutter(t *testing.T, server string, seed uint64) (base string, cuts *atomic.Int64) {
	t.Helper()
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, seed))
	cuts = new(atomic.Int64)
	r := newRelay(t, "tcp", strings.TrimPrefix(server, "http://"), func(client, server net.Conn) {
		var budget atomic.Int64
		mu.Lock()
		budget.Store(random.Int64N(cutAfter))
		mu.Unlock()
		end := sync.OnceFunc(func() {
			for _, one := range []net.Conn{client, server} {
				if tcp, ok := one.(*net.TCPConn); ok {
					_ = tcp.SetLinger(0)
				}
				_ = one.Close()
			}
		})
		var both sync.WaitGroup
		for from, to := range map[net.Conn]net.Conn{client: server, server: client} {
			both.Go(func() {
				defer end()
				for buffer := make([]byte, 512); ; {
					n, err := from.Read(buffer)
					left := budget.Add(-int64(n))
					if left < 0 {
						n = int(max(0, int64(n)+left)) // a part of what was read still arrives
					}
					if _, writeErr := to.Write(buffer[:n]); err == nil {
						err = writeErr
					}
					if left < 0 {
						cuts.Add(1)
						return
					}
					if err != nil {
						return
					}
				}
			})
		}
		both.Wait()
	})
	return r.base(), cuts
}
