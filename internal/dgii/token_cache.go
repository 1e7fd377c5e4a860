package dgii

import (
	"context"
	"sync"
	"time"
)

const (
	// tokenRenewBefore is how long before its expiry a token is replaced.
	tokenRenewBefore = 5 * time.Minute
	// minTokenLife is how long a token is used at least, whatever its expiry
	// says. With a wrong clock, the client would otherwise request a token for
	// every call.
	minTokenLife = 30 * time.Second
	maxTokenLife = 24 * time.Hour
	// maxTokens is how many tokens the cache keeps before it removes old ones.
	maxTokens = 1024
)

// A token authorises calls. It is a secret and is never printed.
type token struct {
	value     string
	renewAt   time.Time // when the cache replaces it
	expiresAt time.Time // when it is no longer valid
	serial    uint64    // its number among the tokens of its key
}

// String hides the secret.
func (t token) String() string { return "[token]" }

// GoString hides the secret.
func (t token) GoString() string { return "[token]" }

// newToken returns a token with its life on our clock. The life is the difference
// of the two times that the authority states, if it states both: it is right even
// when the two clocks differ.
func newToken(value string, issued, expires, now time.Time) token {
	life := expires.Sub(now)
	if d := expires.Sub(issued); !issued.IsZero() && d > 0 {
		life = d
	}
	life = min(max(life, minTokenLife), maxTokenLife)
	return token{value: value, renewAt: now.Add(max(life-tokenRenewBefore, minTokenLife)), expiresAt: now.Add(life)}
}

// A tokenCache keeps one token for each key. When many callers need a token at the
// same time, it is fetched once.
type tokenCache struct {
	now func() time.Time

	mu      sync.Mutex
	entries map[tokenKey]*tokenEntry
	closed  bool
	wg      sync.WaitGroup
}

// A tokenKey says whose token it is. The authority's tokens have only the fingerprint
// of the signer, because the authority gives them to a person. Those of a buyer's
// receiver also have the address of its authentication service and of its reception,
// the RNC of the buyer, and the RNC of the taxpayer who delivers.
type tokenKey struct{ signer, authentication, reception, buyer, taxpayer string }

type tokenEntry struct {
	token      token
	invalid    bool // a service refused the token
	lastSerial uint64
	fetch      *tokenFetch // under way, or nil
}

// A tokenFetch is a fetch that is under way. It does not end when one of the
// callers that wait for it is cancelled.
type tokenFetch struct {
	done   chan struct{}
	cancel context.CancelFunc
	token  token
	err    error
}

func newTokenCache(now func() time.Time) *tokenCache {
	return &tokenCache{now: now, entries: make(map[tokenKey]*tokenEntry)}
}

// get returns a usable token. If there is none, it calls fetch, or waits for the
// fetch that is under way. The context of a fetch ends only with the cache: fetch
// itself bounds its exchanges, and waiting for a slot is none.
func (t *tokenCache) get(ctx context.Context, key tokenKey, fetch func(context.Context) (token, error)) (token, error) {
	t.mu.Lock()
	e := t.entries[key]
	if e == nil {
		t.evict()
		e = &tokenEntry{}
		t.entries[key] = e
	}
	if e.usable(t.now()) {
		defer t.mu.Unlock()
		return e.token, nil
	}
	f := e.fetch
	if f == nil {
		if t.closed {
			t.mu.Unlock()
			return token{}, context.Canceled
		}
		f = t.startFetch(ctx, e, fetch)
	}
	t.mu.Unlock()
	select {
	case <-f.done:
		return f.token, f.err
	case <-ctx.Done():
		return token{}, ctx.Err()
	}
}

// stored returns the token of a key if it is usable, and an empty one otherwise. It
// fetches nothing.
func (t *tokenCache) stored(key tokenKey) token {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.entries[key]; e != nil && e.usable(t.now()) {
		return e.token
	}
	return token{}
}

func (e *tokenEntry) usable(now time.Time) bool {
	return e.token.value != "" && !e.invalid && now.Before(e.token.renewAt) && e.token.expiresAt.Sub(now) <= maxTokenLife
}

// startFetch starts a fetch in the background. The caller holds the lock.
func (t *tokenCache) startFetch(ctx context.Context, e *tokenEntry, fetch func(context.Context) (token, error)) *tokenFetch {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &tokenFetch{done: make(chan struct{}), cancel: cancel}
	e.fetch = f
	t.wg.Go(func() {
		defer cancel()
		got, err := fetch(ctx)
		t.mu.Lock()
		defer t.mu.Unlock()
		e.fetch = nil
		switch {
		case err == nil:
			e.lastSerial++
			got.serial = e.lastSerial
			e.token, e.invalid = got, false
		case e.token.value != "" && !e.invalid && t.now().Before(e.token.expiresAt):
			got, err = e.token, nil // the old token is still valid: tokens are renewed before they expire
		}
		f.token, f.err = got, err
		close(f.done)
	})
	return f
}

// isCurrent reports whether tok is the token in the cache and still valid.
func (t *tokenCache) isCurrent(key tokenKey, tok token) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entries[key]
	return e != nil && !e.invalid && e.token.serial == tok.serial
}

// invalidate marks a token that a service refused, so that the next get fetches
// another. It does nothing when the cache has a newer token already.
func (t *tokenCache) invalidate(key tokenKey, tok token) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.entries[key]; e != nil && e.token.serial == tok.serial {
		e.invalid = true
	}
}

// evict removes tokens that are no longer usable when the cache is full. The
// caller holds the lock.
func (t *tokenCache) evict() {
	if len(t.entries) < maxTokens {
		return
	}
	now := t.now()
	for key, e := range t.entries {
		if e.fetch == nil && !e.usable(now) {
			delete(t.entries, key)
		}
	}
}

// close cancels the fetches that are under way and waits for them. No new fetch
// starts afterwards.
func (t *tokenCache) close() {
	t.mu.Lock()
	t.closed = true
	for _, e := range t.entries {
		if e.fetch != nil {
			e.fetch.cancel()
		}
	}
	t.mu.Unlock()
	t.wg.Wait()
}
