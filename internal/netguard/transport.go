package netguard

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// Options say how guarded calls are made. Zero fields have the defaults that are
// named.
type Options struct {
	// Resolver looks names up; the system's when nil.
	Resolver *net.Resolver
	// TLS is what servers are verified with; the system's roots when nil.
	TLS *tls.Config
	// Connect, Handshake and FirstByte bound the parts of a call: 5 s, 5 s and
	// 10 s. The whole is the caller's to bound.
	Connect, Handshake, FirstByte time.Duration
}

// Transport returns a transport that reaches nothing that the guard refuses. Use
// it with RoundTrip, or with a client that follows no redirect and has no jar of
// cookies. There is no proxy from the environment: it would see the address that
// the guard should.
func Transport(g Guard, o Options) *http.Transport {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.TLS != nil {
		config = o.TLS.Clone()
		config.MinVersion = max(config.MinVersion, tls.VersionTLS12)
	}
	t := &http.Transport{
		DialContext:            g.Dialer(orDefault(o.Connect, 5*time.Second), o.Resolver).DialContext,
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    orDefault(o.Handshake, 5*time.Second),
		ResponseHeaderTimeout:  orDefault(o.FirstByte, 10*time.Second),
		MaxIdleConns:           256,
		MaxIdleConnsPerHost:    4,
		IdleConnTimeout:        30 * time.Second, // before the other side thinks of it
		MaxResponseHeaderBytes: 16 << 10,
		DisableCompression:     true, // limits are of what comes over the wire
		Protocols:              new(http.Protocols),
	}
	t.Protocols.SetHTTP1(true)
	t.Protocols.SetHTTP2(true)
	return t
}

func orDefault(d, value time.Duration) time.Duration {
	if d <= 0 {
		return value
	}
	return d
}
