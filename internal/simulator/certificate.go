package simulator

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"time"

	"software.sslmate.com/src/go-pkcs12"

	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// The keys of a process. They are generated once, because that is slow. Nothing
// outside of the process trusts them.
var (
	rootKey   = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })
	personKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })
)

// A certificateAuthority issues the certificates that the simulator trusts.
type certificateAuthority struct {
	certificate *x509.Certificate
	key         crypto.Signer

	mu         sync.Mutex
	serial     int64
	identities map[string]*xmlsig.Identity // by holder
}

func newCertificateAuthority(name string, key crypto.Signer, now time.Time) (*certificateAuthority, error) {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{Country: []string{"DO"}, Organization: []string{"Simulador"}, CommonName: name},
		NotBefore: now.AddDate(-10, 0, 0), NotAfter: now.AddDate(10, 0, 0),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, BasicConstraintsValid: true, IsCA: true,
	}
	certificate, err := createCertificate(template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &certificateAuthority{certificate: certificate, key: key, identities: map[string]*xmlsig.Identity{}}, nil
}

func createCertificate(template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, fmt.Errorf("simulator: certificate: %w", err)
	}
	return x509.ParseCertificate(der)
}

func (a *certificateAuthority) nextSerial() *big.Int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.serial++
	return big.NewInt(a.serial)
}

// issuePerson issues the certificate of a natural person for tax procedures.
func (a *certificateAuthority) issuePerson(r CertificateRequest, from, to time.Time, key crypto.Signer) (*x509.Certificate, error) {
	name := r.Name
	if name == "" {
		name = "Persona " + r.Holder
	}
	serial := r.Holder
	if !strings.Contains(serial, "-") {
		serial = "IDCDO-" + serial
	}
	return createCertificate(&x509.Certificate{
		SerialNumber: a.nextSerial(), Subject: pkix.Name{Country: []string{"DO"}, CommonName: name, SerialNumber: serial},
		NotBefore: from, NotAfter: to,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageContentCommitment | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageEmailProtection},
	}, a.certificate, key.Public(), a.key)
}

// A CertificateRequest describes a certificate to issue.
type CertificateRequest struct {
	Holder string `json:"holder"` // cédula, or a complete serial number such as PASDO-X1
	Name   string `json:"name,omitempty"`
	Days   int    `json:"days,omitempty"` // 365 by default
	// Flavour is pbes2 (the default) or legacy, for the encryption of the file; or
	// expired, wrong-ca or rsa1024, for a certificate that must be refused.
	Flavour  string `json:"flavour,omitempty"`
	Password string `json:"password,omitempty"` // simulador by default
}

// A Certificate is a certificate with its key, as a PKCS#12 file. Only this simulator
// trusts it, so its password is no secret.
type Certificate struct {
	P12         []byte    `json:"p12"`
	Password    string    `json:"password"`
	Certificate string    `json:"certificate"` // PEM
	Holder      string    `json:"holder"`
	NotBefore   time.Time `json:"not_before"`
	NotAfter    time.Time `json:"not_after"`
}

// IssueCertificate issues a certificate with its PKCS#12 file. It fails when the
// request has no holder or an unknown flavour.
func (s *Simulator) IssueCertificate(r CertificateRequest) (*Certificate, error) {
	if r.Holder == "" {
		return nil, errors.New("simulator: a certificate needs a holder")
	}
	if r.Days <= 0 {
		r.Days = 365
	}
	if r.Password == "" {
		r.Password = "simulador"
	}
	now := s.clock.now()
	from, to := now.AddDate(0, 0, -1), now.AddDate(0, 0, r.Days)
	key, err := personKey()
	if err != nil {
		return nil, fmt.Errorf("simulator: key: %w", err)
	}
	issuer, encoder := s.currentCA(), pkcs12.Modern2023
	switch r.Flavour {
	case "", "pbes2":
	case "legacy":
		encoder = pkcs12.LegacyRC2
	case "expired":
		from, to = now.AddDate(-1, 0, -r.Days), now.AddDate(0, 0, -1)
	case "wrong-ca":
		// This authority has another key than the root, so that no check passes by chance.
		if issuer, err = newCertificateAuthority("Autoridad Ajena", key, now); err != nil {
			return nil, err
		}
	case "rsa1024":
		if key, err = rsa.GenerateKey(rand.Reader, 1024); err != nil { //nolint:gosec // the request asks for a weak key
			return nil, fmt.Errorf("simulator: key: %w", err)
		}
	default:
		return nil, fmt.Errorf("simulator: flavour %q must be pbes2, legacy, expired, wrong-ca or rsa1024", r.Flavour)
	}
	leaf, err := issuer.issuePerson(r, from, to, key)
	if err != nil {
		return nil, err
	}
	p12, err := encoder.Encode(key, leaf, []*x509.Certificate{issuer.certificate}, r.Password)
	if err != nil {
		return nil, fmt.Errorf("simulator: p12: %w", err)
	}
	return &Certificate{P12: p12, Password: r.Password, Certificate: string(certificatePEM(leaf)), Holder: r.Holder, NotBefore: from, NotAfter: to}, nil
}

// Identity returns the signing identity of a person, issued under the simulator's own
// root. It returns the same one each time.
func (s *Simulator) Identity(holder string) (*xmlsig.Identity, error) {
	a := s.currentCA()
	a.mu.Lock()
	id := a.identities[holder]
	a.mu.Unlock()
	if id != nil {
		return id, nil
	}
	key, err := personKey()
	if err != nil {
		return nil, fmt.Errorf("simulator: key: %w", err)
	}
	now := s.clock.now()
	leaf, err := a.issuePerson(CertificateRequest{Holder: holder}, now.AddDate(0, 0, -1), now.AddDate(5, 0, 0), key)
	if err != nil {
		return nil, err
	}
	if id, err = xmlsig.NewIdentity(leaf, key); err != nil {
		return nil, fmt.Errorf("simulator: identity: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.identities[holder] = id
	return id, nil
}

func (s *Simulator) currentCA() *certificateAuthority {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ca
}

// CA returns the root of the certificates that the simulator issues.
func (s *Simulator) CA() *x509.Certificate { return s.currentCA().certificate }

// RootsPEM returns the root as PEM, for clients that verify signatures made with the
// simulator's certificates.
func (s *Simulator) RootsPEM() []byte { return certificatePEM(s.CA()) }

func certificatePEM(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}
