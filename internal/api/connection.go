package api

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
)

const (
	maxConnections        = 4096
	maxAddressConnections = 256
)

// LimitConnections returns a listener that closes a connection at once when
// there are too many, in total or from its address. It does not make them wait:
// slow clients could then keep all others out. Connections from the same machine
// come from a proxy, so only the total counts for them.
func LimitConnections(l net.Listener) net.Listener {
	return &limitedListener{Listener: l, open: make(map[netip.Addr]int)}
}

type limitedListener struct {
	net.Listener
	mu    sync.Mutex
	total int
	open  map[netip.Addr]int
}

// Accept returns the next connection that is within the limits.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		address := remoteAddress(conn)
		if l.add(address) {
			return &limitedConn{Conn: conn, onClose: sync.OnceFunc(func() { l.remove(address) })}, nil
		}
		_ = conn.Close() // there are too many connections
	}
}

func remoteAddress(conn net.Conn) netip.Addr {
	address, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return address.Addr().Unmap()
}

func (l *limitedListener) add(address netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.total >= maxConnections || (l.open[address] >= maxAddressConnections && !address.IsLoopback()) {
		return false
	}
	l.total++
	l.open[address]++
	return true
}

func (l *limitedListener) remove(address netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	if l.open[address]--; l.open[address] == 0 {
		delete(l.open, address)
	}
}

// limitedConn is a connection that a limitedListener counts. It reads the
// headers of requests along with the server, to find requests that have both
// Content-Length and Transfer-Encoding: net/http hides the former.
type limitedConn struct {
	net.Conn
	onClose func()

	inBody    atomic.Bool // the header of the current request has been read
	ambiguous atomic.Bool // the last header had both Content-Length and Transfer-Encoding
	length    bool        // the current header has Content-Length; used by Read only
	chunks    bool        // the current header has Transfer-Encoding; used by Read only
}

// Read reads from the connection and inspects the bytes of headers.
func (c *limitedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.inBody.Load() {
		c.inspectHeader(b[:n])
	}
	return n, err
}

// inspectHeader records which header fields give the length of the body. It
// misses a name that the client sends in two pieces. That is harmless: the
// server reads the chunks, and closes the connection after the answer.
func (c *limitedConn) inspectHeader(b []byte) {
	header, _, ended := bytes.Cut(b, []byte("\r\n\r\n"))
	for line := range bytes.Lines(header) {
		name, _, _ := bytes.Cut(line, []byte(":"))
		c.length = c.length || bytes.EqualFold(name, []byte("Content-Length"))
		c.chunks = c.chunks || bytes.EqualFold(name, []byte("Transfer-Encoding"))
	}
	if ended {
		c.ambiguous.Store(c.length && c.chunks)
		c.inBody.Store(true)
		c.length, c.chunks = false, false
	}
}

type connKey struct{}

// rememberConn puts the connection into the context of its requests.
func rememberConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// hasLengthAndChunks reports whether the request has both Content-Length and
// Transfer-Encoding. A proxy may then see another body than the server does
// (RFC 9112 §6.1).
func hasLengthAndChunks(r *http.Request) bool {
	c, ok := r.Context().Value(connKey{}).(*limitedConn)
	return ok && len(r.TransferEncoding) > 0 && c.ambiguous.Load()
}

// expectHeader makes the connection of r inspect the next bytes as the header
// of a new request.
func expectHeader(r *http.Request) {
	if c, ok := r.Context().Value(connKey{}).(*limitedConn); ok {
		c.inBody.Store(false)
	}
}

// CloseWrite closes the sending side. net/http calls it before it closes the
// connection of a client that is still sending: Close alone would reset the
// connection, and the client would lose the answer.
func (c *limitedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close closes the connection and no longer counts it.
func (c *limitedConn) Close() error {
	defer c.onClose()
	return c.Conn.Close()
}
