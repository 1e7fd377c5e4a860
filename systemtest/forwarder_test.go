package systemtest

import (
	"errors"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// A forwarder is the virtual address of a database: it forwards connections to the
// server that it points at. When a server ends, its connections stay open and get no
// answer, as after a machine has lost its power.
type forwarder struct {
	listener net.Listener
	running  sync.WaitGroup

	mu     sync.Mutex
	server *storetest.Server
	conns  []net.Conn // closed with the test
}

func newForwarder(t *testing.T, to *storetest.Server) *forwarder {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &forwarder{listener: listener, server: to}
	f.running.Go(f.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		f.mu.Lock()
		for _, c := range f.conns {
			_ = c.Close()
		}
		f.mu.Unlock()
		f.running.Wait()
	})
	return f
}

// url returns the address of a database behind the forwarder.
func (f *forwarder) url(name string) string {
	host, port, _ := strings.Cut(f.listener.Addr().String(), ":")
	return "postgres:///" + name + "?" + url.Values{"host": {host}, "port": {port}, "user": {"postgres"}, "sslmode": {"disable"}}.Encode()
}

// pointAt sends new connections to another server.
func (f *forwarder) pointAt(s *storetest.Server) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.server = s
}

func (f *forwarder) accept() {
	for {
		client, err := f.listener.Accept()
		if err != nil {
			return // the test has ended
		}
		f.mu.Lock()
		f.conns = append(f.conns, client)
		socket := filepath.Join(f.server.Dir, ".s.PGSQL.5432")
		f.mu.Unlock()
		f.running.Go(func() { f.forward(client, socket) })
	}
}

// forward copies in both directions until the client ends. The end of the server does
// not reach the client.
func (f *forwarder) forward(client net.Conn, socket string) {
	server, err := net.Dial("unix", socket) //nolint:noctx // ends with the client
	if err != nil {
		_ = client.Close() // no server listens
		return
	}
	f.running.Go(func() { _, _ = io.Copy(client, server) })
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
}
