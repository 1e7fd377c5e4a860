package xmlsig

import (
	"crypto"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// What may be wrong with a certificate or its key.
var (
	ErrKeyMismatch = errors.New("xmlsig: the private key is not the certificate's")
	ErrWeakKey     = errors.New("xmlsig: the key must be RSA of 2048 bits or more")
	ErrExpired     = errors.New("xmlsig: the certificate has expired")
	ErrNotYetValid = errors.New("xmlsig: the certificate is not valid yet")
)

const minKeyBits = 2048

// An Identity is who signs: a certificate and its key. The key may be in memory
// or in a hardware module.
type Identity struct {
	Certificate *x509.Certificate

	key     crypto.Signer
	encoded string // the certificate as it stands in a signature
}

// NewIdentity puts a certificate and a key together, and proves that they
// belong together.
func NewIdentity(certificate *x509.Certificate, key crypto.Signer) (*Identity, error) {
	public, ok := certificate.PublicKey.(*rsa.PublicKey)
	if !ok || public.N.BitLen() < minKeyBits {
		return nil, ErrWeakKey
	}
	if !public.Equal(key.Public()) {
		return nil, ErrKeyMismatch
	}
	return &Identity{certificate, key, base64.StdEncoding.EncodeToString(certificate.Raw)}, nil
}

// Check reports whether the certificate may sign at an instant.
func (id *Identity) Check(at time.Time) error { return checkValidity(id.Certificate, at) }

func checkValidity(c *x509.Certificate, at time.Time) error {
	switch {
	case at.After(c.NotAfter):
		return fmt.Errorf("%w: it was valid until %s", ErrExpired, c.NotAfter.UTC().Format(time.RFC3339))
	case at.Before(c.NotBefore):
		return fmt.Errorf("%w: it is valid from %s", ErrNotYetValid, c.NotBefore.UTC().Format(time.RFC3339))
	}
	return nil
}

// PKCS8 returns the private key for storage, when it is in memory.
func (id *Identity) PKCS8() ([]byte, error) { return x509.MarshalPKCS8PrivateKey(id.key) }

// String tells who it is, and never the key.
func (id *Identity) String() string { return id.Certificate.Subject.String() }

// GoString tells who it is, and never the key.
func (id *Identity) GoString() string { return id.String() }

// LogValue tells who it is, and never the key.
func (id *Identity) LogValue() slog.Value { return slog.StringValue(id.String()) }

// Person returns the identifier of the person whom a certificate names: the
// X.520 serial number of its subject without the prefix of its kind, as in
// IDCDO-00112345678. It is empty when the subject has none.
func Person(c *x509.Certificate) string {
	serial := strings.TrimSpace(c.Subject.SerialNumber)
	if len(serial) > 6 && isUpper(serial[3]) && isUpper(serial[4]) && serial[5] == '-' {
		switch serial[:3] {
		case "IDC", "PAS", "TIN", "VAT":
			return serial[6:]
		}
	}
	return strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, serial)
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
