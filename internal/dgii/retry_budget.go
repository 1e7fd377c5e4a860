package dgii

import "sync"

// retryShare is how many retries each call adds to the budget.
const retryShare = 0.1

// A retryBudget limits retries to a tenth of all calls, after a first reserve.
// Without it, an authority that refuses every token would receive twice the
// calls.
type retryBudget struct {
	mu        sync.Mutex
	left, max float64
}

func newRetryBudget(size float64) *retryBudget { return &retryBudget{left: size, max: size} }

// countCall adds the share of one call to the budget.
func (b *retryBudget) countCall() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = min(b.max, b.left+retryShare)
}

// takeRetry reports whether one retry is allowed, and counts it.
func (b *retryBudget) takeRetry() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}
