package capacity

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// A client must take writeStep bytes of an answer in writeTime.
	writeStep = 32 << 10
	writeTime = 15 * time.Second

	// How long a closed connection is still read, and how much, so that its client
	// gets the answer.
	lingerTime  = 2 * time.Second
	lingerBytes = 16 << 20
)

// conn is a connection that counts against the limits.
type conn struct {
	net.Conn
	hold *Hold

	framing   framing     // used by Read only
	ambiguous atomic.Bool // framing.both
	ended     atomic.Bool // the client has closed its side
	closed    atomic.Bool

	mu       sync.Mutex
	deadline time.Time // of writes, as the server has set it
}

func newConn(c net.Conn, hold *Hold) *conn { return &conn{Conn: c, hold: hold} }

// Read reads from the connection and inspects the headers.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.closed.Load() {
		return 0, net.ErrClosed
	}
	if !c.framing.done {
		c.framing.read(b[:n])
		if c.framing.both {
			c.ambiguous.Store(true)
		}
	}
	if n == 0 && err != nil && !isTimeout(err) {
		c.ended.Store(true)
	}
	return n, err
}

func isTimeout(err error) bool {
	network, ok := err.(net.Error) //nolint:errorlint // a connection returns it as it is
	return ok && network.Timeout()
}

// SetWriteDeadline sets the deadline of all following writes.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline sets the deadlines of reads and writes.
func (c *conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// Write writes in steps. It fails when the client takes too long for one of them,
// even if the deadline of the whole answer is later.
func (c *conn) Write(b []byte) (written int, err error) {
	for {
		step := b[written:min(len(b), written+writeStep)]
		if err := c.limitStep(); err != nil {
			return written, err
		}
		n, err := c.Conn.Write(step)
		written += n
		if err != nil || written == len(b) {
			return written, err
		}
	}
}

// limitStep sets the deadline of the next step.
func (c *conn) limitStep() error {
	limit := time.Now().Add(writeTime) //nolint:forbidigo // deadlines of a connection use the clock of the machine
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.deadline.IsZero() && c.deadline.Before(limit) {
		limit = c.deadline
	}
	return c.Conn.SetWriteDeadline(limit)
}

// CloseWrite closes the sending side.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close closes the connection. A client that is still sending would lose the answer
// if the connection were closed at once, because the operating system resets a
// connection with bytes that were not read. So Close ends the sending side, and the
// rest of the request is read and dropped for a short time, by a goroutine that ends
// by itself: a process that stops need not wait for it. The connection counts until
// then.
func (c *conn) Close() error {
	if c.closed.Swap(true) {
		return net.ErrClosed
	}
	if c.ended.Load() || c.CloseWrite() != nil {
		return c.end()
	}
	_ = c.SetReadDeadline(time.Unix(1, 0)) // ends a Read of the server; linger notices an error
	go c.linger()
	return nil
}

func (c *conn) linger() {
	defer func() { _ = c.end() }()      // the client has the answer or has left
	limit := time.Now().Add(lingerTime) //nolint:forbidigo // as in limitStep
	if c.SetReadDeadline(limit) != nil {
		return
	}
	rest := make([]byte, 8<<10)
	for read := 0; read < lingerBytes; {
		n, err := c.Conn.Read(rest)
		if err != nil {
			return
		}
		read += n
	}
}

func (c *conn) end() error {
	defer c.hold.Release()
	return c.Conn.Close()
}

type connKey struct{}

// RememberConn puts a connection into the context of its requests. It is a
// ConnContext of an http.Server.
func RememberConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// HasLengthAndChunks reports whether a request has both Content-Length and
// Transfer-Encoding. A proxy may then see another body than the server does
// (RFC 9112 §6.1).
func HasLengthAndChunks(r *http.Request) bool {
	c, ok := r.Context().Value(connKey{}).(*conn)
	return ok && mayHaveChunks(r) && c.ambiguous.Load()
}

// mayHaveChunks reports whether a request may have Transfer-Encoding. net/http ignores and
// hides that of HTTP/1.0.
func mayHaveChunks(r *http.Request) bool {
	return len(r.TransferEncoding) > 0 || !r.ProtoAtLeast(1, 1)
}

// CloseAfterChunks returns a handler that closes the connection after a request that may
// have Transfer-Encoding. The request may have a Content-Length too, which net/http
// hides, and with TLS the service cannot see it. A proxy may have used the other one, so
// the connection must not be used again.
func CloseAfterChunks(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if mayHaveChunks(r) {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}
