package dgii

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"
)

const minTLS = tls.VersionTLS12

// newTransport returns a transport whose connections count the bytes written.
//
// HTTP/2 is off: calls would share a connection, so that the bytes of one call
// could not be counted, and net/http repeats requests that an HTTP/2 server turned
// away. A proxy of the process environment is not used: the guard would check the
// address of the proxy instead of the receiver's.
func (c *Client) newTransport(o Options, control func(string, string, syscall.RawConn) error) *http.Transport {
	dial := o.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: c.timeouts.Connect, Control: control}).DialContext
	}
	t := &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &countingConn{Conn: conn}, nil
		},
		TLSHandshakeTimeout:    c.timeouts.TLS,
		ResponseHeaderTimeout:  c.timeouts.FirstByte,
		MaxIdleConnsPerHost:    max(8, o.MaxInFlight),
		IdleConnTimeout:        30 * time.Second, // shorter than the servers' own
		MaxResponseHeaderBytes: 16 << 10,
		DisableCompression:     true, // the limits are for the bytes on the wire
		Protocols:              new(http.Protocols),
	}
	t.Protocols.SetHTTP1(true)
	if o.TLS != nil {
		t.TLSClientConfig = o.TLS.Clone()
		t.TLSClientConfig.MinVersion = max(t.TLSClientConfig.MinVersion, minTLS)
	}
	return t
}

// A countingConn counts the bytes that the network accepted.
type countingConn struct {
	net.Conn
	writing atomic.Int64 // writes under way
	written atomic.Int64 // bytes
	stopped atomic.Bool
}

func (c *countingConn) Write(b []byte) (int, error) {
	c.writing.Add(1)
	defer c.writing.Add(-1)
	if c.stopped.Load() {
		return 0, net.ErrClosed
	}
	n, err := c.Conn.Write(b)
	c.written.Add(int64(n))
	return n, err
}

// stopWrites makes every later write fail. It reports whether the number of bytes
// written is still before, so that nothing was written since.
func (c *countingConn) stopWrites(before int64) bool {
	c.stopped.Store(true)
	return c.writing.Load() == 0 && c.written.Load() == before
}
