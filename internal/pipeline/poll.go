package pipeline

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// pollPauses are how long to wait before asking for a result again. Slowness is
// no failure: nothing is ever sent again because a verdict takes long.
var pollPauses = []time.Duration{
	1 * time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute,
	5 * time.Minute, 5 * time.Minute, 5 * time.Minute, 5 * time.Minute, 5 * time.Minute, 5 * time.Minute,
	5 * time.Minute, 5 * time.Minute, 5 * time.Minute, 5 * time.Minute, 5 * time.Minute, 5 * time.Minute,
	15 * time.Minute,
}

// A track id that the authority does not know so often, over so long, is lost.
const (
	lostTimes = 3
	lostSpan  = 10 * time.Minute
)

// poll asks for the result of every track id that has none yet.
func (l *Live) poll(ctx context.Context, w Work) (Step, error) {
	id, err := l.identity(ctx, w.Job.Scope)
	if err != nil {
		return Step{}, err
	}
	findings, err := l.results(ctx, id, *w.Issued, w.Evidence)
	if err != nil && len(findings) == 0 {
		return Step{}, &Later{l.pause(pollPauses, w.Job.Attempt), err.Error()}
	}
	return l.again(l.learn(*w.Issued, w.Evidence, nil, findings...), stagePoll, l.pause(pollPauses, w.Job.Attempt)), nil
}

// results asks about every track id that is not closed. The error is the last
// look-up's that could not be made.
func (l *Live) results(ctx context.Context, id *xmlsig.Identity, issued store.Issued, evidence []Evidence) (findings []finding, failure error) {
	s := newSurvey(evidence)
	for _, trackID := range s.order {
		if s.tracks[trackID].closed {
			continue
		}
		answer, err := l.Authority.Result(ctx, id, trackID)
		if err == nil && (answer.ENCF != "" && answer.ENCF != issued.ENCF || answer.RNC != "" && answer.RNC != issued.RNC) {
			l.Log.Error("the authority answered about another document", "document_id", issued.DocumentID, "encf", issued.ENCF)
			err = fiscal.ErrUnavailable
		}
		if err != nil {
			failure = err
			continue
		}
		now := l.Now()
		if answer.Verdict == fiscal.VerdictNotFound {
			findings = append(findings, finding{Evidence{Kind: KindAbsent, TrackID: trackID, At: now}, answer.Raw})
			if lost(evidence, trackID, now, time.Duration(float64(lostSpan)/l.Pace)) {
				findings = append(findings, finding{Evidence{Kind: KindLost, TrackID: trackID, At: now}, nil})
			}
			continue
		}
		answer.TrackID = trackID
		findings = append(findings, conclusion(answer, now))
	}
	return findings, failure
}

// lost tells whether the authority has not known a track id for long enough,
// with what it says now.
func lost(evidence []Evidence, trackID string, now time.Time, span time.Duration) bool {
	times, first := 1, now
	for _, e := range evidence {
		if e.Kind == KindAbsent && e.TrackID == trackID {
			times++
			if e.At.Before(first) {
				first = e.At
			}
		}
	}
	return times >= lostTimes && now.Sub(first) >= span
}

// pause is the wait after an attempt of a stage, with some jitter so that
// documents do not march in step.
func (l *Live) pause(pauses []time.Duration, attempt int64) time.Duration {
	wait := pauses[min(int(max(attempt, 1)), len(pauses)-1)]
	wait += time.Duration(rand.Int64N(int64(wait)/5 + 1)) //nolint:gosec // jitter is no secret
	return l.paced(wait, time.Second)
}

// again lets a step go on with its own stage at a pause of its own, counting its
// attempts, when that is what follows.
func (l *Live) again(s Step, stage string, pause time.Duration) Step {
	within := s.Within
	s.Within = func(rows *store.Batch, before store.Invoice) (Change, error) {
		c, err := within(rows, before)
		if err == nil && c.Next == stage {
			c.Again, c.After = true, pause
		}
		return c, err
	}
	return s
}

// done ends the job of a document, whatever its status.
func (l *Live) done(s Step) Step {
	within := s.Within
	s.Within = func(rows *store.Batch, before store.Invoice) (Change, error) {
		c, err := within(rows, before)
		c.Next = ""
		return c, err
	}
	return s
}
