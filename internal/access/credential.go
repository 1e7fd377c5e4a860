package access

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

const (
	// DefaultOverlap is how long a rotated credential stays good.
	DefaultOverlap = 24 * time.Hour
	maxOverlap     = 30 * 24 * time.Hour
)

// Terms are what a credential is issued for.
type Terms struct {
	TaxpayerID  string
	Environment fiscal.Environment
	Scopes      []apikey.Scope
	ExpiresAt   time.Time // zero: never
	RateLimit   int64     // zero: the service's own
}

// Credentials issues and ends credentials.
type Credentials struct {
	Store *store.Store
	Ring  *Keyring
	Now   func() time.Time
}

// Issue makes a credential. The key is returned this once and not kept.
func (c Credentials) Issue(ctx context.Context, terms Terms) (apikey.Key, store.Credential, error) {
	if len(terms.Scopes) == 0 {
		return apikey.Key{}, store.Credential{}, errors.New("a credential needs at least one scope")
	}
	key, made, err := c.mint(terms)
	if err != nil {
		return apikey.Key{}, store.Credential{}, err
	}
	err = c.Store.Update(ctx, func(tx *store.Tx) error { return tx.CreateCredential(ctx, made) })
	return key, made, err
}

// Rotate issues a successor with the same terms, living as long as the old one
// was to, and lets the old credential end after the overlap; until then both
// are good.
func (c Credentials) Rotate(ctx context.Context, id string, overlap time.Duration) (apikey.Key, store.Credential, error) {
	if overlap < 0 || overlap > maxOverlap {
		return apikey.Key{}, store.Credential{}, fmt.Errorf("the overlap is between 0 and %s", maxOverlap)
	}
	old, err := c.Store.Credential(ctx, id)
	if err != nil {
		return apikey.Key{}, store.Credential{}, err
	}
	now := c.Now()
	if !old.Live(now) {
		return apikey.Key{}, store.Credential{}, errors.New("the credential has ended: create a new one")
	}
	terms := Terms{TaxpayerID: old.TaxpayerID, Environment: old.Environment, Scopes: old.Scopes, RateLimit: old.RateLimit}
	if !old.ExpiresAt.IsZero() {
		terms.ExpiresAt = now.Add(old.ExpiresAt.Sub(old.CreatedAt))
	}
	key, made, err := c.mint(terms)
	if err != nil {
		return apikey.Key{}, store.Credential{}, err
	}
	err = c.Store.Update(ctx, func(tx *store.Tx) error {
		if err := tx.ExpireCredential(ctx, old.ID, now.Add(overlap)); err != nil {
			return err
		}
		return tx.CreateCredential(ctx, made)
	})
	return key, made, err
}

// Revoke ends a credential at once, on every node within seconds.
func (c Credentials) Revoke(ctx context.Context, id string) error {
	if _, err := c.Store.Credential(ctx, id); err != nil {
		return err
	}
	return c.Store.Update(ctx, func(tx *store.Tx) error { return tx.RevokeCredential(ctx, id, c.Now()) })
}

func (c Credentials) mint(terms Terms) (apikey.Key, store.Credential, error) {
	key, err := apikey.New(string(terms.Environment), rand.Reader)
	if err != nil {
		return apikey.Key{}, store.Credential{}, fmt.Errorf("access: make key: %w", err)
	}
	digest := key.Digest(c.Ring.peppers[c.Ring.newest])
	return key, store.Credential{
		ID: store.NewID(), Prefix: key.Prefix(), Environment: terms.Environment, TaxpayerID: terms.TaxpayerID,
		Digest: digest[:], PepperVersion: c.Ring.newest, Scopes: terms.Scopes, RateLimit: terms.RateLimit,
		CreatedAt: c.Now(), ExpiresAt: terms.ExpiresAt,
	}, nil
}
