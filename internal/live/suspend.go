package live

import (
	"math"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store"
)

// trialEvery is how often one suspended job of a queue is tried while the authority is
// out of reach. The client probes the authority by itself; the trial finds out when
// only the service that the client probes is down.
const trialEvery = 10 * time.Second

// Resumes returns how many suspended jobs of a queue the next claim may take: all of
// them while this node reaches the authority, otherwise one now and then.
func (p *Plan) Resumes(q store.Queue) int {
	if p.outSince().IsZero() {
		return math.MaxInt
	}
	now := p.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if age := now.Sub(p.trials[q]); age >= 0 && age < p.pace.Of(trialEvery, time.Second) {
		return 0
	}
	p.trials[q] = now
	return 1
}

// outSince returns since when the authority has been out of reach of this node. It is
// zero while this node reaches it.
func (p *Plan) outSince() time.Time {
	since, _ := p.authority.Down()
	return since
}
