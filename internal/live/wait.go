package live

import (
	"context"
	"errors"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/cause"
	"github.com/fiscalhub/fiscalhub/internal/decision"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// This file has the reasons why a document waits that more than one line is needed for.

const (
	readinessPause = time.Minute      // before a document looks at its taxpayer's data again
	clockPause     = 5 * time.Second  // before a document looks at the clocks again
	failedPause    = 10 * time.Minute // the longest after a look-up that got no answer
	heldPause      = time.Hour        // before a document that is held is looked at again
)

// wait returns the error of a stage that waits.
func wait(w pipeline.Wait) error { return &pipeline.WaitError{Wait: w} }

// waitForTaxpayer waits until the taxpayer's data have changed. Nothing was tried.
func (p *Plan) waitForTaxpayer(reason cause.Cause) error {
	return wait(pipeline.Wait{After: p.pace.Of(readinessPause, time.Second), Reason: reason, Untried: true})
}

// waitForAuthorityClock waits until the authority's clock and ours agree.
func (p *Plan) waitForAuthorityClock(ahead time.Duration) error {
	return wait(pipeline.Wait{
		After:  p.pace.Of(readinessPause, time.Second),
		Reason: cause.New(cause.ClockAuthority, ahead), Untried: true,
	})
}

// waitForNodeClock waits until the clock of this node and the database's agree.
func (p *Plan) waitForNodeClock(ahead time.Duration) error {
	return wait(pipeline.Wait{
		After:  p.pace.Of(clockPause, 100*time.Millisecond),
		Reason: cause.New(cause.ClockNode, ahead), Untried: true,
	})
}

// waitForConfirmedClock waits until the authority confirms our clock for the first time.
func (p *Plan) waitForConfirmedClock(failure error) error {
	pause := p.pace.Of(clockPause, 100*time.Millisecond)
	var asked interface{ Wait() time.Duration }
	if errors.As(failure, &asked) {
		pause = asked.Wait()
	}
	return wait(pipeline.Wait{After: pause, Reason: cause.New(cause.ClockUnconfirmed, cause.Of(failure))})
}

// waitForTurn waits until documents with lower numbers were sent. Nothing was tried.
func waitForTurn(what pipeline.WaitFor, after time.Duration) error {
	return wait(pipeline.Wait{For: what, After: after, Reason: cause.New(cause.LowerNumbersFirst), Untried: true})
}

// waitForAuthority waits for pause while this node reaches the authority. Otherwise it
// waits until the authority answers, and for rest at least.
func (p *Plan) waitForAuthority(pause, rest time.Duration, reason cause.Cause) pipeline.Wait {
	if since := p.outSince(); !since.IsZero() {
		return pipeline.Wait{For: pipeline.WaitAuthority, Since: since, After: rest, Reason: reason}
	}
	return pipeline.Wait{After: pause, Reason: reason}
}

// tryLater returns the error of a stage that the authority did not answer.
func (p *Plan) tryLater(pause time.Duration, failure error) error {
	return wait(p.waitForAuthority(pause, 0, cause.Of(failure)))
}

// askLater is tryLater for a look-up. It may have arrived, and the authority may answer
// another call a moment later: the job waits for the shortest time between two look-ups.
func (p *Plan) askLater(pause time.Duration, failure error) error {
	return wait(p.waitForAuthority(min(pause, p.pace.Of(failedPause, lookUpPause)), lookUpPause, cause.Of(failure)))
}

// holdEnded returns a *pipeline.WaitError for a document whose number range has ended, by
// whichever clock is ahead, and of which the authority certainly has nothing.
func (p *Plan) holdEnded(ctx context.Context, w pipeline.Work, issued store.Issued, attempts []store.Attempt) error {
	ahead, _ := p.authority.Clock()
	reason, err := p.guard.Hold(ctx, decision.Document{Job: w.Job, Issued: issued, Attempts: attempts, Evidence: w.Evidence}, p.now().Add(max(ahead, 0)))
	if err != nil || reason == "" {
		return err
	}
	return wait(pipeline.Wait{For: pipeline.WaitAside, After: p.pace.Of(heldPause, time.Second), Reason: reason, Untried: true})
}
