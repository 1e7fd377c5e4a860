package capacity

import (
	"net"
	"net/netip"
)

// Listen returns a listener that closes a connection at once when there are too
// many, in all or from its address. It does not make them wait: slow clients could
// then keep all others out. All listeners of a Capacity share the limits. A
// connection from the same machine or from a trusted proxy may serve many clients,
// so only the total counts for it.
func (c *Capacity) Listen(l net.Listener, proxies *ClientFinder) net.Listener {
	return &listener{Listener: l, capacity: c, proxies: proxies}
}

type listener struct {
	net.Listener
	capacity *Capacity
	proxies  *ClientFinder
}

// Accept returns the next connection that is within the limits.
func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if hold, err := l.capacity.connections.TryAcquire(1, l.shares(conn)...); err == nil {
			return newConn(conn, hold), nil
		}
		_ = conn.Close() // there are too many connections
	}
}

// shares returns the account of a connection, if it has one.
func (l *listener) shares(conn net.Conn) []Share {
	peer, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return nil
	}
	a := peer.Addr().Unmap()
	if a.IsLoopback() || l.proxies.IsProxy(a) {
		return nil
	}
	return []Share{{Kind: Address, Name: AddressOf(a), Max: int64(l.capacity.limits.AddressConnections)}}
}
