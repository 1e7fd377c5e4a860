package dgii

import "context"

// slots limit how many calls a host receives at the same time. Slots are equal
// when they belong to the same host.
type slots chan struct{}

func newSlots(size int) slots { return make(slots, size) }

// acquire waits for a free slot. The caller calls free to give it back. It fails
// when ctx ends first.
func (s slots) acquire(ctx context.Context) (free func(), err error) {
	select {
	case s <- struct{}{}:
		return func() { <-s }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// busy reports whether fewer than half of the slots are free.
func (s slots) busy() bool { return len(s) > cap(s)/2 }

// acquireSpare takes a slot if at least half of all slots are free. It does not
// wait.
func (s slots) acquireSpare() (free func(), ok bool) {
	if s.busy() {
		return nil, false
	}
	select {
	case s <- struct{}{}:
		return func() { <-s }, true
	default:
		return nil, false
	}
}
