package access

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

const (
	// DefaultOverlap is how long a rotated credential stays valid by default.
	DefaultOverlap = 24 * time.Hour
	maxOverlap     = 30 * 24 * time.Hour
)

// Terms are the conditions of a new credential.
type Terms struct {
	TaxpayerID  string
	Environment fiscal.Environment
	Scopes      []apikey.Scope
	ExpiresAt   time.Time // zero means that it never expires
	RateLimit   int64     // requests per minute; zero means the limit of the service

	AllowedNetworks    []netip.Prefix // of the clients; empty means every client
	ClientCertificates []string       // SHA-256 fingerprints, one of which the client must have; empty means none

	Form store.Form // of the person who asks for the credential; zero for a command
}

// The reasons for which Issue and Rotate refuse.
var (
	ErrNoScope     = lang.Errorf("a credential needs at least one scope", "una credencial necesita al menos un alcance")
	ErrExpiryPast  = lang.Errorf("the expiry of the credential is in the past", "el vencimiento de la credencial está en el pasado")
	ErrEnded       = lang.Errorf("the credential is revoked or expired: create a new one", "la credencial está revocada o vencida: cree una nueva")
	ErrIsSuspended = lang.Errorf("the credential is suspended: resume it first, or create a new one", "la credencial está suspendida: reanúdela primero o cree una nueva")
)

// Credentials issues, rotates and revokes credentials.
type Credentials struct {
	store *store.Store
	ring  *Keyring
	now   func() time.Time
}

// NewCredentials returns the credentials of a store. The keyring must belong to
// the store.
func NewCredentials(s *store.Store, ring *Keyring, now func() time.Time) *Credentials {
	return &Credentials{store: s, ring: ring, now: now}
}

// Get returns a credential of any taxpayer. It fails with store.ErrNotFound.
func (c *Credentials) Get(ctx context.Context, id string) (store.Credential, error) {
	return c.store.Credential(ctx, id)
}

// Issue creates a credential and returns its key. The key is not stored: nothing can
// show it again. Issue fails with store.ErrNotFound when the taxpayer does not exist, with
// ErrNoScope or ErrExpiryPast, with store.ErrTooManyCredentials, and with a
// *store.FormUsedError when the form of the terms has created a credential before.
func (c *Credentials) Issue(ctx context.Context, terms Terms) (apikey.Key, store.Credential, error) {
	switch {
	case len(terms.Scopes) == 0:
		return apikey.Key{}, store.Credential{}, ErrNoScope
	case !terms.ExpiresAt.IsZero() && terms.ExpiresAt.Before(c.now()):
		return apikey.Key{}, store.Credential{}, ErrExpiryPast
	}
	key, made, err := c.newCredential(terms)
	if err != nil {
		return apikey.Key{}, store.Credential{}, err
	}
	err = c.store.Update(ctx, func(tx *store.Tx) error {
		if err := lockPepper(ctx, tx, made.PepperVersion); err != nil {
			return err
		}
		if err := tx.UseForm(ctx, made.Scope(), terms.Form, "create_credential", made.ID, made.CreatedAt); err != nil {
			return err
		}
		return tx.CreateCredential(ctx, made)
	})
	if errors.Is(err, errDropped) {
		if err = c.ring.Reload(ctx); err == nil {
			return c.Issue(ctx, terms)
		}
	}
	if err != nil {
		return apikey.Key{}, store.Credential{}, err
	}
	return key, made, nil
}

// errDropped means that a version of the pepper was dropped, and this node has not loaded
// the newest one yet.
var errDropped = errors.New("access: the pepper was dropped in the meantime")

// lockPepper makes the drop of a pepper wait until the transaction ends, so that the drop
// sees the credential that the transaction adds. It fails with errDropped when the drop was
// first.
func lockPepper(ctx context.Context, tx *store.Tx, version int64) error {
	secrets, err := tx.LockSecrets(ctx)
	if err == nil && !slices.ContainsFunc(secrets, func(s store.Secret) bool { return s.Kind == kindPepper && s.Version == version }) {
		err = errDropped
	}
	return err
}

// Rotate issues a new credential with the same terms and the same lifetime as the old
// one. The old credential stays valid for the overlap. Rotate fails with
// store.ErrNotFound when the credential does not exist, with ErrAltered when it was changed
// in the database, and with ErrEnded or ErrIsSuspended when it cannot be used.
func (c *Credentials) Rotate(ctx context.Context, id string, overlap time.Duration) (apikey.Key, store.Credential, error) {
	return c.RotateOnce(ctx, store.Form{}, id, overlap)
}

