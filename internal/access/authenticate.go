package access

import (
	"context"
	"crypto/hmac"
	"errors"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// ErrDenied means that a key is not valid. Do not tell the client the reason.
var ErrDenied = errors.New("credential denied")

// Reason says why a key is not valid, for logs and metrics.
type Reason string

// The reasons of a DeniedError.
const (
	ReasonUnknown     Reason = "unknown"      // no credential has the prefix of the key
	ReasonWrongSecret Reason = "wrong_secret" // the rest of the key does not match the credential
	ReasonRevoked     Reason = "revoked"
	ReasonExpired     Reason = "expired"
	ReasonAltered     Reason = "altered" // the row of the credential was changed in the database
)

// DeniedError is an ErrDenied with its reason.
type DeniedError struct {
	Reason     Reason
	Credential store.Credential // of a key with the right secret; otherwise zero
}

func (e *DeniedError) Error() string { return ErrDenied.Error() + ": " + string(e.Reason) }

// Unwrap returns ErrDenied.
func (e *DeniedError) Unwrap() error { return ErrDenied }

// How long the cache keeps a credential, and the knowledge that a prefix is unknown. A
// revocation takes effect on every node within 5 seconds.
const (
	foundFor   = 3 * time.Second
	unknownFor = time.Second
	cacheSize  = 10_000
	touchEvery = time.Minute
)

// Touch records the use of a credential. It must not block: it may write the record
// later.
type Touch func(id string, at time.Time)

// Authenticator checks API keys. It caches credentials for a few seconds.
type Authenticator struct {
	store *store.Store
	ring  *Keyring
	now   func() time.Time
	touch Touch

	mu    sync.Mutex
	cache map[string]*cached // by prefix
}

// cached is the result of one look-up.
type cached struct {
	credential store.Credential
	found      bool
	until      time.Time
	touched    time.Time
}

// NewAuthenticator returns an authenticator. touch may be nil.
func NewAuthenticator(s *store.Store, ring *Keyring, now func() time.Time, touch Touch) *Authenticator {
	return &Authenticator{store: s, ring: ring, now: now, touch: touch, cache: make(map[string]*cached)}
}

// Authenticate returns the credential of a key. It fails with a *DeniedError, which is an
// ErrDenied, when the key is unknown, revoked or expired. Any other error means that the database could not be
// read, and says nothing about the key.
func (a *Authenticator) Authenticate(ctx context.Context, key apikey.Key) (store.Credential, error) {
	now := a.now()
	known, err := a.lookUp(ctx, key.Prefix(), now)
	if err != nil {
		return store.Credential{}, err
	}
	// An unknown prefix costs one HMAC too, so that the duration reveals nothing.
	set := a.ring.set.Load()
	version := set.newest
	if known.found {
		version = known.credential.PepperVersion
	}
	// A row with a pepper that the keyring does not have never matches: write access to
	// the database must not be enough to create a key.
	pepper, ok := set.peppers[version]
	digest := key.Digest(pepper)
	switch {
	case !known.found:
		return store.Credential{}, &DeniedError{Reason: ReasonUnknown}
	case !ok || !hmac.Equal(digest[:], known.credential.Digest):
		return store.Credential{}, &DeniedError{Reason: ReasonWrongSecret}
	case !known.credential.RevokedAt.IsZero():
		return store.Credential{}, &DeniedError{ReasonRevoked, known.credential}
	}
	credential, err := set.verify(known.credential)
	switch {
	case err != nil:
		return store.Credential{}, &DeniedError{ReasonAltered, credential}
	case !credential.Live(now):
		return store.Credential{}, &DeniedError{ReasonExpired, credential}
	}
	a.recordUse(known, now)
	return credential, nil
}

// Cached reports whether Authenticate can answer for a key without the database.
func (a *Authenticator) Cached(key apikey.Key) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	known := a.cache[key.Prefix()]
	return known != nil && a.now().Before(known.until)
}

// lookUp returns a credential from the cache, or from the database when the entry is
// too old.
func (a *Authenticator) lookUp(ctx context.Context, prefix string, now time.Time) (*cached, error) {
	a.mu.Lock()
	known := a.cache[prefix]
	a.mu.Unlock()
	if known != nil && now.Before(known.until) {
		return known, nil
	}
	credential, err := a.store.CredentialByPrefix(ctx, prefix)
	fresh := &cached{credential: credential, found: true, until: now.Add(foundFor)}
	switch {
	case errors.Is(err, store.ErrNotFound):
		fresh.found, fresh.until = false, now.Add(unknownFor)
	case err != nil:
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.cache) >= cacheSize {
		clear(a.cache) // only a flood of unknown keys fills the cache; valid ones are read again
	}
	if known != nil {
		fresh.touched = known.touched
	}
	a.cache[prefix] = fresh
	return fresh, nil
}

// recordUse calls touch at most once a minute for each credential.
func (a *Authenticator) recordUse(known *cached, now time.Time) {
	a.mu.Lock()
	due := now.Sub(known.touched) >= touchEvery
	if due {
		known.touched = now
	}
	a.mu.Unlock()
	if due && a.touch != nil {
		a.touch(known.credential.ID, now)
	}
}
