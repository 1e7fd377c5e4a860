package api

import (
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"
)

// visitor is a connection from wherever a test says.
type visitor struct {
	net.Conn
	from   string
	closed int
}

func (v *visitor) RemoteAddr() net.Addr { return address(v.from) }

func (v *visitor) Close() error {
	v.closed++
	return nil
}

type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

// door is a listener to which the test sends connections.
type door struct {
	net.Listener
	visitors chan *visitor
}

func (d *door) Accept() (net.Conn, error) {
	v, ok := <-d.visitors
	if !ok {
		return nil, net.ErrClosed
	}
	return v, nil
}

// knock sends connections and returns those that were let in and the others.
func knock(t *testing.T, l net.Listener, d *door, n int, from string) (in []net.Conn, refused []*visitor) {
	t.Helper()
	sent := make([]*visitor, n)
	for i := range sent {
		sent[i] = &visitor{from: from}
	}
	// The last one always comes in, so that Accept returns.
	last := &visitor{from: "127.0.0.9:1"}
	go func() {
		for _, v := range append(sent, last) {
			d.visitors <- v
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
		in = append(in, conn)
	}
	for _, v := range sent {
		if v.closed > 0 {
			refused = append(refused, v)
		}
	}
	return in, refused
}

func newDoor() (*door, net.Listener) {
	d := &door{visitors: make(chan *visitor)}
	return d, LimitConnections(d)
}

func TestLimitConnectionsOfAnAddress(t *testing.T) {
	t.Parallel()
	d, l := newDoor()
	in, refused := knock(t, l, d, maxAddressConnections+10, "192.0.2.1:1000")
	if len(in) != maxAddressConnections || len(refused) != 10 {
		t.Fatalf("%d in and %d refused", len(in), len(refused))
	}
	if more, _ := knock(t, l, d, 1, "[::ffff:192.0.2.1]:1000"); len(more) != 0 {
		t.Error("the same address inside IPv6 is let in")
	}
	if more, _ := knock(t, l, d, 1, "192.0.2.2:1000"); len(more) != 1 {
		t.Error("another address is kept out")
	}
	_ = in[0].Close()
	_ = in[0].Close() // closing twice frees one place
	if more, _ := knock(t, l, d, 3, "192.0.2.1:1000"); len(more) != 1 {
		t.Errorf("%d let in for one that left", len(more))
	}
}

func TestLimitConnectionsInTotal(t *testing.T) {
	t.Parallel()
	d, l := newDoor()
	// The machine's own come from a proxy, for many clients.
	in, refused := knock(t, l, d, maxConnections-1, "127.0.0.1:1000")
	if len(in) != maxConnections-1 || len(refused) != 0 {
		t.Fatalf("%d in and %d refused", len(in), len(refused))
	}
	listener := l.(*limitedListener)
	if !listener.enter(netip.MustParseAddr("192.0.2.1")) || listener.enter(netip.MustParseAddr("192.0.2.2")) {
		t.Error("the bound of all connections is not kept")
	}
	for _, c := range in {
		_ = c.Close()
	}
	listener.leave(netip.MustParseAddr("192.0.2.1"))
	if listener.total != 0 || len(listener.open) != 0 {
		t.Errorf("%d connections and %d addresses are remembered when all have left", listener.total, len(listener.open))
	}
}

func TestLimitConnectionsEndsWithItsListener(t *testing.T) {
	t.Parallel()
	d, l := newDoor()
	close(d.visitors)
	if _, err := l.Accept(); err == nil {
		t.Error("Accept goes on after its listener has ended")
	}
}

func TestServerHasTheLimitsOfTheService(t *testing.T) {
	t.Parallel()
	s := NewServer(http.NotFoundHandler(), slog.New(slog.DiscardHandler))
	for name, got := range map[string][2]time.Duration{
		"ReadHeaderTimeout": {s.ReadHeaderTimeout, 5 * time.Second},
		"ReadTimeout":       {s.ReadTimeout, 30 * time.Second},
		"WriteTimeout":      {s.WriteTimeout, 60 * time.Second},
		"IdleTimeout":       {s.IdleTimeout, 120 * time.Second},
	} {
		if got[0] != got[1] {
			t.Errorf("%s is %s, want %s", name, got[0], got[1])
		}
	}
	if s.MaxHeaderBytes+(4<<10) != 16<<10 || s.HTTP2.MaxConcurrentStreams != 128 {
		t.Errorf("headers of %d bytes, %d streams", s.MaxHeaderBytes, s.HTTP2.MaxConcurrentStreams)
	}
}

func TestFiguresAreForTheMachineItself(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, peer, forwarded string
		want                  bool
	}{
		{"loopback", "127.0.0.1:1", "", true},
		{"loopback on IPv6", "[::1]:1", "", true},
		{"loopback inside IPv6", "[::ffff:127.0.0.1]:1", "", true},
		{"another machine", "192.0.2.1:1", "", false},
		{"another machine through a proxy here", "127.0.0.1:1", "192.0.2.1", false},
		{"no address", "pipe", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := &http.Request{RemoteAddr: tt.peer, Header: http.Header{}}
			if tt.forwarded != "" {
				r.Header.Set("X-Forwarded-For", tt.forwarded)
			}
			if got := loopback(r); got != tt.want {
				t.Errorf("loopback = %v", got)
			}
		})
	}
}
