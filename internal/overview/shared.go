package overview

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

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
	read  func(context.Context, store.Within) (Overview, error)
	now   func() time.Time
	reads singleflight.Group

	mu  sync.Mutex
	all map[string]sharedOverview
}

// sharedOverview is an overview, and when its reading began.
type sharedOverview struct {
	started  time.Time
	overview Overview
}

// NewShared returns a Shared that reads overviews with a reporter.
func NewShared(r *Reporter) *Shared {
	return &Shared{read: r.Overview, now: r.o.Now, all: map[string]sharedOverview{}}
}

// Overview returns the overview of taxpayers, at most two seconds old. The caller must not
// change it: other viewers have the same maps. An error is returned to all who wait for it,
// and the next call reads again.
func (s *Shared) Overview(ctx context.Context, within store.Within) (Overview, error) {
	key := keyOf(within)
	s.mu.Lock()
	one, ok := s.all[key]
	s.mu.Unlock()
	if ok && one.valid(s.now()) {
		return one.overview, nil
	}
	reading := s.reads.DoChan(key, func() (any, error) { return s.fill(context.WithoutCancel(ctx), key, within) })
	select {
	case r := <-reading:
		return r.Val.(Overview), r.Err
	case <-ctx.Done():
		return Overview{}, ctx.Err()
	}
}

// fill reads an overview and keeps it.
func (s *Shared) fill(ctx context.Context, key string, within store.Within) (Overview, error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	one := sharedOverview{started: s.now()}
	var err error
	if one.overview, err = s.read(ctx, within); err != nil {
		return Overview{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.makeRoom(s.now())
	s.all[key] = one
	return one.overview, nil
}

// valid reports whether a viewer at a moment may get the overview: it is not old. A clock
// that was set back makes it invalid.
func (o sharedOverview) valid(now time.Time) bool {
	age := now.Sub(o.started)
	return age >= 0 && age < sharedFor
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
