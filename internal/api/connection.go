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

// LimitConnections closes what exceeds the bounds at once: a listener that
// waited would let the slow keep everybody else out. Connections of the
// machine itself come from a proxy and are bounded in total only.
func LimitConnections(l net.Listener) net.Listener {
	return &limitedListener{Listener: l, open: make(map[netip.Addr]int)}
}

type limitedListener struct {
	net.Listener
	mu    sync.Mutex
	total int
	open  map[netip.Addr]int
}

// Accept waits for a connection within the bounds.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		address := remoteAddress(conn)
		if l.enter(address) {
			return &limitedConn{Conn: conn, leave: sync.OnceFunc(func() { l.leave(address) })}, nil
		}
		_ = conn.Close() // it was refused
	}
}

func remoteAddress(conn net.Conn) netip.Addr {
	address, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return address.Addr().Unmap()
}

func (l *limitedListener) enter(address netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.total >= maxConnections || (l.open[address] >= maxAddressConnections && !address.IsLoopback()) {
		return false
	}
	l.total++
	l.open[address]++
	return true
}

func (l *limitedListener) leave(address netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	if l.open[address]--; l.open[address] == 0 {
		delete(l.open, address)
	}
}

// limitedConn is a connection with a place. It looks at the heads of requests
// for what the server no longer shows: a length that stood beside chunks.
type limitedConn struct {
	net.Conn
	leave func()

	past      atomic.Bool // the head has been read: what comes is no head
	ambiguous atomic.Bool // the last head had a length and chunks
	length    bool        // of the head under way; the reader's
	chunks    bool
}

// Read reads, and looks at what belongs to a head.
func (c *limitedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.past.Load() {
		c.look(b[:n])
	}
	return n, err
}

// look notes how the head under way gives the length of its body. A client that
// hides a name by sending it in pieces gets past here, and gains nothing: the
// server goes by the chunks, and the connection ends with the answer.
func (c *limitedConn) look(b []byte) {
	head, _, ended := bytes.Cut(b, []byte("\r\n\r\n"))
	for line := range bytes.Lines(head) {
		name, _, _ := bytes.Cut(line, []byte(":"))
		c.length = c.length || bytes.EqualFold(name, []byte("Content-Length"))
		c.chunks = c.chunks || bytes.EqualFold(name, []byte("Transfer-Encoding"))
	}
	if ended {
		c.ambiguous.Store(c.length && c.chunks)
		c.past.Store(true)
		c.length, c.chunks = false, false
	}
}

type connKey struct{}

// rememberConn lets the requests of a plain connection find it.
func rememberConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// ambiguous tells that a proxy may have read another body than we do, by a
// length that stood beside the chunks (RFC 9112 §6.1).
func ambiguous(r *http.Request) bool {
	c, ok := r.Context().Value(connKey{}).(*limitedConn)
	return ok && len(r.TransferEncoding) > 0 && c.ambiguous.Load()
}

// nextHead says that what is read from now on is the head of another request.
func nextHead(r *http.Request) {
	if c, ok := r.Context().Value(connKey{}).(*limitedConn); ok {
		c.past.Store(false)
	}
}

// CloseWrite ends what is sent. The server asks for it before it closes on a
// client that is still sending: a close alone would be a reset, and the answer
// would be lost with it.
func (c *limitedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close closes the connection and frees its place.
func (c *limitedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
