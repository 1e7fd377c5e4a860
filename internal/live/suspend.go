package live

import (
	"context"
	"math"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/decision"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
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

// tryLater returns the error of a stage that the authority did not answer. The job
// waits for pause, or until the authority answers when this node does not reach it.
func (p *Plan) tryLater(pause time.Duration, cause error) error {
	return &pipeline.LaterError{After: pause, Reason: cause.Error(), OutSince: p.outSince()}
}

// failedPause is the longest wait after a look-up that got no answer.
const failedPause = 10 * time.Minute

// askLater is tryLater for a look-up. It may have arrived, and the authority may answer
// another call a moment later: the job waits for the shortest time between two look-ups.
func (p *Plan) askLater(pause time.Duration, cause error) error {
	return &pipeline.LaterError{After: min(pause, p.pace.Of(failedPause, lookUpPause)), Reason: cause.Error(), OutSince: p.outSince(), Rest: lookUpPause}
}

// heldPause is how soon a document that is held is looked at again.
const heldPause = time.Hour

// holdEnded returns a *pipeline.LaterError for a document whose number range has ended, by
// whichever clock is ahead, and of which the authority certainly has nothing.
func (p *Plan) holdEnded(ctx context.Context, w pipeline.Work, issued store.Issued, attempts []store.Attempt) error {
	ahead, _ := p.authority.Clock()
	reason, err := p.guard.Hold(ctx, decision.Document{Job: w.Job, Issued: issued, Attempts: attempts, Evidence: w.Evidence}, p.now().Add(max(ahead, 0)))
	if err != nil || reason == "" {
		return err
	}
	return &pipeline.LaterError{After: p.pace.Of(heldPause, time.Second), Reason: reason, Uncounted: true, Held: true}
}
