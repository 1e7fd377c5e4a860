package dgii

import (
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// refusalWait is how long the client waits after a refusal before it lets one
// call try again. Only a change outside of the client, such as a delegation in
// the authority's portal, ends such a refusal.
const refusalWait = time.Minute

// A refusal says why the authority accepts no call of a signer, whatever the
// document: it refuses the signer or the signer's token.
type refusal struct {
	reason     string
	delegation bool // the taxpayer has not delegated the signer
	since      time.Time
	until      time.Time // when one call tries again
	loggedAt   time.Time
}

// refusalLogEvery is how often a refusal that lasts is logged. Each call that tries again
// meets it.
const refusalLogEvery = time.Hour

// A refusalCache remembers refusals. A refusal stays until a call succeeds. After
// each wait the cache lets one call try again.
type refusalCache struct {
	now     func() time.Time
	wait    time.Duration
	mu      sync.Mutex
	entries map[refusalKey]refusal
}

// A refusalKey is a signer and what the refusal applies to. The scope is empty
// when the authority gives the signer no token, "taxpayer RNC" when the taxpayer
// has not delegated the signer, and "service NAME" when that service refuses the
// signer's tokens.
type refusalKey struct{ signer, scope string }

func newRefusalCache(now func() time.Time, wait time.Duration) *refusalCache {
	return &refusalCache{now: now, wait: wait, entries: make(map[refusalKey]refusal)}
}

// add stores a refusal, or prolongs the one that is there. It reports whether the refusal
// is to be logged.
func (c *refusalCache) add(k refusalKey, reason string, delegation bool) (r refusal, log bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	r, exists := c.entries[k]
	if !exists {
		r.since = now
	}
	if age := now.Sub(r.loggedAt); !exists || r.reason != reason || age < 0 || age >= refusalLogEvery {
		log, r.loggedAt = true, now
	}
	r.reason, r.delegation, r.until = reason, delegation, now.Add(c.wait)
	c.entries[k] = r
	return r, log
}

// check returns the refusal and the time to wait when a call must not be made. It
// returns nil when the call may be made; after a refusal, that call is the one
// that tries again while the others wait.
func (c *refusalCache) check(k refusalKey) (refusal, *RetryAfterError) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, exists := c.entries[k]
	if !exists {
		return refusal{}, nil
	}
	now := c.now()
	if left := r.until.Sub(now); left > 0 && left <= c.wait {
		return r, &RetryAfterError{left}
	}
	r.until = now.Add(c.wait)
	c.entries[k] = r
	return refusal{}, nil
}

func (c *refusalCache) clear(k refusalKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, k)
}

func (c *refusalCache) find(k refusalKey) (refusal, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, exists := c.entries[k]
	return r, exists
}

// refusedError returns the error of a call that a refusal prevents.
func (c *Client) refusedError(s *service, r refusal, wait *RetryAfterError) error {
	kind := fiscal.ErrNotReceived
	if r.delegation {
		kind = fiscal.ErrNotDelegated
	}
	return &callError{kind: kind, service: s.name, text: r.reason, cause: wait}
}

// addRefusal stores a refusal, logs it with a message unless that is done, and returns the
// error of the call that met it.
func (c *Client) addRefusal(s *service, k refusalKey, reason string, delegation bool, message string, attributes ...any) error {
	r, log := c.refusals.add(k, reason, delegation)
	if log {
		c.log.Warn(message, attributes...)
	}
	return c.refusedError(s, r, &RetryAfterError{r.until.Sub(c.now())})
}

// refusalOf returns the refusal that keeps documents of a taxpayer from being
// sent with a signer. It stays until a call succeeds.
func (c *Client) refusalOf(id *xmlsig.Identity, rnc string) (refusal, bool) {
	signer := fingerprint(id)
	for _, scope := range []string{"", "taxpayer " + rnc, "service " + c.reception.name, "service " + c.rfce.name} {
		if r, exists := c.refusals.find(refusalKey{signer, scope}); exists {
			return r, true
		}
	}
	return refusal{}, false
}

// Undelegated reports whether the authority has answered within the last minute
// that a taxpayer has not delegated a signer. It does not remember the answer for
// longer: a caller that issues nothing while Undelegated is true would otherwise
// never learn that the taxpayer has delegated the signer since.
func (c *Client) Undelegated(id *xmlsig.Identity, rnc string) (reason string, is bool) {
	r, exists := c.refusalOf(id, rnc)
	if !exists || !r.delegation || !c.now().Before(r.until) {
		return "", false
	}
	return r.reason, true
}
