package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// tlsReload is how often the service looks at the files of its certificate.
const tlsReload = 2 * time.Second

// tlsFlags are the flags of serve about TLS.
type tlsFlags struct {
	TLSCert string `name:"tls-cert" help:"Certificate chain file. With --tls-key the service answers with TLS. It reads both files again when they change." placeholder:"FILE"`
	TLSKey  string `name:"tls-key" help:"Private key file of the certificate." placeholder:"FILE"`
	// Browsers let their user choose a certificate when a server asks for one. So the
	// service asks only if an operator wants it.
	TLSClientCertificates bool `name:"tls-client-certificates" help:"Ask the clients of the API for a certificate, for credentials that are bound to one."`
}

// certificate reads the certificate of the service. It returns nil without one.
func (c tlsFlags) certificate() (*servedCertificate, error) {
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return nil, wrongUsage("--tls-cert and --tls-key must be given together",
			"--tls-cert y --tls-key deben indicarse juntos")
	}
	if c.TLSCert == "" && c.TLSClientCertificates {
		return nil, wrongUsage("--tls-client-certificates needs --tls-cert and --tls-key",
			"--tls-client-certificates requiere --tls-cert y --tls-key")
	}
	if c.TLSCert == "" {
		return nil, nil
	}
	served := &servedCertificate{certFile: c.TLSCert, keyFile: c.TLSKey}
	pair, seen, err := served.read()
	if err != nil {
		return nil, lang.Errorf("--tls-cert and --tls-key cannot be used: %s", "--tls-cert y --tls-key no se pueden usar: %s", err)
	}
	served.current.Store(pair)
	served.loaded = seen
	return served, nil
}

// servedCertificate is the certificate that the service shows to its clients. It follows
// the files: new connections get the new certificate, open connections continue.
type servedCertificate struct {
	certFile, keyFile string
	current           atomic.Pointer[tls.Certificate]

	// Digests of what was in the files. Only watch uses them after the start.
	loaded   [sha256.Size]byte // when current was read
	broken   [sha256.Size]byte // when they could not be used the last time
	reported [sha256.Size]byte // when the log said so the last time
}

// config returns the settings of the listeners. TLS 1.2 is for clients that do not know
// 1.3, and only with forward secrecy and authenticated encryption.
func (c *servedCertificate) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		CipherSuites: []uint16{
			tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
			tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
		},
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current.Load(), nil },
	}
}

// wrap adds TLS to a listener. Without a certificate it returns the listener. With ask it
// asks clients for a certificate. A client needs none, and any certificate will do: a
// credential names the certificates that it accepts.
func (c *servedCertificate) wrap(l net.Listener, ask bool) net.Listener {
	if c == nil {
		return l
	}
	config := c.config()
	if ask {
		config.ClientAuth = tls.RequestClientCert
	}
	return tls.NewListener(l, config)
}

// read reads both files. It also returns a digest of what it found, even when it fails.
func (c *servedCertificate) read() (*tls.Certificate, [sha256.Size]byte, error) {
	chain, errChain := os.ReadFile(c.certFile)
	key, errKey := os.ReadFile(c.keyFile)
	seen := sha256.Sum256(fmt.Appendf(nil, "%d %s%d %s%v", len(chain), chain, len(key), key, errors.Join(errChain, errKey)))
	if err := cmp.Or(errChain, errKey); err != nil {
		return nil, seen, err
	}
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return nil, seen, err
	}
	return &pair, seen, nil
}

// run reads the files again when they have changed, until ctx ends. On SIGHUP it does so
// at once.
func (c *servedCertificate) run(ctx context.Context, log *slog.Logger) {
	hangUp := make(chan os.Signal, 1)
	signal.Notify(hangUp, syscall.SIGHUP)
	defer signal.Stop(hangUp)
	tick := time.NewTicker(tlsReload)
	defer tick.Stop()
	if leaf := c.current.Load().Leaf; time.Now().After(leaf.NotAfter) {
		log.Error("The TLS certificate of the service has expired. Clients refuse it. Replace the files of --tls-cert and --tls-key.", "not_after", formatTime(leaf.NotAfter))
	}
	c.watch(ctx, log, tick.C, hangUp)
}

// watch is run with the clock and the signal of the caller.
func (c *servedCertificate) watch(ctx context.Context, log *slog.Logger, tick <-chan time.Time, hangUp <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick:
			c.reload(log, now, false)
		case <-hangUp:
			c.reload(log, time.Now(), true)
		}
	}
}

// reload reads the files. When they cannot be used, the old certificate stays. A program
// that replaces the two files one after the other leaves them different for a moment: the
// log says so only when nothing has changed at the next look, or when an operator asked.
func (c *servedCertificate) reload(log *slog.Logger, now time.Time, asked bool) {
	pair, seen, err := c.read()
	if err == nil && seen == c.loaded {
		if asked {
			log.Info("The files of the TLS certificate have not changed.")
		}
		return
	}
	if err == nil && now.After(pair.Leaf.NotAfter) {
		err = lang.Errorf("the certificate expired at %s",
			"el certificado venció el %s", formatTime(pair.Leaf.NotAfter))
	}
	if err == nil {
		c.current.Store(pair)
		c.loaded = seen
		log.Info("The service has read a new TLS certificate. New connections get it, and open connections continue.",
			"serial", fmt.Sprintf("%X", pair.Leaf.SerialNumber), "not_after", formatTime(pair.Leaf.NotAfter))
		return
	}
	if (asked || seen == c.broken) && seen != c.reported {
		log.Error("The new TLS certificate cannot be used. The service continues with the old one, and reads the files of --tls-cert and --tls-key again when they change.",
			"error", err.Error(), "not_after", formatTime(c.current.Load().Leaf.NotAfter))
		c.reported = seen
	}
	c.broken = seen
}
