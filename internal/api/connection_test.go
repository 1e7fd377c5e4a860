package api

import (
	"net"
	"net/netip"
	"testing"
)

// fakeConn is a connection from an address that a test chooses.
type fakeConn struct {
	net.Conn
	from   string
	closed int
}

func (c *fakeConn) RemoteAddr() net.Addr { return address(c.from) }

func (c *fakeConn) Close() error {
	c.closed++
	return nil
}

type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

// fakeListener is a listener to which a test sends connections.
type fakeListener struct {
	net.Listener
	conns chan *fakeConn
}

func (f *fakeListener) Accept() (net.Conn, error) {
	v, ok := <-f.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return v, nil
}

// connect opens n connections and returns those that were accepted and refused.
func connect(t *testing.T, l net.Listener, f *fakeListener, n int, from string) (accepted []net.Conn, refused []*fakeConn) {
	t.Helper()
	sent := make([]*fakeConn, n)
	for i := range sent {
		sent[i] = &fakeConn{from: from}
	}
	// The last one is always accepted, so that Accept returns.
	last := &fakeConn{from: "127.0.0.9:1"}
	go func() {
		for _, v := range append(sent, last) {
			f.conns <- v
		}
	}()
	for {
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if conn.(*limitedConn).Conn == net.Conn(last) {
			_ = conn.Close()
			break
		}
		accepted = append(accepted, conn)
	}
	for _, v := range sent {
		if v.closed > 0 {
			refused = append(refused, v)
		}
	}
	return accepted, refused
}

func newFakeListener() (*fakeListener, net.Listener) {
	f := &fakeListener{conns: make(chan *fakeConn)}
	return f, LimitConnections(f)
}

func TestLimitConnectionsOfOneAddress(t *testing.T) {
	t.Parallel()
	f, l := newFakeListener()
	accepted, refused := connect(t, l, f, maxAddressConnections+10, "192.0.2.1:1000")
	if len(accepted) != maxAddressConnections || len(refused) != 10 {
		t.Fatalf("%d accepted and %d refused", len(accepted), len(refused))
	}
	if more, _ := connect(t, l, f, 1, "[::ffff:192.0.2.1]:1000"); len(more) != 0 {
		t.Error("the same address in IPv4-mapped form is accepted")
	}
	if more, _ := connect(t, l, f, 1, "192.0.2.2:1000"); len(more) != 1 {
		t.Error("another address is refused")
	}
	_ = accepted[0].Close()
	_ = accepted[0].Close() // the second Close must not count
	if more, _ := connect(t, l, f, 3, "192.0.2.1:1000"); len(more) != 1 {
		t.Errorf("%d accepted after one was closed", len(more))
	}
}

func TestLimitConnectionsInTotal(t *testing.T) {
	t.Parallel()
	f, l := newFakeListener()
	// Connections from the same machine come from a proxy for many clients.
	accepted, refused := connect(t, l, f, maxConnections-1, "127.0.0.1:1000")
	if len(accepted) != maxConnections-1 || len(refused) != 0 {
		t.Fatalf("%d accepted and %d refused", len(accepted), len(refused))
	}
	listener := l.(*limitedListener)
	if !listener.add(netip.MustParseAddr("192.0.2.1")) || listener.add(netip.MustParseAddr("192.0.2.2")) {
		t.Error("the limit of all connections is not kept")
	}
	for _, c := range accepted {
		_ = c.Close()
	}
	listener.remove(netip.MustParseAddr("192.0.2.1"))
	if listener.total != 0 || len(listener.open) != 0 {
		t.Errorf("%d connections and %d addresses are counted after all were closed", listener.total, len(listener.open))
	}
}

func TestLimitConnectionsEndsWithItsListener(t *testing.T) {
	t.Parallel()
	f, l := newFakeListener()
	close(f.conns)
	if _, err := l.Accept(); err == nil {
		t.Error("Accept returns no error after its listener was closed")
	}
}
