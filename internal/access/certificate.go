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

	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// Why a taxpayer cannot sign, or a certificate is not taken.
var (
	ErrNoCertificate          = errors.New("the taxpayer has no certificate in this environment")
	ErrCertificateExpired     = errors.New("the certificate has expired")
	ErrCertificateNotYetValid = errors.New("the certificate is not valid yet")
	ErrCertificateRevoked     = errors.New("the certificate is revoked")
	ErrNoPerson               = errors.New("the certificate names no person: the attribute serialNumber of its subject (X.520, 2.5.4.5) must hold an RNC, a cédula or a passport, as in IDCDO-00112345678")
)

// errRotated says that the master key changed while something was sealed.
var errRotated = errors.New("access: the master key was rotated meanwhile")

const (
	kindCertificate = "certificate"
	sealedVersion   = 1 // of what is sealed of a certificate: its key in PKCS#8
	// openFor bounds how long an opened private key is kept in memory.
	openFor = 5 * time.Minute
)

// Certificates keeps the certificates that taxpayers sign with. It alone seals
// and opens their private keys. Use it by pointer, from as many goroutines as
// needed.
type Certificates struct {
	store *store.Store
	keys  *seal.Keys
	now   func() time.Time

	mu   sync.Mutex
	open map[string]opened // by the id of the certificate
}

type opened struct {
	identity *xmlsig.Identity
	until    time.Time
}

// NewCertificates makes the keeper of certificates. The keyring must have been
// loaded.
func NewCertificates(s *store.Store, keys *seal.Keys, now func() time.Time) *Certificates {
	return &Certificates{store: s, keys: keys, now: now, open: make(map[string]opened)}
}

// Import stores a certificate with its key sealed, and returns what is stored:
// for a certificate that the taxpayer has in the environment already, that one.
// It refuses one that could not sign now, with ErrCertificateExpired,
// ErrCertificateNotYetValid or ErrNoPerson. The error is store.ErrNotFound when
// there is no such taxpayer.
func (c *Certificates) Import(ctx context.Context, scope store.Scope, id *xmlsig.Identity) (store.Certificate, error) {
	now := c.now()
	person := plain(xmlsig.Person(id.Certificate))
	made := store.Certificate{
		Scope: scope, ID: store.NewID(), DER: id.Certificate.Raw,
		Subject: plain(id.Certificate.Subject.String()), Serial: serial(id.Certificate), Person: person,
		NotBefore: id.Certificate.NotBefore.UTC(), NotAfter: id.Certificate.NotAfter.UTC(),
		SealedVersion: sealedVersion, CreatedAt: now,
	}
	if err := usable(made, now); err != nil {
		return store.Certificate{}, err
	}
	if person == "" {
		return store.Certificate{}, ErrNoPerson
	}
	for {
		stored, err := c.add(ctx, made, id)
		if !errors.Is(err, errRotated) {
			return stored, err
		}
	}
}

// add seals the key and stores the certificate, unless the master key is
// rotated in between: then nothing would move what was sealed.
func (c *Certificates) add(ctx context.Context, made store.Certificate, id *xmlsig.Identity) (store.Certificate, error) {
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
		if err := holdMaster(ctx, tx, master); err != nil {
			return err
		}
		stored, err = tx.AddCertificate(ctx, made)
		return err
	})
	return stored, err
}

// Identity returns who signs for a taxpayer at a moment: of the certificates
// that are valid then, the one that was imported last. The error is
// ErrNoCertificate, or tells what is wrong with the last one.
func (c *Certificates) Identity(ctx context.Context, scope store.Scope, at time.Time) (*xmlsig.Identity, error) {
	all, err := c.store.CertificatesOf(ctx, scope)
	if err != nil {
		return nil, err
	}
	chosen, ok := store.SigningCertificate(all, at)
	if !ok {
		return nil, ErrNoCertificate
	}
	if err := usable(chosen, at); err != nil {
		return nil, err
	}
	if known := c.recall(chosen.ID); known != nil {
		return known, nil
	}
	id, err := c.unseal(chosen)
	if err != nil {
		return nil, explain(fmt.Errorf("access: open certificate %s: %w", chosen.ID, err))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[chosen.ID] = opened{id, c.now().Add(openFor)}
	return id, nil
}

// recall returns an identity that was opened not long ago, and lets go of all
// that were opened longer ago.
func (c *Certificates) recall(id string) *xmlsig.Identity {
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

func (c *Certificates) unseal(from store.Certificate) (*xmlsig.Identity, error) {
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
		return nil, errors.New("its key cannot sign")
	}
	certificate, err := x509.ParseCertificate(from.DER)
	if err != nil {
		return nil, err
	}
	return xmlsig.NewIdentity(certificate, key)
}

// usable tells why a certificate may not sign at a moment.
func usable(c store.Certificate, at time.Time) error {
	switch c.State(at) {
	case store.CertificateRevoked:
		return fmt.Errorf("%w since %s", ErrCertificateRevoked, c.RevokedAt.Format(time.RFC3339))
	case store.CertificateExpired:
		return fmt.Errorf("%w: it was valid until %s", ErrCertificateExpired, c.NotAfter.Format(time.RFC3339))
	case store.CertificateNotYetValid:
		return fmt.Errorf("%w: it is valid from %s", ErrCertificateNotYetValid, c.NotBefore.Format(time.RFC3339))
	case store.CertificateValid:
	}
	return nil
}

// serial is a certificate's own number, as others print it.
func serial(c *x509.Certificate) string {
	digits := fmt.Sprintf("%X", c.SerialNumber)
	if len(digits)%2 == 1 {
		digits = "0" + digits
	}
	return digits
}

// certificateAAD binds a sealed key to its row: copied to another taxpayer,
// environment or certificate it does not open.
func certificateAAD(c store.Certificate) []byte {
	return seal.AAD(c.TaxpayerID, string(c.Environment), kindCertificate, c.ID, strconv.FormatInt(c.SealedVersion, 10))
}

// plain is text of a certificate that every engine stores and every terminal
// shows: whoever issued it chose the characters.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(s, string(unicode.ReplacementChar)))
}
