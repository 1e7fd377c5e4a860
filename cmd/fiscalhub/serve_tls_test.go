package main

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

// tlsEnv is the two files of a certificate.
type tlsEnv struct {
	t     *testing.T
	flags tlsFlags
}

func newTLSEnv(t *testing.T, first harness.Identity) *tlsEnv {
	t.Helper()
	dir := t.TempDir()
	e := &tlsEnv{t: t, flags: tlsFlags{TLSCert: filepath.Join(dir, "cert.pem"), TLSKey: filepath.Join(dir, "key.pem")}}
	e.write(first.Chain, first.Key)
	return e
}

func (e *tlsEnv) write(chain, key []byte) {
	e.t.Helper()
	harness.Identity{Chain: chain, Key: key}.Write(e.t, e.flags.TLSCert, e.flags.TLSKey)
}

// serial makes a new connection and returns the serial number of the certificate.
func serial(t *testing.T, address string, change func(*tls.Config)) (int64, error) {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true}
	if change != nil {
		change(config)
	}
	conn, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.Int64(), nil
}

// listenTLS serves with the certificate of the files.
func (e *tlsEnv) listenTLS() (*servedCertificate, string) {
	e.t.Helper()
	served, err := e.flags.certificate()
	if err != nil {
		e.t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(e.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		e.t.Fatal(err)
	}
	server := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(served.wrap(listener, false)) })
	e.t.Cleanup(func() {
		_ = server.Close()
		running.Wait()
	})
	return served, listener.Addr().String()
}

func TestOldTLSIsRefused(t *testing.T) {
	t.Parallel()
	_, address := newTLSEnv(t, harness.NewIdentity(t, 1, time.Now().Add(time.Hour))).listenTLS()
	for _, tt := range []struct {
		name    string
		version uint16
		suite   uint16
		want    bool
	}{
		{"TLS 1.0", tls.VersionTLS10, 0, false},
		{"TLS 1.1", tls.VersionTLS11, 0, false},
		{"TLS 1.2", tls.VersionTLS12, 0, true},
		{"TLS 1.2 with AES-GCM", tls.VersionTLS12, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, true},
		{"TLS 1.2 with CBC", tls.VersionTLS12, tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, false},
		{"TLS 1.2 with RC4", tls.VersionTLS12, tls.TLS_ECDHE_ECDSA_WITH_RC4_128_SHA, false},
		{"TLS 1.3", tls.VersionTLS13, 0, true},
	} {
		_, err := serial(t, address, func(c *tls.Config) {
			c.MinVersion, c.MaxVersion = tt.version, tt.version
			if tt.suite != 0 {
				c.CipherSuites = []uint16{tt.suite}
			}
		})
		if (err == nil) != tt.want {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// New connections get the new certificate, and a connection that was open before
// continues. Files that cannot be used change nothing, and the log says so once.
func TestTheCertificateIsReloaded(t *testing.T) {
	t.Parallel()
	hour := time.Now().Add(time.Hour)
	e := newTLSEnv(t, harness.NewIdentity(t, 1, hour))
	served, address := e.listenTLS()
	log, tick, hangUp := &harness.Output{}, make(chan time.Time), make(chan os.Signal)
	ctx, stop := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() { served.watch(ctx, slog.New(slog.NewTextHandler(log, nil)), tick, hangUp) })
	defer watching.Wait()
	defer stop()
	look := func() {
		tick <- time.Now()
		tick <- time.Now() // watch receives it after the first look
	}
	wantSerial := func(what string, want int64) {
		t.Helper()
		if got, err := serial(t, address, nil); err != nil || got != want {
			t.Errorf("%s: serial %d, %v; want %d", what, got, err, want)
		}
	}
	old := openConnection(t, address)
	wantSerial("at the start", 1)

	second := harness.NewIdentity(t, 2, hour)
	e.write(second.Chain, second.Key)
	look()
	wantSerial("new files", 2)
	if reused := old(); !reused {
		t.Error("the open connection was closed")
	}

	third, expired := harness.NewIdentity(t, 3, hour), harness.NewIdentity(t, 4, time.Now().Add(-time.Hour))
	for name, broken := range map[string]harness.Identity{
		"no certificate": {Chain: []byte("garbage"), Key: third.Key}, "another key": {Chain: third.Chain, Key: second.Key}, "empty": {}, "expired": expired,
	} {
		before := strings.Count(log.String(), "level=ERROR")
		e.write(broken.Chain, broken.Key)
		tick <- time.Now()
		look()
		look()
		wantSerial(name, 2)
		if n := strings.Count(log.String(), "level=ERROR") - before; n != 1 {
			t.Errorf("%s: %d errors in the log, want 1:\n%s", name, n, log)
		}
	}
	e.write(third.Chain, third.Key)
	hangUp <- syscall.SIGHUP
	hangUp <- syscall.SIGHUP
	wantSerial("after SIGHUP", 3)
	if !strings.Contains(log.String(), "new TLS certificate") || strings.Contains(log.String(), "PRIVATE") {
		t.Errorf("the log:\n%s", log)
	}
}

// openConnection makes an HTTP connection. The function that it returns sends another
// request, and reports whether it used that connection.
func openConnection(t *testing.T, address string) func() bool {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.Cleanup(transport.CloseIdleConnections)
	get := func() (reused bool) {
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { reused = i.Reused }})
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/", nil)
		must(t, err)
		resp, err := transport.RoundTrip(r)
		must(t, err)
		_, err = io.Copy(io.Discard, resp.Body)
		must(t, errors.Join(err, resp.Body.Close()))
		return reused
	}
	get()
	return get
}

