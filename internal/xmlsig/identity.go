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

// Why a certificate or its key is refused.
var (
	ErrKeyMismatch = errors.New("xmlsig: the private key does not belong to the certificate")
	ErrWeakKey     = errors.New("xmlsig: the key must be RSA of 2048 bits or more")
	ErrExpired     = errors.New("xmlsig: the certificate has expired")
	ErrNotYetValid = errors.New("xmlsig: the certificate is not valid yet")
)

const minKeyBits = 2048

// An Identity is a certificate and its private key, which signs. The key may be
// in memory or in a hardware module.
type Identity struct {
	Certificate *x509.Certificate

	key     crypto.Signer
	encoded string // the certificate in Base64
}

// NewIdentity returns the identity of a certificate and its key. It fails with
// ErrWeakKey when the key is not RSA of 2048 bits or more, and with
// ErrKeyMismatch when the key is not that of the certificate.
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

// Check fails with ErrExpired or ErrNotYetValid when the certificate is not valid
// at an instant.
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

// PKCS8 returns the private key for storage. It fails when the key is in a
// hardware module.
func (id *Identity) PKCS8() ([]byte, error) { return x509.MarshalPKCS8PrivateKey(id.key) }

// String returns the subject of the certificate, and never the key.
func (id *Identity) String() string { return id.Certificate.Subject.String() }

// GoString returns the subject of the certificate, and never the key.
func (id *Identity) GoString() string { return id.String() }

// LogValue returns the subject of the certificate, and never the key.
func (id *Identity) LogValue() slog.Value { return slog.StringValue(id.String()) }

// Person returns the identifier of the person in a certificate: the X.520 serial
// number of its subject without the prefix for the kind of identifier, as in
// IDCDO-00112345678. It returns "" when the subject has none.
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
