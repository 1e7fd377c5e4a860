package api

import (
	"errors"
	"sync"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// lookups are the keys that are being looked up in the database. Requests that come
// with the same key at the same time wait for one look-up. The zero value is ready
// to use.
type lookups struct {
	mu       sync.Mutex
	byPrefix map[string]*lookup
}

// lookup is one look-up.
type lookup struct {
	done chan struct{} // closed at its end
	err  error         // of the database, or because there was no capacity for it
}

// join returns the look-up of a key that is under way, or starts one. The request
// that starts it must call end.
func (l *lookups) join(prefix string) (found *lookup, started bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if found := l.byPrefix[prefix]; found != nil {
		return found, false
	}
	if l.byPrefix == nil {
		l.byPrefix = make(map[string]*lookup)
	}
	made := &lookup{done: make(chan struct{})}
	l.byPrefix[prefix] = made
	return made, true
}

// end ends a look-up.
func (l *lookups) end(prefix string, ended *lookup, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byPrefix, prefix)
	ended.err = err
	close(ended.done)
}

// findCredential returns the credential of a key. A key that is not in the cache
// is looked up in the database.
func (a *API) findCredential(x *exchange, key apikey.Key) (store.Credential, error) {
	ctx := x.r.Context()
	for !a.auth.Cached(key) {
		current, started := a.lookups.join(key.Prefix())
		if started {
			return a.lookUp(x, key, current)
		}
		select {
		case <-current.done:
		case <-ctx.Done():
			return store.Credential{}, ctx.Err()
		}
		if current.err != nil {
			return store.Credential{}, current.err
		}
	}
	return a.auth.Authenticate(ctx, key)
}

// lookUp looks a key up with a slot of the strangers, because the key may be wrong.
func (a *API) lookUp(x *exchange, key apikey.Key, current *lookup) (found store.Credential, err error) {
	failure := errPanic // unless it returns
	defer func() { a.lookups.end(key.Prefix(), current, failure) }()
	if err = a.takeSlot(x); err == nil {
		found, err = a.auth.Authenticate(x.r.Context(), key)
		x.held.Slot.Release()
		x.held.Slot = nil
	}
	// A wrong secret and a client that has left say nothing about the key of others.
	if failure = err; errors.Is(err, access.ErrDenied) || x.r.Context().Err() != nil {
		failure = nil
	}
	return found, err
}
