package harness

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"testing"
	"time"
)

// An Identity is a certificate for 127.0.0.1 and other addresses that signs itself.
type Identity struct{ Chain, Key []byte }

// NewIdentity makes a certificate.
func NewIdentity(t *testing.T, serial int64, until time.Time, addresses ...net.IP) Identity {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	shape := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "fiscalhub"}, IPAddresses: append(addresses, net.IPv4(127, 0, 0, 1)),
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: until, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, shape, shape, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return Identity{
		Chain: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:   pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}),
	}
}

// Write writes the files of the certificate and of its key.
func (i Identity) Write(t *testing.T, certificate, key string) {
	t.Helper()
	if err := errors.Join(os.WriteFile(certificate, i.Chain, 0o600), os.WriteFile(key, i.Key, 0o600)); err != nil {
		t.Fatal(err)
	}
}
