package simulator

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// openRoot returns the authority of a root with its key, or a new one when there is no
// root.
func openRoot(root []byte, now time.Time) (*certificateAuthority, error) {
	if len(root) > 0 {
		return parseRoot(root, now)
	}
	key, err := rootKey()
	if err != nil {
		return nil, fmt.Errorf("simulator: key: %w", err)
	}
	return newCertificateAuthority("Autoridad del Simulador", key, now)
}

func parseRoot(root []byte, now time.Time) (*certificateAuthority, error) {
	certificate, rest := pem.Decode(root)
	key, _ := pem.Decode(rest)
	if certificate == nil || key == nil {
		return nil, errors.New("simulator: root: a certificate and its key are expected, both as PEM")
	}
	c, err := x509.ParseCertificate(certificate.Bytes)
	if err != nil {
		return nil, fmt.Errorf("simulator: root: %w", err)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(key.Bytes)
	if err != nil {
		return nil, fmt.Errorf("simulator: root: %w", err)
	}
	signer, ok := parsed.(crypto.Signer)
	if public, same := c.PublicKey.(interface{ Equal(crypto.PublicKey) bool }); !ok || !same || !public.Equal(signer.Public()) {
		return nil, errors.New("simulator: root: the key does not belong to the certificate")
	}
	// Certificates of an earlier simulator have lower serial numbers.
	return &certificateAuthority{certificate: c, key: signer, serial: now.UnixMilli(), identities: map[string]*xmlsig.Identity{}}, nil
}

// RootWithKey returns the root and its private key as PEM. A later simulator with this
// root trusts the certificates of this one.
func (s *Simulator) RootWithKey() ([]byte, error) {
	a := s.currentCA()
	key, err := x509.MarshalPKCS8PrivateKey(a.key)
	if err != nil {
		return nil, fmt.Errorf("simulator: root: %w", err)
	}
	return append(certificatePEM(a.certificate), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...), nil
}
