// Package xmlsigtest creates certificate authorities, certificates and keys for
// tests and benchmarks, and calls xmlsec1.
package xmlsigtest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"sync"
	"testing"
	"time"

	"software.sslmate.com/src/go-pkcs12"

	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// The subject of certificates when Options has none.
const (
	Subject      = "Persona de Prueba"
	SerialNumber = "IDCDO-00112345678"
)

// All certificates of a process share these keys, because it takes long to
// generate one, above all with the race detector.
var (
	authorityKey    = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })
	intermediateKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })
	personKey       = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })
)

// A CA is a certificate authority.
type CA struct {
	Certificate *x509.Certificate

	key    crypto.Signer
	issuer *CA // nil for a root
}

// NewCA returns an authority that is valid from ten years ago for twenty years.
// All authorities of a process have the same key and differ by name.
func NewCA(name string) (*CA, error) { return newCA(name, nil) }

// Intermediate returns an authority whose certificate this authority has issued.
func (ca *CA) Intermediate(name string) (*CA, error) { return newCA(name, ca) }

func newCA(name string, issuer *CA) (*CA, error) {
	newKey := authorityKey
	if issuer != nil {
		newKey = intermediateKey
	}
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(now.UnixNano()),
		Subject:               pkix.Name{Country: []string{"DO"}, Organization: []string{"Prueba"}, CommonName: name},
		NotBefore:             now.AddDate(-10, 0, 0),
		NotAfter:              now.AddDate(10, 0, 0),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	parent, signer := template, crypto.Signer(key)
	if issuer != nil {
		parent, signer = issuer.Certificate, issuer.key
	}
	certificate, err := issue(template, parent, key.Public(), signer)
	if err != nil {
		return nil, err
	}
	return &CA{certificate, key, issuer}, nil
}

// PEM returns the certificate of the authority, for a file of trusted roots.
func (ca *CA) PEM() []byte { return CertificatePEM(ca.Certificate) }

// Pool returns a pool with the authority as its only root.
func (ca *CA) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.Certificate)
	return pool
}

// Options describe a certificate. The zero value is a certificate for Subject,
// valid from an hour ago for a year, with the RSA-2048 key that the process
// shares, under an authority of its own.
type Options struct {
	Subject      string
	SerialNumber string // of the subject: the identifier of the person
	NotBefore    time.Time
	NotAfter     time.Time
	Bits         int           // the size of a new RSA key
	Key          crypto.Signer // an existing key of any kind
	KeyUsage     x509.KeyUsage // digitalSignature, nonRepudiation and keyEncipherment when zero
	CA           *CA
}

// A Leaf is a certificate with its key and its authority.
type Leaf struct {
	// Identity is nil when xmlsig refuses the key.
	Identity    *xmlsig.Identity
	Certificate *x509.Certificate
	CA          *CA
	Key         crypto.Signer
}

// New returns a new certificate with its key.
func New(o Options) (*Leaf, error) {
	if o.CA == nil {
		ca, err := NewCA("Autoridad de Prueba")
		if err != nil {
			return nil, err
		}
		o.CA = ca
	}
	if o.Key == nil {
		key, err := personKey()
		if o.Bits != 0 && o.Bits != 2048 {
			key, err = rsa.GenerateKey(rand.Reader, o.Bits)
		}
		if err != nil {
			return nil, err
		}
		o.Key = key
	}
	if o.Subject == "" {
		o.Subject = Subject
		if o.SerialNumber == "" {
			o.SerialNumber = SerialNumber
		}
	}
	if o.NotBefore.IsZero() {
		o.NotBefore = time.Now().Add(-time.Hour)
		if !o.NotAfter.IsZero() && o.NotAfter.Before(o.NotBefore) {
			o.NotBefore = o.NotAfter.AddDate(-1, 0, 0)
		}
	}
	if o.NotAfter.IsZero() {
		o.NotAfter = o.NotBefore.AddDate(1, 0, 0)
	}
	if o.KeyUsage == 0 {
		o.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageContentCommitment | x509.KeyUsageKeyEncipherment
	}
	public, err := x509.MarshalPKIXPublicKey(o.Key.Public())
	if err != nil {
		return nil, err
	}
	keyID := sha256.Sum256(public)
	certificate, err := issue(&x509.Certificate{
		SubjectKeyId: keyID[:20],
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{Country: []string{"DO"}, CommonName: o.Subject, SerialNumber: o.SerialNumber},
		NotBefore:    o.NotBefore,
		NotAfter:     o.NotAfter,
		KeyUsage:     o.KeyUsage,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageEmailProtection},
	}, o.CA.Certificate, o.Key.Public(), o.CA.key)
	if err != nil {
		return nil, err
	}
	leaf := &Leaf{Certificate: certificate, CA: o.CA, Key: o.Key}
	if id, err := xmlsig.NewIdentity(certificate, o.Key); err == nil {
		leaf.Identity = id
	}
	return leaf, nil
}

// P12 returns a PKCS#12 file with the key, the certificate and the certificate of
// the authority.
func (l *Leaf) P12(password string) ([]byte, error) {
	return pkcs12.Modern.Encode(l.Key, l.Certificate, []*x509.Certificate{l.CA.Certificate}, password)
}

// PEM returns the certificate in PEM.
func (l *Leaf) PEM() []byte { return CertificatePEM(l.Certificate) }

// CertificatePEM returns a certificate in PEM.
func CertificatePEM(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

// Must is New for tests. It ends the test when New fails.
func Must(t testing.TB, o Options) *Leaf {
	t.Helper()
	leaf, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

func issue(template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}
