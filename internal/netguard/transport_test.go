package netguard

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/netguard/netguardtest"
)

// errStop stops a connection that the guard allows, so that the tests send nothing to
// the network.
var errStop = errors.New("allowed")

// recordAllowed returns a dialer and a function with the addresses that the guard has
// allowed. The guard checks each address as if its port were 443. The dialer really
// connects to loopback addresses, and stops all others.
func recordAllowed(g Guard, resolver *net.Resolver) (*net.Dialer, func() []string) {
	var mu sync.Mutex
	var allowed []string
	d := g.Dialer(5*time.Second, resolver)
	d.Control = func(network, address string, c syscall.RawConn) error {
		at := netip.MustParseAddrPort(address)
		if err := g.Control(network, netip.AddrPortFrom(at.Addr(), 443).String(), c); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		allowed = append(allowed, at.Addr().String())
		if at.Addr().IsLoopback() {
			return nil
		}
		return errStop
	}
	return d, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return allowed
	}
}

// forbiddenListener starts a listener that fails the test when it is reached.
func forbiddenListener(t *testing.T) (port string) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.Close() // nothing was written
			t.Error("the listener was reached")
		}
	}()
	t.Cleanup(func() {
		_ = l.Close() // ends the goroutine
		<-done
	})
	_, port, err = net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// The name resolves to a public address first and to loopback afterwards.
func TestDialerRefusesDNSRebinding(t *testing.T) {
	t.Parallel()
	port := forbiddenListener(t)
	var second atomic.Bool
	d, allowed := recordAllowed(Guard{}, netguardtest.Resolver(func(name string) []netip.Addr {
		if second.Load() {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}
		}
		return []netip.Addr{netip.MustParseAddr("8.8.8.8")}
	}))
	if _, err := d.DialContext(t.Context(), "tcp", "rebind.example.com:"+port); !errors.Is(err, errStop) {
		t.Fatalf("the public address: %v", err)
	}
	second.Store(true)
	if _, err := d.DialContext(t.Context(), "tcp", "rebind.example.com:"+port); !errors.Is(err, ErrAddress) {
		t.Errorf("loopback: %v", err)
	}
	if got := allowed(); len(got) != 1 || got[0] != "8.8.8.8" {
		t.Errorf("the guard allowed %v", got)
	}
}

func TestDialerSkipsRefusedAddresses(t *testing.T) {
	t.Parallel()
	port := forbiddenListener(t)
	for _, tt := range []struct {
		addresses []string
		allowed   string
		err       error
	}{
		{[]string{"127.0.0.1", "8.8.8.8"}, "8.8.8.8", nil},
		{[]string{"10.0.0.1", "::1", "2606:4700::1111", "169.254.169.254"}, "2606:4700::1111", nil},
		{[]string{"127.0.0.1", "::1", "10.0.0.1", "fd00::1", "64:ff9b::7f00:1", "169.254.169.254"}, "", ErrAddress},
	} {
		d, allowed := recordAllowed(Guard{}, netguardtest.Fixed(tt.addresses...))
		_, err := d.DialContext(t.Context(), "tcp", "many.example.com:"+port)
		if err == nil || tt.err != nil && !errors.Is(err, tt.err) {
			t.Errorf("%v: %v", tt.addresses, err)
		}
		if got := strings.Join(allowed(), " "); got != tt.allowed {
			t.Errorf("%v: the guard allowed %q", tt.addresses, got)
		}
	}
}

// startServer starts a server with a certificate for example.com. It returns options
// that resolve every name to that server, and its port as ":port".
func startServer(t *testing.T, start func(*httptest.Server), handler http.HandlerFunc) (Options, string) {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.EnableHTTP2 = true
	start(s)
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	if s.Certificate() != nil {
		roots.AddCert(s.Certificate())
	}
	return Options{Resolver: netguardtest.Fixed("127.0.0.1"), TLS: &tls.Config{RootCAs: roots}}, s.Listener.Addr().String()[strings.LastIndex(s.Listener.Addr().String(), ":"):]
}

func post(t *testing.T, transport *http.Transport, address string) (proto string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	return res.Proto, nil
}

func TestTransportClassifiesFailures(t *testing.T) {
	t.Parallel()
	o, port := startServer(t, (*httptest.Server).StartTLS, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/long" {
			w.Header().Set("X-Long", strings.Repeat("a", 17<<10))
		}
		w.Header().Set("Set-Cookie", "a=b")
		w.WriteHeader(http.StatusNoContent)
	})
	if proto, err := post(t, Transport(Guard{Private: true}, o), "https://example.com"+port); err != nil || proto != "HTTP/2.0" {
		t.Fatalf("%s, %v", proto, err)
	}
	for name, tt := range map[string]struct {
		guard   Guard
		address string
		change  func(*Options)
		class   string
	}{
		"the guard refuses private addresses": {Guard{}, "https://example.com" + port, nil, ClassRefused},
		"an unknown name":                     {Guard{Private: true}, "https://example.com" + port, func(o *Options) { o.Resolver = netguardtest.Fixed() }, ClassDNS},
		"a certificate for another name":      {Guard{Private: true}, "https://example.org" + port, nil, ClassTLS},
		"a certificate of an unknown issuer":  {Guard{Private: true}, "https://example.com" + port, func(o *Options) { o.TLS = nil }, ClassTLS},
		"a port without a listener":           {Guard{Private: true}, "https://example.com:1", nil, ClassConnect},
		"a header that is too long":           {Guard{Private: true}, "https://example.com" + port + "/long", nil, ClassConnect},
	} {
		o := o
		if tt.change != nil {
			tt.change(&o)
		}
		if _, err := post(t, Transport(tt.guard, o), tt.address); err == nil || Class(err) != tt.class {
			t.Errorf("%s: %v", name, err)
		}
	}
	if transport := Transport(Guard{}, Options{}); transport.Proxy != nil || transport.TLSClientConfig.MinVersion != tls.VersionTLS12 ||
		transport.TLSHandshakeTimeout != 5*time.Second || transport.ResponseHeaderTimeout != 10*time.Second || transport.MaxResponseHeaderBytes != 16<<10 {
		t.Errorf("%+v", transport)
	}
}

func TestTransportRefusesOldTLS(t *testing.T) {
	t.Parallel()
	o, port := startServer(t, func(s *httptest.Server) {
		s.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
		s.StartTLS()
	}, func(http.ResponseWriter, *http.Request) { t.Error("the server was called") })
	o.TLS.MinVersion = tls.VersionTLS10
	if _, err := post(t, Transport(Guard{Private: true}, o), "https://example.com"+port); err == nil || Class(err) != ClassTLS {
		t.Errorf("%v", err)
	}
}

func TestTransportTimesOut(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	o, port := startServer(t, (*httptest.Server).Start, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-over:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(over) })
	o.FirstByte = time.Millisecond
	if _, err := post(t, Transport(Guard{Private: true}, o), "http://example.com"+port); err == nil || Class(err) != ClassTimeout {
		t.Errorf("%v", err)
	}
}

func TestClassOfWrappedErrors(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		ClassRefused: &url.Error{Op: "Post", URL: "https://a", Err: &net.OpError{Op: "dial", Err: ErrAddress}},
		ClassDNS:     &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "a", IsTimeout: true}},
		ClassTLS:     &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}},
		ClassTimeout: &url.Error{Op: "Post", URL: "https://a", Err: context.DeadlineExceeded},
		ClassConnect: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
	} {
		if got := Class(err); got != want {
			t.Errorf("%v is %s, want %s", err, got, want)
		}
	}
}
