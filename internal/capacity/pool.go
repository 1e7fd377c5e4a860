package capacity

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// A Pool is an amount of something scarce that many requests share: slots, bytes,
// connections. Each account may hold a part of it. A request that does not get its
// part at once may wait for it.
//
// A freed part goes to the account that holds least, and among those that hold the same
// to the one that was served least recently: in a pool with a single part, accounts take
// turns, however many requests of one of them wait. Within an account the newest request
// is served first when newestFirst is set: under overload its client is the most likely
// to be still there. Otherwise the oldest one is served first.
type Pool struct {
	kind        Kind // of the pool as a whole
	max         int64
	maxWaiting  int
	newestFirst bool

	mu       sync.Mutex
	used     int64
	taken    uint64                  // how many parts requests have got so far
	accounts map[accountKey]*account // those that hold a part or wait for one
	waiting  []*waiter               // oldest first
}

type accountKey struct {
	kind Kind
	name string
}

// account is what one account holds of a pool.
type account struct {
	used    int64
	waiting int
	served  uint64 // the number of the last part it got; for a new account that of the last part that any got
}

// A Share says how much one account may hold of a pool.
type Share struct {
	Kind       Kind
	Name       string // of the account, among those of its kind
	Max        int64
	MaxWaiting int // requests of the account that wait; 0: as many as the pool allows
}

// A Kind is a kind of account. It names the bound that refused a request.
type Kind string

// The kinds of accounts.
const (
	Service    Kind = "service"   // all tenants together
	Strangers  Kind = "strangers" // all strangers together
	Address    Kind = "address"
	Credential Kind = "credential"
	Taxpayer   Kind = "taxpayer"
)

// A FullError means that a pool has no part for a request.
type FullError struct {
	Bound Kind // the account that holds too much
}

func (e *FullError) Error() string { return "the capacity of the " + string(e.Bound) + " is used up" }

// waiter is a request that waits. It receives true with its part, and false when it
// is refused.
type waiter struct {
	hold    *Hold
	granted chan bool
	bound   Kind // why it was refused
}

// A Hold is a part of a pool that a request holds. The nil Hold holds nothing.
type Hold struct {
	pool     *Pool
	n        int64
	shares   []Share
	accounts []*account // of the shares
}

func newPool(kind Kind, size int64, maxWaiting int, newestFirst bool) *Pool {
	return &Pool{kind: kind, max: size, maxWaiting: maxWaiting, newestFirst: newestFirst, accounts: make(map[accountKey]*account)}
}

// TryAcquire takes n for a request if that much is free. It fails with a *FullError
// otherwise.
func (p *Pool) TryAcquire(n int64, shares ...Share) (*Hold, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.newHold(n, shares)
	if bound := p.bound(h); bound != "" {
		p.forget(h)
		return nil, &FullError{bound}
	}
	p.take(h)
	return h, nil
}

// Acquire takes n for a request and waits for it up to patience. It fails with a
// *FullError after that time, when ctx ends, and when too many others wait. A
// request for more than the pool or a share has waits until it can have all of it.
// The order of the shares is from the widest account to the narrowest.
func (p *Pool) Acquire(ctx context.Context, n int64, patience time.Duration, shares ...Share) (*Hold, error) {
	p.mu.Lock()
	h := p.newHold(n, shares)
	if p.bound(h) == "" && !p.mustQueue(h) {
		p.take(h)
		p.mu.Unlock()
		return h, nil
	}
	w := &waiter{hold: h, granted: make(chan bool, 1)}
	p.enqueue(w)
	p.mu.Unlock()

	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case granted := <-w.granted:
		return w.result(granted)
	case <-timeout.C:
	case <-ctx.Done():
	}
	return p.giveUp(w)
}

// giveUp ends the wait of a request, unless it was granted or refused meanwhile.
func (p *Pool) giveUp(w *waiter) (*Hold, error) {
	p.mu.Lock()
	if i := slices.Index(p.waiting, w); i >= 0 {
		p.refuse(i)
		p.grant() // others may have waited behind it
	}
	p.mu.Unlock()
	return w.result(<-w.granted)
}

// result returns what Acquire returns at the end of a wait.
func (w *waiter) result(granted bool) (*Hold, error) {
	if granted {
		return w.hold, nil
	}
	return nil, &FullError{w.bound}
}

// refuse removes a waiter and refuses it.
func (p *Pool) refuse(i int) {
	w := p.waiting[i]
	if w.bound = p.bound(w.hold); w.bound == "" {
		w.bound = p.kind // it waits behind others
	}
	p.remove(i)
	w.granted <- false
}

// Release gives the part back. Only the first call has an effect.
func (h *Hold) Release() {
	if h == nil {
		return
	}
	p := h.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	h.shrink(0)
}

// Shrink gives back what the request holds beyond n.
func (h *Hold) Shrink(n int64) {
	if h == nil {
		return
	}
	h.pool.mu.Lock()
	defer h.pool.mu.Unlock()
	h.shrink(n)
}

