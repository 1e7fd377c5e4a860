package pipeline

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// While others wait nobody has more than a quarter of the workers; when nobody
// else does, all of them.
func TestShareIsAQuarterWhileOthersWait(t *testing.T) {
	t.Parallel()
	c := storetest.NewClock()
	rapid.Check(t, func(t *rapid.T) {
		s := newShares(workers, workers, c.Now)
		waiting := map[string]int{}
		for i := range rapid.IntRange(1, 6).Draw(t, "taxpayers") {
			waiting[fmt.Sprint(i)] = rapid.IntRange(0, 100).Draw(t, "jobs")
		}
		running := map[string]int{}
		for range 100 {
			alone := c.Now().Before(s.alone)
			limit, except := s.offer()
			var jobs []store.Job
			before := maps.Clone(running)
			for name := range waiting { // any order: whoever comes first
				for waiting[name] > 0 && len(jobs) < limit && !slices.Contains(except, name) {
					waiting[name]--
					running[name]++
					jobs = append(jobs, store.Job{Scope: store.Scope{TaxpayerID: name}})
				}
			}
			s.take(jobs)
			busy := 0
			for name, n := range running {
				busy += n
				// What was taken while nobody else waited is not taken away, but
				// it does not grow.
				if n > before[name] && !alone && (before[name] >= s.quarter || n >= 2*s.quarter) {
					t.Fatalf("%s has %d workers and had %d while others may wait", name, n, before[name])
				}
			}
			if s.free() != workers-busy {
				t.Fatalf("%d are free and %d busy", s.free(), busy)
			}
			for name, n := range running {
				if n > 0 && rapid.Bool().Draw(t, "done") {
					running[name]--
					s.giveBack(name)
				}
			}
			c.Advance(10 * time.Millisecond)
		}
	})
}

// One taxpayer that has everything to itself uses everything.
func TestShareOfASingleTaxpayer(t *testing.T) {
	t.Parallel()
	c := storetest.NewClock()
	s := newShares(workers, workers, c.Now)
	job := []store.Job{{Scope: store.Scope{TaxpayerID: "a"}}}
	for range 10 {
		limit, except := s.offer()
		if slices.Contains(except, "a") {
			s.take(nil) // nobody else waits
			continue
		}
		for range limit {
			s.take(job)
		}
	}
	if s.free() != 0 {
		t.Errorf("%d workers are idle", s.free())
	}
	c.Advance(aloneTime)
	for range s.quarter {
		s.giveBack("a")
	}
	if limit, except := s.offer(); limit != s.quarter || !slices.Contains(except, "a") {
		t.Errorf("offers %d except %q: others come first now", limit, except)
	}
}
