package dgii

import (
	"context"
	"sync"
	"time"
)

const (
	// tokenMargin is how long before its end a token is replaced.
	tokenMargin = 5 * time.Minute
	// tokenLeast is how long a token is kept whatever it says of its end: a
	// wrong clock would otherwise fetch one for every call.
	tokenLeast = 30 * time.Second
	tokenMost  = 24 * time.Hour
)

// A token is a permission to call. It is never printed.
type token struct {
	value string
	// until is when it is replaced, end when it is of no use any more.
	until, end time.Time
	number     uint64 // counts the tokens of a signer
}

// String hides the token from whoever prints it.
func (t token) String() string { return "[token]" }

// GoString hides the token from whoever prints it.
func (t token) GoString() string { return "[token]" }

// tokens keep one token per place and signer. However many callers need one, it
// is fetched once.
type tokens struct {
	now func() time.Time

	mu     sync.Mutex
	of     map[tokenKey]*tokenEntry
	closed bool
	wg     sync.WaitGroup
}

type tokenKey struct{ place, signer string }

type tokenEntry struct {
	token   token
	spoilt  bool // the token was refused
	counter uint64
	flight  *flight
}

// A flight is a fetch under way. It belongs to nobody: those who wait for it may
// leave without ending it for the others.
type flight struct {
	done   chan struct{}
	cancel context.CancelFunc
	token  token
	err    error
}

func newTokens(now func() time.Time) *tokens {
	return &tokens{now: now, of: make(map[tokenKey]*tokenEntry)}
}

// maxTokens bounds how many tokens are kept before old ones are thrown away.
const maxTokens = 1024

// get returns a token that is good, and fetches one where there is none.
func (t *tokens) get(ctx context.Context, key tokenKey, limit time.Duration, fetch func(context.Context) (token, error)) (token, error) {
	t.mu.Lock()
	e := t.of[key]
	if e == nil {
		t.prune()
		e = &tokenEntry{}
		t.of[key] = e
	}
	if e.good(t.now()) {
		defer t.mu.Unlock()
		return e.token, nil
	}
	f := e.flight
	if f == nil {
		if t.closed {
			t.mu.Unlock()
			return token{}, context.Canceled
		}
		f = t.start(ctx, e, limit, fetch)
	}
	t.mu.Unlock()
	select {
	case <-f.done:
		return f.token, f.err
	case <-ctx.Done():
		return token{}, ctx.Err()
	}
}

func (e *tokenEntry) good(now time.Time) bool {
	return e.token.value != "" && !e.spoilt && now.Before(e.token.until) && e.token.end.Sub(now) <= tokenMost
}

// start begins a fetch. The caller holds the lock.
func (t *tokens) start(ctx context.Context, e *tokenEntry, limit time.Duration, fetch func(context.Context) (token, error)) *flight {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	f := &flight{done: make(chan struct{}), cancel: cancel}
	e.flight = f
	t.wg.Go(func() {
		defer cancel()
		got, err := fetch(ctx)
		t.mu.Lock()
		defer t.mu.Unlock()
		e.flight = nil
		switch {
		case err == nil:
			e.counter++
			got.number = e.counter
			e.token, e.spoilt = got, false
		case e.token.value != "" && !e.spoilt && t.now().Before(e.token.end):
			got, err = e.token, nil // the old one still serves: that is what the margin is for
		}
		f.token, f.err = got, err
		close(f.done)
	})
	return f
}

// current tells whether a token is still the one to use.
func (t *tokens) current(key tokenKey, tok token) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.of[key]
	return e != nil && !e.spoilt && e.token.number == tok.number
}

// spoil says that a token was refused. It is replaced, unless that has happened
// already.
func (t *tokens) spoil(key tokenKey, tok token) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.of[key]; e != nil && e.token.number == tok.number {
		e.spoilt = true
	}
}

// prune makes room. The caller holds the lock.
func (t *tokens) prune() {
	if len(t.of) < maxTokens {
		return
	}
	now := t.now()
	for key, e := range t.of {
		if e.flight == nil && !e.good(now) {
			delete(t.of, key)
		}
	}
}

func (t *tokens) close() {
	t.mu.Lock()
	t.closed = true
	for _, e := range t.of {
		if e.flight != nil {
			e.flight.cancel()
		}
	}
	t.mu.Unlock()
	t.wg.Wait()
}

// newToken reckons how long a token serves, on our clock. The difference of the
// two instants that the authority names is right even where the clocks differ.
func newToken(value string, issued, expires, now time.Time) token {
	life := expires.Sub(now)
	if d := expires.Sub(issued); !issued.IsZero() && d > 0 {
		life = d
	}
	life = min(max(life, tokenLeast), tokenMost)
	return token{value: value, until: now.Add(max(life-tokenMargin, tokenLeast)), end: now.Add(life)}
}
