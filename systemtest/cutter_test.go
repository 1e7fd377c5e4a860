package systemtest

import (
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// A cutter forwards connections to a server and cuts each after a random number of bytes,
// in the middle of a request or of an answer.
type cutter struct {
	listener net.Listener
	server   string
	running  sync.WaitGroup
	cuts     atomic.Int64

	mu   sync.Mutex
	rand *rand.Rand
}

// cutAfter is the most bytes that a connection transports. A creation and its answer have
// about 2,300.
const cutAfter = 7000

func newCutter(t *testing.T, server string, seed uint64) *cutter {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{listener: listener, server: server, rand: rand.New(rand.NewPCG(seed, seed))}
	c.running.Go(c.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		c.running.Wait()
	})
	return c
}

func (c *cutter) accept() {
	for {
		conn, err := c.listener.Accept()
		if err != nil {
			return // the test has ended
		}
		c.mu.Lock()
		budget := new(atomic.Int64)
		budget.Store(c.rand.Int64N(cutAfter))
		c.mu.Unlock()
		c.running.Go(func() { c.forward(conn, budget) })
	}
}

// forward copies in both directions until the budget is used up, and then resets both
// connections.
func (c *cutter) forward(conn net.Conn, budget *atomic.Int64) {
	server, err := net.Dial("tcp", c.server) //nolint:noctx // ends with the client
	if err != nil {
		_ = conn.Close()
		return
	}
	end := sync.OnceFunc(func() {
		for _, one := range []net.Conn{conn, server} {
			if tcp, ok := one.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0)
			}
			_ = one.Close()
		}
	})
	var both sync.WaitGroup
	for from, to := range map[net.Conn]net.Conn{conn: server, server: conn} {
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
					c.cuts.Add(1)
					return
				}
				if err != nil {
					return
				}
			}
		})
	}
	both.Wait()
}
