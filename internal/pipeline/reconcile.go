package pipeline

import (
	"context"
	"errors"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// reconcilePauses are how long to wait before asking again about a document that
// may have arrived.
var reconcilePauses = []time.Duration{5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour}

// The proof that a document is not at the authority: so many well-formed answers
// that say so, so far apart. Where no look-up by number exists, a document is
// sent once more after so many rounds.
const (
	absentTimes = 3
	absentSpan  = time.Minute
	blindRound  = 5
)

// reconcile finds out what became of a document that may have arrived: by its
// number, by its track ids, and only when it is proven not to be there by
// sending the same bytes again.
func (l *Live) reconcile(ctx context.Context, w Work) (Step, error) {
	issued, err := l.issued(ctx, w)
	if err != nil {
		return Step{}, err
	}
	id, err := l.identity(ctx, w.Job.Scope)
	if err != nil {
		return Step{}, err
	}
	evidence := w.Evidence
	look := l.lookECF
	if issued.Summarized {
		look = l.lookSummary
	}
	findings, absent, err := look(ctx, id, issued, evidence)
	pause := l.pause(reconcilePauses, w.Job.Attempt)
	if err != nil && len(findings) == 0 && !errors.Is(err, fiscal.ErrAbsent) {
		return Step{}, &Later{pause, err.Error()}
	}
	s := newSurvey(evidence)
	for _, f := range findings {
		if f.TrackID != "" || f.Kind == KindState && f.Ours {
			findings = append(findings, l.settled(s)...)
			break
		}
	}
	resend := false
	switch {
	case absent:
		findings = append(findings, finding{Evidence: Evidence{Kind: KindAbsent, At: l.Now()}})
		resend = l.provenAbsent(evidence, l.Now())
	case errors.Is(err, fiscal.ErrAbsent) && len(findings) == 0:
		// Nobody can be asked here: sent once more, and the rest is an
		// operator's.
		attempts, err := l.Store.Attempts(ctx, w.Job.Scope, w.Job.DocumentID)
		if err != nil {
			return Step{}, err
		}
		if resend = w.Job.Attempt >= blindRound && len(attempts) < 2; !resend {
			return Step{}, &Later{pause, "no look-up by number exists in this environment"}
		}
	}
	if resend {
		findings = append(findings, l.settled(s)...)
	}
	step := l.again(l.learn(issued, evidence, nil, findings...), stageReconcile, pause)
	if !resend {
		return step, nil
	}
	within := step.Within
	step.Within = func(rows *store.Batch, before store.Invoice) (Change, error) {
		c, err := within(rows, before)
		if err == nil && c.Next == stageReconcile {
			c.Next, c.Again, c.After, c.Cause = stageSubmit, false, 0, "proven not to be at the authority; the same bytes are sent again"
		}
		return c, err
	}
	return step, nil
}

// settled explains every inconclusive attempt that is still open.
func (l *Live) settled(s *survey) []finding {
	var findings []finding
	for attempt := range s.open {
		findings = append(findings, finding{Evidence: Evidence{Kind: KindSettled, Attempt: attempt, At: l.Now()}})
	}
	return findings
}

// provenAbsent tells whether the authority has said often enough, since the last
// attempt that may have arrived, that it has no such document.
func (l *Live) provenAbsent(evidence []Evidence, now time.Time) bool {
	span := time.Duration(float64(absentSpan) / l.Pace)
	var since time.Time
	for _, e := range evidence {
		if e.Kind == KindInconclusive && e.At.After(since) {
			since = e.At
		}
	}
	times, last := 0, time.Time{}
	for _, e := range append(evidence, Evidence{Kind: KindAbsent, At: now}) {
		if e.Kind == KindAbsent && e.TrackID == "" && e.At.After(since) && e.At.Sub(last) >= span {
			times, last = times+1, e.At
		}
	}
	return times >= absentTimes
}

// lookECF asks for the track ids of the number, for the result of each, and for
// the state of the number when that gave nothing.
func (l *Live) lookECF(ctx context.Context, id *xmlsig.Identity, issued store.Issued, evidence []Evidence) (findings []finding, absent bool, err error) {
	tracks, err := l.Authority.TrackIDs(ctx, id, query(issued))
	known := evidence
	if err == nil {
		for _, t := range tracks {
			e := Evidence{Kind: KindTrack, TrackID: t.TrackID, At: l.Now()}
			findings, known = append(findings, finding{e, t.Raw}), append(known, e)
		}
		absent = len(tracks) == 0
	}
	if len(newSurvey(known).order) > 0 {
		results, errResult := l.results(ctx, id, issued, known)
		findings = append(findings, results...)
		if len(results) > 0 {
			return findings, false, nil
		}
		err = errors.Join(err, errResult)
	}
	if len(tracks) > 0 || absent {
		return findings, absent, nil
	}
	state, found, errState := l.state(ctx, id, issued, l.Authority.State)
	if errState != nil {
		return findings, false, worst(err, errState)
	}
	if !found {
		return findings, true, nil
	}
	return append(findings, state), false, nil
}

// lookSummary asks for the summary by number and code, and for the state of the
// number when there is no such service.
func (l *Live) lookSummary(ctx context.Context, id *xmlsig.Identity, issued store.Issued, _ []Evidence) ([]finding, bool, error) {
	state, found, err := l.state(ctx, id, issued, l.Authority.SummaryState)
	if err != nil {
		var errState error
		if state, found, errState = l.state(ctx, id, issued, l.Authority.State); errState != nil {
			return nil, false, worst(err, errState)
		}
	}
	if !found {
		return nil, true, nil
	}
	return []finding{state}, false, nil
}

// worst is the error that says least: that a service is absent counts only when
// every one is.
func worst(a, b error) error {
	if a != nil && !errors.Is(a, fiscal.ErrAbsent) {
		return a
	}
	return b
}

func query(i store.Issued) fiscal.Query {
	return fiscal.Query{RNC: i.RNC, ENCF: i.ENCF, BuyerRNC: i.BuyerRNC, SecurityCode: i.SecurityCode}
}

type stateCall func(context.Context, *xmlsig.Identity, fiscal.Query) (fiscal.Answer, error)

// state asks what the authority holds under our number, and compares it with
// what we have signed.
func (l *Live) state(ctx context.Context, id *xmlsig.Identity, issued store.Issued, ask stateCall) (finding, bool, error) {
	answer, err := ask(ctx, id, query(issued))
	if err != nil {
		return finding{}, false, err
	}
	if answer.Verdict == fiscal.VerdictNotFound {
		return finding{}, false, nil
	}
	e := Evidence{Kind: KindState, Verdict: answer.Verdict, Messages: answer.Messages, SequenceFree: answer.SequenceStated && !answer.SequenceUsed, At: l.Now()}
	e.Ours, e.Foreign = l.compare(issued, answer)
	return finding{e, answer.Raw}, true, nil
}

// compare tells whether what the authority shows is what we have signed. A
// look-up that asked by our security code speaks of our bytes.
func (l *Live) compare(issued store.Issued, a fiscal.Answer) (ours, foreign bool) {
	if a.SecurityCode != "" && a.SecurityCode != issued.SecurityCode {
		return false, true
	}
	if a.HasTotal {
		verified, err := xmlsig.Verify(issued.XML, xmlsig.InvoiceLimits())
		if err != nil {
			return false, false
		}
		d, _, err := ecf.Read(verified)
		if err != nil || !d.Totals.Total.Equal(a.Total) {
			return false, err == nil
		}
	}
	return a.SecurityCode != "" || issued.Summarized, false
}
