package capacity

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"time"
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

// CloseWrite fails, so that the connection is closed at once.
func (c *fakeConn) CloseWrite() error { return errors.New("not supported") }

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
		next, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if next.(*conn).Conn == net.Conn(last) {
			_ = next.Close()
			break
		}
		accepted = append(accepted, next)
	}
	for _, v := range sent {
		if v.closed > 0 {
			refused = append(refused, v)
		}
	}
	return accepted, refused
}

func newFakeListener(c *Capacity, proxies ...netip.Prefix) (*fakeListener, net.Listener) {
	f := &fakeListener{conns: make(chan *fakeConn)}
	return f, c.Listen(f, NewClientFinder(proxies, time.Now, slog.New(slog.DiscardHandler)))
}

func newCapacity() *Capacity { return New(DefaultLimits(1<<30, 2)) }

func TestConnectionsOfOneAddressAreLimited(t *testing.T) {
	t.Parallel()
	const most = 256
	for name, from := range map[string][]string{
		"IPv4":                      {"192.0.2.1:1000", "[::ffff:192.0.2.1]:1000", "192.0.2.2:1000"},
		"an IPv6 network of /64":    {"[2001:db8:1:2::1]:1000", "[2001:db8:1:2:3:4:5:6]:1000", "[2001:db8:1:3::1]:1000"},
		"a link-local IPv6 network": {"[fe80::1%eth0]:1000", "[fe80::2%eth0]:1000", "[2001:db8::1]:1000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, l := newFakeListener(newCapacity())
			accepted, refused := connect(t, l, f, most+10, from[0])
			if len(accepted) != most || len(refused) != 10 {
				t.Fatalf("%d accepted and %d refused", len(accepted), len(refused))
			}
			if more, _ := connect(t, l, f, 1, from[1]); len(more) != 0 {
				t.Error("the same address in another form is accepted")
			}
			if more, _ := connect(t, l, f, 1, from[2]); len(more) != 1 {
				t.Error("another address is refused")
			}
			_ = accepted[0].Close()
			_ = accepted[0].Close() // the second Close must not count
			if more, _ := connect(t, l, f, 3, from[0]); len(more) != 1 {
				t.Errorf("%d accepted after one was closed", len(more))
			}
		})
	}
}

// A connection from the same machine or from a trusted proxy serves many clients.
func TestConnectionsAreLimitedInTotal(t *testing.T) {
	t.Parallel()
	c := newCapacity()
	f, l := newFakeListener(c, netip.MustParsePrefix("10.0.0.0/8"))
	_, other := newFakeListener(c) // another listener shares the limits
	accepted, refused := connect(t, l, f, 2000, "127.0.0.1:1000")
	more, moreRefused := connect(t, l, f, 4096-2000-1, "10.0.0.1:1000")
	if len(accepted) != 2000 || len(more) != 4096-2000-1 || len(refused)+len(moreRefused) != 0 {
		t.Fatalf("%d and %d accepted", len(accepted), len(more))
	}
	last := &fakeConn{from: "192.0.2.1:1"}
	go func() { f.conns <- last }()
	if _, err := l.Accept(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.connections.TryAcquire(1, other.(*listener).shares(&fakeConn{from: "192.0.2.2:1"})...); err == nil {
		t.Error("the limit of all connections is not kept")
	}
	for _, one := range append(accepted, more...) {
		_ = one.Close()
	}
	if used, _ := c.connections.usage(); used != 1 || len(c.connections.accounts) != 1 {
		t.Errorf("%d connections of %d addresses are counted after all but one were closed", used, len(c.connections.accounts))
	}
}

func TestListenerEndsWithTheOneBelow(t *testing.T) {
	t.Parallel()
	f, l := newFakeListener(newCapacity())
	close(f.conns)
	if _, err := l.Accept(); err == nil {
		t.Error("Accept returns no error after its listener was closed")
	}
}