// The process sees a changed file within seconds, and SIGHUP does not end it.
func TestServeReloadsItsCertificate(t *testing.T) {
	t.Parallel()
	hour := time.Now().Add(time.Hour)
	e := newTLSEnv(t, harness.NewIdentity(t, 1, hour))
	server := harness.Serve(t, "--data", t.TempDir(), "--no-bootstrap", "--tls-cert", e.flags.TLSCert, "--tls-key", e.flags.TLSKey)
	address, ok := strings.CutPrefix(server.Base, "https://")
	if !ok {
		t.Fatalf("the service is at %s", server.Base)
	}
	for n, announce := range []func(){func() {}, func() { server.Signal(t, syscall.SIGHUP) }} {
		next := harness.NewIdentity(t, int64(n+2), hour)
		e.write(next.Chain, next.Key)
		announce()
		harness.Eventually(t, 20*time.Second, "the new certificate is served", func() bool {
			got, err := serial(t, address, nil)
			return err == nil && got == int64(n+2)
		})
	}
}

// A credential that is bound to a client certificate works only on a connection that was
// made with this certificate and its key.
func TestServeAsksForClientCertificates(t *testing.T) {
	t.Parallel()
	hour := time.Now().Add(time.Hour)
	e, client, stranger := newTLSEnv(t, harness.NewIdentity(t, 1, hour)), harness.NewIdentity(t, 2, hour), harness.NewIdentity(t, 3, hour)
	data, file := t.TempDir(), filepath.Join(t.TempDir(), "client.pem")
	must(t, os.WriteFile(file, client.Chain, 0o600))
	server := harness.Serve(t, "--data", data, "--tls-cert", e.flags.TLSCert, "--tls-key", e.flags.TLSKey, "--tls-client-certificates")
	bound := harness.Ask(t, "api_key", "credential", "create", "--data", data, "--taxpayer", server.Taxpayer, "--environment", "sandbox",
		"--scope", "invoices.read", "--client-certificate", file)
	get := func(key string, with *harness.Identity) int {
		t.Helper()
		config := &tls.Config{InsecureSkipVerify: true}
		if with != nil {
			pair, err := tls.X509KeyPair(with.Chain, with.Key)
			must(t, err)
			config.Certificates = []tls.Certificate{pair}
		}
		transport := &http.Transport{TLSClientConfig: config}
		defer transport.CloseIdleConnections()
		got, err := (&harness.Client{Taxpayer: server.Taxpayer, Key: key, HTTP: &http.Client{Transport: transport}}).Get(t.Context(), server.Base, "invoices")
		must(t, err)
		return got.Status
	}
	for name, tt := range map[string]struct {
		key  string
		with *harness.Identity
		want int
	}{
		"its certificate":                  {bound, &client, http.StatusOK},
		"no certificate":                   {bound, nil, http.StatusForbidden},
		"another certificate":              {bound, &stranger, http.StatusForbidden},
		"a credential without certificate": {server.Key, nil, http.StatusOK},
		"a certificate that is not needed": {server.Key, &stranger, http.StatusOK},
	} {
		if got := get(tt.key, tt.with); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}
