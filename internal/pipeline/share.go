package pipeline

import (
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store"
)

// aloneTime is how long the shares assume that no other taxpayer waits, after a claim
// found none.
const aloneTime = 250 * time.Millisecond

// shares divides the workers of a queue between taxpayers: a taxpayer that sends many
// documents at once must not keep the others waiting. While others wait, a taxpayer
// gets at most a quarter of the workers, and alone at most as many as most.
type shares struct {
	workers, quarter, most int

	mu    sync.Mutex
	busy  int
	of    map[string]int
	asked bool      // the last offer excluded a taxpayer
	alone time.Time // until then no other taxpayer is assumed to wait
	now   func() time.Time
}

func newShares(workers, most int, now func() time.Time) *shares {
	return &shares{workers: workers, quarter: workers / 4, most: most, of: make(map[string]int), now: now}
}

// free returns how many workers have no job.
func (s *shares) free() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.workers - s.busy
}

// offer returns how many jobs the next claim may take, and the taxpayers whose jobs
// it must not take.
func (s *shares) offer() (limit int, except []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	alone, most := s.now().Before(s.alone), s.quarter
	if alone {
		most = s.most
	}
	limit = min(s.workers-s.busy, most)
	for taxpayer, n := range s.of {
		if n >= most {
			except = append(except, taxpayer)
		} else if alone {
			limit = min(limit, most-n)
		}
	}
	s.asked = len(except) > 0 && !alone
	return limit, except
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

// giveBack counts a job of a taxpayer that ended.
func (s *shares) giveBack(taxpayer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy--
	if s.of[taxpayer]--; s.of[taxpayer] == 0 {
		delete(s.of, taxpayer)
	}
}
