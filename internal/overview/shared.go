package overview

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store"
)

const (
	// sharedFor is how long viewers share an overview. It is the time after which an open
	// page asks again.
	sharedFor = 2 * time.Second
	// readTime is how long a node waits for an overview. The viewer who asked first may have
	// left by then, so the time does not come from a request.
	readTime = 10 * time.Second
	// maxShared is how many sets of taxpayers have an overview in memory.
	maxShared = 256
)

// Shared keeps the overview of each set of taxpayers for two seconds. All viewers of the
// same taxpayers get the same value, so many open pages cost as much as one. Its methods
// may be called at the same time.
type Shared struct {
	read func(context.Context, store.Within) (Overview, error)
	now  func() time.Time

	mu  sync.Mutex
	all map[string]*sharedOverview
}

// sharedOverview is an overview that is read, or that one viewer reads for all.
type sharedOverview struct {
	started  time.Time
	done     chan struct{} // closed when overview and err are set
	overview Overview
	err      error
}

// NewShared returns a Shared that reads overviews with a reporter.
func NewShared(r *Reporter) *Shared {
	return &Shared{read: r.Overview, now: r.o.Now, all: map[string]*sharedOverview{}}
}

// Overview returns the overview of taxpayers, at most two seconds old. The caller must not
// change it: other viewers have the same maps. An error is returned to all who wait for it,
// and the next call reads again.
func (s *Shared) Overview(ctx context.Context, within store.Within) (Overview, error) {
	one := s.join(ctx, within)
	select {
	case <-one.done:
		return one.overview, one.err
	case <-ctx.Done():
		return Overview{}, ctx.Err()
	}
}

// join returns the overview of taxpayers that is valid now. If there is none, it starts to
// read one.
func (s *Shared) join(ctx context.Context, within store.Within) *sharedOverview {
	key, now := keyOf(within), s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.all[key]; one != nil && one.valid(now) {
		return one
	}
	s.makeRoom(now)
	one := &sharedOverview{started: now, done: make(chan struct{})}
	s.all[key] = one
	go s.fill(context.WithoutCancel(ctx), within, one)
	return one
}

// fill reads an overview.
func (s *Shared) fill(ctx context.Context, within store.Within, one *sharedOverview) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	defer close(one.done)
	one.overview, one.err = s.read(ctx, within)
}

// valid reports whether a viewer at a moment may get the overview: it is being read, or
// was read without an error and is not old. A clock that was set back makes it invalid.
func (o *sharedOverview) valid(now time.Time) bool {
	select {
	case <-o.done:
	default:
		return true
	}
	age := now.Sub(o.started)
	return o.err == nil && age >= 0 && age < sharedFor
}

// makeRoom removes overviews that are not valid, when there are many. If all are valid, it
// removes any of them: its viewers read it again.
func (s *Shared) makeRoom(now time.Time) {
	if len(s.all) < maxShared {
		return
	}
	for key, one := range s.all {
		if !one.valid(now) {
			delete(s.all, key)
		}
	}
	for key := range s.all {
		if len(s.all) < maxShared {
			return
		}
		delete(s.all, key)
	}
}

// keyOf returns the same text for the same set of taxpayers, in whatever order.
func keyOf(within store.Within) string {
	if within.All {
		return string(within.Environment) + " all"
	}
	ids := slices.Clone(within.Taxpayers)
	slices.Sort(ids)
	return string(within.Environment) + " of " + strings.Join(slices.Compact(ids), " ")
}
