// Package xmlsigtest makes certificates for tests and benches: an authority,
// and people who sign under it. None of its keys is of use to anybody.
package xmlsigtest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
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

// Who signs unless Options say otherwise.
const (
	Subject      = "Persona de Prueba"
	SerialNumber = "IDCDO-00112345678"
)

// The keys of a process: to make one takes long, under the race detector above
// all.
var (
	authorityKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })
	personKey    = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })
)

// A CA is a certificate authority.
type CA struct {
	Certificate *x509.Certificate

	key crypto.Signer
}

// NewCA makes an authority that was valid for the last ten years and will be for
// the next ten. All of a process have one key, and differ by name.
func NewCA(name string) (*CA, error) {
	key, err := authorityKey()
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
	certificate, err := issue(template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &CA{certificate, key}, nil
}

// PEM returns the certificate of the authority as a file of roots holds it.
func (ca *CA) PEM() []byte { return CertificatePEM(ca.Certificate) }

// Pool returns the authority as the one trusted root.
func (ca *CA) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.Certificate)
	return pool
}

// Options say what a certificate is to be. The zero value is a person of this
// package, valid from an hour ago for a year, with the RSA-2048 key that all of
// a process share, under an authority of its own.
type Options struct {
	Subject      string
	SerialNumber string // of the subject: who it is
	NotBefore    time.Time
	NotAfter     time.Time
	Bits         int           // of a new RSA key
	Key          crypto.Signer // this key, of whatever kind
	KeyUsage     x509.KeyUsage // digitalSignature, nonRepudiation and keyEncipherment when zero
	CA           *CA
}

// A Leaf is a certificate, its key and who issued it.
type Leaf struct {
	// Identity is nil when the key is one that xmlsig refuses.
	Identity    *xmlsig.Identity
	Certificate *x509.Certificate
	CA          *CA
	Key         crypto.Signer
}

// New makes a certificate and its key.
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
	certificate, err := issue(&x509.Certificate{
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

// P12 returns the file that holds the key, the certificate and the authority's.
func (l *Leaf) P12(password string) ([]byte, error) {
	return pkcs12.Modern.Encode(l.Key, l.Certificate, []*x509.Certificate{l.CA.Certificate}, password)
}

// PEM returns the certificate alone.
func (l *Leaf) PEM() []byte { return CertificatePEM(l.Certificate) }

// CertificatePEM writes a certificate as text.
func CertificatePEM(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

// Must is New for tests: what cannot be made ends the test.
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