func (h *Hold) shrink(n int64) {
	if n >= h.n {
		return
	}
	p, less := h.pool, h.n-n
	h.n = n
	p.used -= less
	for _, a := range h.accounts {
		a.used -= less
	}
	if n == 0 {
		p.forget(h)
	}
	p.grant()
}

// newHold returns a hold that is not taken yet. A request for more than can ever be
// free takes everything.
func (p *Pool) newHold(n int64, shares []Share) *Hold {
	n = min(n, p.max)
	h := &Hold{pool: p, shares: shares, accounts: make([]*account, len(shares))}
	for i, s := range shares {
		n = min(n, s.Max)
		a := p.accounts[s.key()]
		if a == nil {
			a = &account{served: p.taken}
			p.accounts[s.key()] = a
		}
		h.accounts[i] = a
	}
	h.n = n
	return h
}

func (s Share) key() accountKey { return accountKey{s.Kind, s.Name} }

// forget deletes the accounts of a hold that hold nothing and wait for nothing.
func (p *Pool) forget(h *Hold) {
	for i, a := range h.accounts {
		if key := h.shares[i].key(); a.used == 0 && a.waiting == 0 && p.accounts[key] == a {
			delete(p.accounts, key)
		}
	}
}

// bound returns the kind of account that keeps a hold from being taken now, or ""
// when it can be taken.
func (p *Pool) bound(h *Hold) Kind {
	if kind := h.shareBound(); kind != "" {
		return kind
	}
	if p.used+h.n > p.max {
		return p.kind
	}
	return ""
}

// shareBound is bound for the shares alone.
func (h *Hold) shareBound() Kind {
	for i, s := range h.shares {
		if h.accounts[i].used+h.n > s.Max {
			return s.Kind
		}
	}
	return ""
}

// mustQueue reports whether a request that could be served at once must wait behind
// others, because a request for much would never get its turn if small ones passed it.
// Where the newest request comes first, none has to.
func (p *Pool) mustQueue(h *Hold) bool {
	if p.newestFirst {
		return false
	}
	for _, w := range p.waiting {
		if w.hold.shareBound() == "" || w.hold.sameAccount(h) {
			return true
		}
	}
	return false
}

// sameAccount reports whether two holds have an account in common.
func (h *Hold) sameAccount(other *Hold) bool {
	for _, a := range h.accounts {
		if slices.Contains(other.accounts, a) {
			return true
		}
	}
	return false
}

func (p *Pool) take(h *Hold) {
	p.used += h.n
	p.taken++
	for _, a := range h.accounts {
		a.used += h.n
		a.served = p.taken
	}
}

// enqueue adds a waiter. When too many wait, it refuses one of the account that has
// the most of them.
func (p *Pool) enqueue(w *waiter) {
	p.waiting = append(p.waiting, w)
	for _, a := range w.hold.accounts {
		a.waiting++
	}
	for i, s := range w.hold.shares {
		if s.MaxWaiting > 0 && w.hold.accounts[i].waiting > s.MaxWaiting {
			p.refuseOne(w.hold.accounts[i])
			return
		}
	}
	if len(p.waiting) > p.maxWaiting {
		var most *account
		for _, other := range p.waiting {
			if a := other.hold.widest(); most == nil || a != nil && a.waiting > most.waiting {
				most = a
			}
		}
		p.refuseOne(most)
	}
}

// widest returns the first account, or nil.
func (h *Hold) widest() *account {
	if len(h.accounts) == 0 {
		return nil
	}
	return h.accounts[0]
}

// refuseOne refuses the waiter of an account that would be served last.
func (p *Pool) refuseOne(a *account) {
	last := -1
	for i, w := range p.waiting {
		if a != nil && !slices.Contains(w.hold.accounts, a) {
			continue
		}
		if last < 0 || !p.newestFirst {
			last = i
		}
	}
	p.refuse(last)
}

// remove removes a waiter from the queue.
func (p *Pool) remove(i int) {
	w := p.waiting[i]
	p.waiting = slices.Delete(p.waiting, i, i+1)
	for _, a := range w.hold.accounts {
		a.waiting--
	}
	p.forget(w.hold)
}

// grant serves the waiters that can be served now.
func (p *Pool) grant() {
	for {
		next := p.next()
		if next < 0 || p.used+p.waiting[next].hold.n > p.max {
			return
		}
		w := p.waiting[next]
		p.take(w.hold)
		p.remove(next)
		w.granted <- true
	}
}

// next returns the waiter that is served next, among those whose shares allow it, or
// -1.
func (p *Pool) next() int {
	best, least := -1, &account{}
	for i, w := range p.waiting {
		if w.hold.shareBound() != "" {
			continue
		}
		a := w.hold.widest()
		if a == nil {
			a = &account{}
		}
		order := cmp.Or(cmp.Compare(a.used, least.used), cmp.Compare(a.served, least.served))
		if best < 0 || order < 0 || order == 0 && p.newestFirst {
			best, least = i, a
		}
	}
	return best
}

// usage returns how much of the pool is held, and how many requests wait.
func (p *Pool) usage() (used int64, waiting int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used, len(p.waiting)
}
