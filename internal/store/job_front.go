package store

import (
	"math"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// A Front remembers where claims found the first jobs of a queue, so that the next
// claim starts there. PostgreSQL keeps the index entries of finished jobs until a
// vacuum removes them, and for as long as a backup or another old transaction could
// see them. A claim that starts at the beginning of the index passes all of them. The
// zero value remembers nothing yet. A nil Front remembers nothing at all.
//
// A job can become claimable before the front, for example when the lease of a dead
// worker ends. Claims find it because they start at the beginning once a second.
type Front struct {
	mu    sync.Mutex
	heads map[frontKey]frontHead
}

const (
	// frontEvery is how often claims start at the beginning.
	frontEvery = time.Second
	// frontLag is how far the front stays behind now at least. The transaction that
	// adds a due job may commit so long after it read the clock.
	frontLag = 10 * time.Second
)

// frontKey names a span of a queue by the first run_at of the span.
type frontKey struct {
	env   fiscal.Environment
	queue Queue
	first int64
}

// frontHead is where claims start.
type frontHead struct {
	dueJob
	readAt time.Time // when a claim last started at the beginning
}

// head returns where the claim starts; fromStart says that it is the beginning.
func (f *Front) head(key frontKey, now time.Time) (head dueJob, fromStart bool) {
	start := dueJob{runAt: key.first}
	if f == nil {
		return start, true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	h, known := f.heads[key]
	if age := now.Sub(h.readAt); !known || age < 0 || age >= frontEvery {
		return start, true
	}
	return h.dueJob, false
}

// move records the jobs that a claim found.
func (f *Front) move(key frontKey, found []dueJob, fromStart bool, now time.Time) {
	if f == nil {
		return
	}
	head := dueJob{runAt: math.MaxInt64}
	if len(found) > 0 {
		head = found[0]
	}
	if lag := micros(now.Add(-frontLag)); key.first < suspendedFrom && head.runAt > lag {
		head = dueJob{runAt: lag}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.heads == nil {
		f.heads = make(map[frontKey]frontHead)
	}
	h := f.heads[key]
	if h.dueJob = head; fromStart {
		h.readAt = now
	}
	f.heads[key] = h
}