// RotateOnce is Rotate for a form of a person. It also fails with a *store.FormUsedError
// when the form has rotated the credential before.
func (c *Credentials) RotateOnce(ctx context.Context, form store.Form, id string, overlap time.Duration) (apikey.Key, store.Credential, error) {
	if overlap < 0 || overlap > maxOverlap {
		return apikey.Key{}, store.Credential{}, lang.Errorf("the overlap must be between 0 and %s", "el traslape debe estar entre 0 y %s", maxOverlap)
	}
	set := c.ring.set.Load()
	old, err := c.store.Credential(ctx, id)
	if err != nil {
		return apikey.Key{}, store.Credential{}, err
	}
	now := c.now()
	if !old.Live(now) {
		return apikey.Key{}, store.Credential{}, ErrEnded
	}
	if old.Suspended == store.CredentialSubject(id) {
		return apikey.Key{}, store.Credential{}, ErrIsSuspended
	}
	// The successor gets the terms of the old credential, so they must be the ones that an
	// operator has chosen.
	if old, err = set.verify(old); err != nil {
		return apikey.Key{}, store.Credential{}, err
	}
	terms := Terms{
		TaxpayerID: old.TaxpayerID, Environment: old.Environment, Scopes: old.Scopes, RateLimit: old.RateLimit,
		AllowedNetworks: old.AllowedNetworks, ClientCertificates: old.ClientCertificates,
	}
	if !old.ExpiresAt.IsZero() {
		terms.ExpiresAt = now.Add(old.ExpiresAt.Sub(old.CreatedAt))
	}
	key, made, err := c.newCredential(terms)
	if err != nil {
		return apikey.Key{}, store.Credential{}, err
	}
	err = c.store.Update(ctx, func(tx *store.Tx) error {
		if err := lockPepper(ctx, tx, made.PepperVersion); err != nil {
			return err
		}
		if err := tx.UseForm(ctx, made.Scope(), form, "rotate_credential", made.ID, now); err != nil {
			return err
		}
		if err := tx.ExpireCredential(ctx, old.ID, now.Add(overlap)); err != nil {
			return err
		}
		if ends := now.Add(overlap); old.ExpiresAt.IsZero() || ends.Before(old.ExpiresAt) {
			old.ExpiresAt = ends
		}
		if err := tx.BindCredential(ctx, old.ID, set.bind(old)); err != nil {
			return err
		}
		return tx.CreateCredential(ctx, made)
	})
	if errors.Is(err, errDropped) {
		if err = c.ring.Reload(ctx); err == nil {
			return c.RotateOnce(ctx, form, id, overlap)
		}
	}
	if err != nil {
		return apikey.Key{}, store.Credential{}, err
	}
	return key, made, nil
}

// Revoke ends a credential. Every node refuses it within seconds. It fails with
// store.ErrNotFound when the credential does not exist.
func (c *Credentials) Revoke(ctx context.Context, id string) error {
	if _, err := c.store.Credential(ctx, id); err != nil {
		return err
	}
	return c.store.Update(ctx, func(tx *store.Tx) error { return tx.RevokeCredential(ctx, id, c.now()) })
}

// newCredential makes a key and its credential, which is not stored yet.
func (c *Credentials) newCredential(terms Terms) (apikey.Key, store.Credential, error) {
	key, err := apikey.New(string(terms.Environment), rand.Reader)
	if err != nil {
		return apikey.Key{}, store.Credential{}, fmt.Errorf("access: make key: %w", err)
	}
	set := c.ring.set.Load()
	digest := key.Digest(set.peppers[set.newest])
	made := store.Credential{
		ID: store.NewID(), Prefix: key.Prefix(), Environment: terms.Environment, TaxpayerID: terms.TaxpayerID,
		Digest: digest[:], PepperVersion: set.newest, Scopes: terms.Scopes, RateLimit: terms.RateLimit,
		CreatedAt: c.now(), ExpiresAt: terms.ExpiresAt,
		AllowedNetworks: terms.AllowedNetworks, ClientCertificates: terms.ClientCertificates,
	}
	made.Binding = set.bind(made)
	return key, made, nil
}
