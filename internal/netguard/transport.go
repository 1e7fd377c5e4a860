package netguard

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// Options configure a guarded transport. Zero fields mean the defaults.
type Options struct {
	// Resolver looks up names. Default: the resolver of the system.
	Resolver *net.Resolver
	// TLS is the configuration that verifies servers. Default: the roots of the system.
	TLS *tls.Config
	// Connect, Handshake and FirstByte are the time limits of the parts of a call.
	// Defaults: 5 s, 5 s and 10 s. The caller limits the whole call.
	Connect, Handshake, FirstByte time.Duration
}

// Transport returns a transport that refuses the addresses that the guard refuses.
// Call its RoundTrip, or use it in a client that follows no redirects and keeps no
// cookies. The transport ignores the proxy of the environment, because the guard would
// then check the address of the proxy only.
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
		MaxIdleConnsPerHost:    64,               // one host may serve the endpoints of many taxpayers
		IdleConnTimeout:        30 * time.Second, // before most servers close the connection
		MaxResponseHeaderBytes: 16 << 10,
		DisableCompression:     true, // so that size limits apply to the bytes on the network
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
