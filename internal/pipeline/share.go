package pipeline

import (
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store"
)

const (
	// maxShare is how many workers one taxpayer may have while others wait.
	maxShare = workers / 4
	// aloneTime is how long it is believed that nobody else waits: finding out
	// means passing by everything that does.
	aloneTime = 250 * time.Millisecond
)

// shares divides the workers between taxpayers: one that sends a great many
// documents at once must not keep the others waiting.
type shares struct {
	mu    sync.Mutex
	busy  int
	of    map[string]int
	asked bool      // jobs of others were asked for
	alone time.Time // until when nobody else is believed to wait
	now   func() time.Time
}

func newShares(now func() time.Time) *shares { return &shares{of: make(map[string]int), now: now} }

func (s *shares) free() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return workers - s.busy
}

// offer says how many jobs may be taken now, and whose may not.
func (s *shares) offer() (limit int, except []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	limit = workers - s.busy
	if s.now().Before(s.alone) {
		s.asked = false
		return limit, nil
	}
	for taxpayer, n := range s.of {
		if n >= maxShare {
			except = append(except, taxpayer)
		}
	}
	s.asked = len(except) > 0
	return min(limit, maxShare), except
}

// take counts claimed jobs.
func (s *shares) take(jobs []store.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked && len(jobs) == 0 {
		s.alone = s.now().Add(aloneTime)
	}
	for _, job := range jobs {
		s.busy++
		s.of[job.TaxpayerID]++
	}
}

func (s *shares) giveBack(taxpayer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy--
	if s.of[taxpayer]--; s.of[taxpayer] == 0 {
		delete(s.of, taxpayer)
	}
}
