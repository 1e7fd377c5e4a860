package simulator

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
)

// TLSConfig returns the configuration of a listener with a certificate of the simulator's
// root. It is fault F23: kind is valid, expired, wrong-host or tls11. Use it with
// httptest.NewUnstartedServer or an http.Server.
func (s *Simulator) TLSConfig(kind string) (*tls.Config, error) {
	now := s.clock.now()
	from, to, host := now.AddDate(0, 0, -1), now.AddDate(1, 0, 0), "localhost"
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	switch kind {
	case "valid":
	case "expired":
		from, to = now.AddDate(-1, 0, 0), now.AddDate(0, 0, -1)
	case "wrong-host":
		host = "otro.invalid"
	case "tls11":
		config.MinVersion, config.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	default:
		return nil, fmt.Errorf("simulator: tls %q must be valid, expired, wrong-host or tls11", kind)
	}
	key, err := personKey()
	if err != nil {
		return nil, fmt.Errorf("simulator: key: %w", err)
	}
	a := s.currentCA()
	template := &x509.Certificate{
		SerialNumber: a.nextSerial(), Subject: pkix.Name{CommonName: host}, NotBefore: from, NotAfter: to, DNSNames: []string{host},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if kind != "wrong-host" {
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	}
	leaf, err := createCertificate(template, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	config.Certificates = []tls.Certificate{{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}}
	return config, nil
}
