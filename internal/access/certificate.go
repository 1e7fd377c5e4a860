package access

import (
	"context"
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/fiscalhub/fiscalhub/internal/cause"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// The reasons for which a taxpayer cannot sign or Import refuses a certificate.
var (
	ErrNoCertificate          = error(cause.New(cause.NoCertificate))
	ErrCertificateExpired     = error(cause.New(cause.CertificateExpired))
	ErrCertificateNotYetValid = error(cause.New(cause.CertificateEarly))
	ErrCertificateRevoked     = error(cause.New(cause.CertificateRevoked))
	ErrNoPerson               = lang.Errorf("the certificate does not identify a person: the attribute serialNumber of its subject (X.520, 2.5.4.5) must hold an RNC, a cédula or a passport, as in IDCDO-00112345678",
		"el certificado no identifica a una persona: el atributo serialNumber de su titular (X.520, 2.5.4.5) debe tener un RNC, una cédula o un pasaporte, como en IDCDO-00112345678")
)

// errRotated means that the master key was rotated while a secret was sealed. The
// caller starts again.
var errRotated = errors.New("access: the master key was rotated in the meantime")

const (
	kindCertificate = "certificate"
	sealedVersion   = 1 // of the sealed format: the private key in PKCS#8
	// openFor is how long a decrypted private key stays in memory.
	openFor = 5 * time.Minute
)

// Certificates stores the certificates of taxpayers and returns the identity that
// signs. It is the only code that seals and opens their private keys. It is safe for
// concurrent use.
type Certificates struct {
	store *store.Store
	keys  *seal.Keys
	now   func() time.Time

	mu   sync.Mutex
	open map[string]openIdentity // by certificate id
}

// openIdentity is an identity with its decrypted private key.
type openIdentity struct {
	identity *xmlsig.Identity
	until    time.Time
}

// NewCertificates returns the certificates of a store. Call LoadKeyring first.
func NewCertificates(s *store.Store, keys *seal.Keys, now func() time.Time) *Certificates {
	return &Certificates{store: s, keys: keys, now: now, open: make(map[string]openIdentity)}
}

// Import stores a certificate with its sealed private key and returns the stored row. A
// certificate that the taxpayer already has in the environment is returned as it is
// stored. Import fails with ErrCertificateExpired, ErrCertificateNotYetValid,
// ErrCertificateRevoked or ErrNoPerson when the certificate could not sign now, and with store.ErrNotFound when
// the taxpayer does not exist.
func (c *Certificates) Import(ctx context.Context, scope store.Scope, id *xmlsig.Identity) (store.Certificate, error) {
	now := c.now()
	person := printable(xmlsig.Person(id.Certificate))
	made := store.Certificate{
		Scope: scope, ID: store.NewID(), DER: id.Certificate.Raw,
		Subject: printable(id.Certificate.Subject.String()), Serial: serial(id.Certificate), Person: person,
		NotBefore: id.Certificate.NotBefore.UTC(), NotAfter: id.Certificate.NotAfter.UTC(),
		SealedVersion: sealedVersion, CreatedAt: now,
	}
	if err := checkUsable(made, now); err != nil {
		return store.Certificate{}, err
	}
	if person == "" {
		return store.Certificate{}, ErrNoPerson
	}
	for {
		stored, err := c.sealAndStore(ctx, made, id)
		if errors.Is(err, errRotated) {
			continue
		}
		if err != nil {
			return store.Certificate{}, err
		}
		return stored, checkUsable(stored, now) // it may be there already, and revoked
	}
}

// Revoke keeps a certificate from signing. Every node stops using it within seconds;
// documents that it has signed stay valid. Revoke fails with store.ErrNotFound when there
// is no such certificate.
func (c *Certificates) Revoke(ctx context.Context, id string) (store.Certificate, error) {
	all, err := c.store.Certificates(ctx)
	if err != nil {
		return store.Certificate{}, err
	}
	for _, one := range all {
		if one.ID != id {
			continue
		}
		now := c.now()
		if one.RevokedAt.IsZero() {
			one.RevokedAt = now
		}
		return one, c.store.Update(ctx, func(tx *store.Tx) error { return tx.RevokeCertificate(ctx, one.Scope, id, now) })
	}
	return store.Certificate{}, store.ErrNotFound
}

// sealAndStore seals the private key and stores the certificate. It fails with
// errRotated when the master key was rotated in between: the rotation would have missed
// the new row.
func (c *Certificates) sealAndStore(ctx context.Context, made store.Certificate, id *xmlsig.Identity) (store.Certificate, error) {
	master, err := masterKey(ctx, c.store, c.keys)
	if err != nil {
		return store.Certificate{}, err
	}
	key, err := id.PKCS8()
	if err != nil {
		return store.Certificate{}, fmt.Errorf("access: encode key: %w", err)
	}
	defer clear(key)
	if made.Sealed, err = master.Seal(key, certificateAAD(made)); err != nil {
		return store.Certificate{}, fmt.Errorf("access: seal key: %w", err)
	}
	var stored store.Certificate
	err = c.store.Update(ctx, func(tx *store.Tx) error {
		if err := lockMaster(ctx, tx, master); err != nil {
			return err
		}
		stored, err = tx.AddCertificate(ctx, made)
		return err
	})
	return stored, err
}

// Identity returns the identity that signs for a taxpayer at an instant: of the
// certificates that are valid then, the one that was imported last. It fails with
// ErrNoCertificate when there is no certificate, and with ErrCertificateExpired,
// ErrCertificateNotYetValid or ErrCertificateRevoked when none is valid.
func (c *Certificates) Identity(ctx context.Context, scope store.Scope, at time.Time) (*xmlsig.Identity, error) {
	all, err := c.store.CertificatesOf(ctx, scope)
	if err != nil {
		return nil, err
	}
	chosen, ok := store.SigningCertificate(all, at)
	if !ok {
		return nil, ErrNoCertificate
	}
	if err := checkUsable(chosen, at); err != nil {
		return nil, err
	}
	if known := c.cachedIdentity(chosen.ID); known != nil {
		return known, nil
	}
	id, err := c.openCertificate(chosen)
	if err != nil {
		return nil, explainWrongKey(fmt.Errorf("access: open certificate %s: %w", chosen.ID, err))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[chosen.ID] = openIdentity{id, c.now().Add(openFor)}
	return id, nil
}

// cachedIdentity returns an identity from the cache, or nil, and removes all entries
// that are too old.
func (c *Certificates) cachedIdentity(id string) *xmlsig.Identity {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, o := range c.open {
		if !now.Before(o.until) {
			delete(c.open, id)
		}
	}
	return c.open[id].identity
}

// openCertificate decrypts the private key of a certificate. It fails when the key does
// not belong to the certificate.
func (c *Certificates) openCertificate(from store.Certificate) (*xmlsig.Identity, error) {
	encoded, err := c.keys.Open(from.Sealed, certificateAAD(from))
	if err != nil {
		return nil, err
	}
	defer clear(encoded)
	parsed, err := x509.ParsePKCS8PrivateKey(encoded)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, errors.New("its private key cannot sign")
	}
	certificate, err := x509.ParseCertificate(from.DER)
	if err != nil {
		return nil, err
	}
	return xmlsig.NewIdentity(certificate, key)
}

// checkUsable fails when a certificate must not sign at an instant.
func checkUsable(c store.Certificate, at time.Time) error {
	switch c.State(at) {
	case store.CertificateRevoked:
		return lang.Errorf("%s since %s", "%s desde %s", ErrCertificateRevoked, c.RevokedAt.Format(time.RFC3339))
	case store.CertificateExpired:
		return lang.Errorf("%s: it was valid until %s", "%s: estuvo vigente hasta %s", ErrCertificateExpired, c.NotAfter.Format(time.RFC3339))
	case store.CertificateNotYetValid:
		return lang.Errorf("%s: it is valid from %s", "%s: está vigente desde %s", ErrCertificateNotYetValid, c.NotBefore.Format(time.RFC3339))
	case store.CertificateValid:
	}
	return nil
}

// serial returns the serial number of a certificate in hexadecimal, with an even number
// of digits, as other programs print it.
func serial(c *x509.Certificate) string {
	digits := fmt.Sprintf("%X", c.SerialNumber)
	if len(digits)%2 == 1 {
		digits = "0" + digits
	}
	return digits
}

// certificateAAD binds a sealed private key to its row. A copy in the row of another
// taxpayer, environment or certificate does not open.
func certificateAAD(c store.Certificate) []byte {
	return seal.AAD(c.TaxpayerID, string(c.Environment), kindCertificate, c.ID, strconv.FormatInt(c.SealedVersion, 10))
}

// printable replaces invalid UTF-8 and control characters in a text of a certificate.
// The issuer has chosen the text, and databases and terminals do not accept all of it.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(s, string(unicode.ReplacementChar)))
}
