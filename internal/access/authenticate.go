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

// ErrDenied says that a key is not good. Why it is not is for the log alone.
var ErrDenied = errors.New("credential denied")

// How long what was read of a credential is relied on. A revocation is in
// force everywhere within 5 seconds.
const (
	knownFor   = 3 * time.Second
	unknownFor = time.Second
	cacheSize  = 10_000
	touchEvery = time.Minute
)

// Touch records that a credential was used, some time after the answer.
type Touch func(id string, at time.Time)

// Authenticator checks keys. It keeps what it read for a few seconds.
type Authenticator struct {
	store *store.Store
	ring  *Keyring
	now   func() time.Time
	touch Touch

	mu    sync.Mutex
	cache map[string]*remembered
}

type remembered struct {
	credential store.Credential
	found      bool
	until      time.Time
	touched    time.Time
}

// NewAuthenticator makes an authenticator.
func NewAuthenticator(s *store.Store, ring *Keyring, now func() time.Time, touch Touch) *Authenticator {
	return &Authenticator{store: s, ring: ring, now: now, touch: touch, cache: make(map[string]*remembered)}
}

// Authenticate returns the credential of a key that is well-formed, known, not
// revoked and not expired. ErrDenied: it is not; any other error: not known.
func (a *Authenticator) Authenticate(ctx context.Context, key apikey.Key) (store.Credential, error) {
	now := a.now()
	known, err := a.recall(ctx, key.Prefix(), now)
	if err != nil {
		return store.Credential{}, err
	}
	// An unknown prefix costs one HMAC too, so that time tells nothing.
	version := a.ring.newest
	if known.found {
		version = known.credential.PepperVersion
	}
	// A row whose pepper the ring lacks makes no key good: whoever can write to
	// the database must not be able to make one.
	pepper, ok := a.ring.peppers[version]
	digest := key.Digest(pepper)
	if !ok || !hmac.Equal(digest[:], known.credential.Digest) || !known.credential.Live(now) {
		return store.Credential{}, ErrDenied
	}
	a.used(known, now)
	return known.credential, nil
}

// recall reads a credential, from memory while that is fresh.
func (a *Authenticator) recall(ctx context.Context, prefix string, now time.Time) (*remembered, error) {
	a.mu.Lock()
	known := a.cache[prefix]
	a.mu.Unlock()
	if known != nil && now.Before(known.until) {
		return known, nil
	}
	credential, err := a.store.CredentialByPrefix(ctx, prefix)
	fresh := &remembered{credential: credential, found: true, until: now.Add(knownFor)}
	switch {
	case errors.Is(err, store.ErrNotFound):
		fresh.found, fresh.until = false, now.Add(unknownFor)
	case err != nil:
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.cache) >= cacheSize {
		clear(a.cache) // only a flood of wrong keys gets here; the good ones are read again
	}
	if known != nil {
		fresh.touched = known.touched
	}
	a.cache[prefix] = fresh
	return fresh, nil
}

// used notes the use of a credential, at most once a minute.
func (a *Authenticator) used(known *remembered, now time.Time) {
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
