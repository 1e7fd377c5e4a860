package dgii

import (
	"context"
	"sync"
)

// slots limit how many calls an origin receives at the same time. An origin is
// forgotten when no call uses it: the directory names many receivers.
type slots struct {
	size    int
	mu      sync.Mutex
	origins map[string]*originSlots
}

// originSlots are the slots of one origin.
type originSlots struct {
	sem   chan struct{}
	users int // calls that hold a slot or wait for one
}

func newSlots(size int) *slots { return &slots{size: size, origins: make(map[string]*originSlots)} }

// acquire waits for a free slot of the origin. The caller calls release to give
// it back. It fails when ctx ends first.
func (s *slots) acquire(ctx context.Context, origin string) (release func(), err error) {
	s.mu.Lock()
	o := s.origins[origin]
	if o == nil {
		o = &originSlots{sem: make(chan struct{}, s.size)}
		s.origins[origin] = o
	}
	o.users++
	s.mu.Unlock()
	leave := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if o.users--; o.users == 0 {
			delete(s.origins, origin)
		}
	}
	select {
	case o.sem <- struct{}{}:
		return func() { <-o.sem; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
