package people

import (
	"sync"
	"time"
)

const (
	// refusedFor is how long a node remembers that a bucket has too many failures. It is
	// short, because a sign-in that is still being checked counts as failed, and may succeed.
	refusedFor  = time.Second
	refusedSize = 10_000
)

// refusedBuckets remembers the buckets of sign-ins that were just refused, so that a flood
// of sign-ins from one address does not reach the database.
type refusedBuckets struct {
	mu  sync.Mutex
	all map[string]refusal
}

// refusal says until when a bucket has too many failures, and until when this is remembered.
type refusal struct{ limited, known time.Time }

func newRefusedBuckets() *refusedBuckets { return &refusedBuckets{all: make(map[string]refusal)} }

func (r *refusedBuckets) add(bucket string, now time.Time, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) >= refusedSize {
		clear(r.all)
	}
	r.all[bucket] = refusal{limited: now.Add(wait), known: now.Add(min(wait, refusedFor))}
}

// check returns a *LimitedError when one of the buckets was just refused.
func (r *refusedBuckets) check(buckets []string, now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, bucket := range buckets {
		if found, ok := r.all[bucket]; ok && now.Before(found.known) {
			return &LimitedError{RetryAfter: found.limited.Sub(now)}
		}
	}
	return nil
}
