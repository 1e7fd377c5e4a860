package dgii

import (
	"context"
	"sync"
	"time"
)

// slots bound how many calls an origin gets at once. Origins come and go: those
// of receivers are named by a directory.
type slots struct {
	size int
	mu   sync.Mutex
	of   map[string]*slot
}

type slot struct {
	free  chan struct{}
	users int
}

func newSlots(size int) *slots { return &slots{size: size, of: make(map[string]*slot)} }

// take waits for a slot. The function that it returns gives it back.
func (s *slots) take(ctx context.Context, origin string) (release func(), err error) {
	s.mu.Lock()
	at := s.of[origin]
	if at == nil {
		at = &slot{free: make(chan struct{}, s.size)}
		s.of[origin] = at
	}
	at.users++
	s.mu.Unlock()
	leave := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if at.users--; at.users == 0 {
			delete(s.of, origin)
		}
	}
	select {
	case at.free <- struct{}{}:
		return func() { <-at.free; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}

// A budget lets repeats be at most a tenth of all calls, beyond a first few.
type budget struct {
	mu         sync.Mutex
	left, most float64
}

const budgetShare = 0.1

func newBudget(most float64) *budget { return &budget{left: most, most: most} }

func (b *budget) earn() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = min(b.most, b.left+budgetShare)
}

func (b *budget) spend() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}

// refusalWait is how long a refusal that only configuration can mend is waited
// out before one document tries again.
const refusalWait = time.Minute

// A Refusal is why nothing is sent for a signer: the authority refuses the
// signer or the signer's token, whatever the document.
type Refusal struct {
	Reason     string
	Delegation bool // the taxpayer has not delegated the signer
	Since      time.Time
	Until      time.Time // when one document will try again
}

// refusals remember who is refused. Refusals stay, so that they can be shown,
// until something succeeds; after each wait one call may try.
type refusals struct {
	now  func() time.Time
	wait time.Duration
	mu   sync.Mutex
	of   map[refusalKey]Refusal
}

// A refusalKey is a signer, and either nothing (no token is given), a taxpayer
// (who has not delegated the signer), or a service (which takes no token).
type refusalKey struct{ signer, scope string }

func newRefusals(now func() time.Time, wait time.Duration) *refusals {
	return &refusals{now: now, wait: wait, of: make(map[refusalKey]Refusal)}
}

func (r *refusals) add(k refusalKey, reason string, delegation bool) Refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	refusal, again := r.of[k]
	if !again {
		refusal.Since = now
	}
	refusal.Reason, refusal.Delegation, refusal.Until = reason, delegation, now.Add(r.wait)
	r.of[k] = refusal
	return refusal
}

// stops tells whether a call must wait for a refusal. The first that need not
// is the one that tries for all.
func (r *refusals) stops(k refusalKey) (Refusal, *RetryAfter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	refusal, ok := r.of[k]
	if !ok {
		return Refusal{}, nil
	}
	now := r.now()
	if left := refusal.Until.Sub(now); left > 0 && left <= r.wait {
		return refusal, &RetryAfter{left}
	}
	refusal.Until = now.Add(r.wait)
	r.of[k] = refusal
	return Refusal{}, nil
}

func (r *refusals) clear(k refusalKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, k)
}

func (r *refusals) find(k refusalKey) (Refusal, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	refusal, ok := r.of[k]
	return refusal, ok
}
