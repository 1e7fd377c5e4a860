package live

import (
	"context"
	"errors"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// reconcilePauses are the waits between questions about a document that may have
// arrived.
var reconcilePauses = []time.Duration{5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour}

// A document is proven absent by so many well-formed answers that say so, so far
// apart. Where no look-up by number exists, a document is sent once more after so
// many rounds.
const (
	absentTimes = 3
	absentSpan  = time.Minute
	blindRound  = 5
)

// reconcile finds out what became of a document that may have arrived. It asks by
// number and by track id. It sends the same bytes again only when the document is
// proven absent.
func (p *Plan) reconcile(ctx context.Context, w pipeline.Work) (pipeline.Step, error) {
	issued, err := p.issued(ctx, w)
	if err != nil {
		return pipeline.Step{}, err
	}
	id, err := p.identity(ctx, w.Job.Scope)
	if err != nil {
		return pipeline.Step{}, err
	}
	lookUp := p.lookUpECF
	if issued.Summarized {
		lookUp = p.lookUpSummary
	}
	findings, absent, err := lookUp(ctx, id, issued, w.Evidence)
	pause := p.pause(reconcilePauses, w.Job.Attempt)
	if err != nil && len(findings) == 0 && !errors.Is(err, fiscal.ErrAbsent) {
		return pipeline.Step{}, &pipeline.LaterError{After: pause, Reason: err.Error()}
	}
	tally := evidence.NewTally(w.Evidence)
	for _, f := range findings {
		if f.TrackID != "" || f.Kind == evidence.State && f.Ours {
			findings = append(findings, p.settledAttempts(tally)...)
			break
		}
	}
	resend := false
	switch {
	case absent:
		findings = append(findings, finding{Item: evidence.Item{Kind: evidence.Absent, At: p.now()}})
		resend = p.provenAbsent(w.Evidence, p.now())
	case errors.Is(err, fiscal.ErrAbsent) && len(findings) == 0:
		// This environment has no look-up: the document is sent once more, and
		// after that an operator decides.
		attempts, err := p.store.Attempts(ctx, w.Job.Scope, w.Job.DocumentID)
		if err != nil {
			return pipeline.Step{}, err
		}
		if resend = w.Job.Attempt >= blindRound && len(attempts) < 2; !resend {
			return pipeline.Step{}, &pipeline.LaterError{After: pause, Reason: "no look-up by number exists in this environment"}
		}
	}
	if resend {
		findings = append(findings, p.settledAttempts(tally)...)
	}
	step := retryStage(p.step(w.Evidence, report{issued: issued, findings: findings}), stageReconcile, pause)
	if !resend {
		return step, nil
	}
	return adjust(step, func(c *pipeline.Change) {
		if c.Next == stageReconcile {
			c.Next, c.Again, c.After, c.Cause = stageSubmit, false, 0, "the authority does not have the document; the same bytes are sent again"
		}
	}), nil
}

// settledAttempts explains every inconclusive attempt that is still open.
func (p *Plan) settledAttempts(t *evidence.Tally) []finding {
	var findings []finding
	for _, attempt := range t.OpenAttempts() {
		findings = append(findings, finding{Item: evidence.Item{Kind: evidence.Settled, Attempt: attempt, At: p.now()}})
	}
	return findings
}

// provenAbsent reports whether the authority has said often enough, since the last
// attempt that may have arrived, that it has no such document.
func (p *Plan) provenAbsent(known []evidence.Item, now time.Time) bool {
	span := p.pace.Scale(absentSpan)
	var since time.Time
	for _, i := range known {
		if i.Kind == evidence.Inconclusive && i.At.After(since) {
			since = i.At
		}
	}
	times, last := 0, time.Time{}
	for _, i := range append(known, evidence.Item{Kind: evidence.Absent, At: now}) {
		if i.Kind == evidence.Absent && i.TrackID == "" && i.At.After(since) && i.At.Sub(last) >= span {
			times, last = times+1, i.At
		}
	}
	return times >= absentTimes
}

// lookUpECF asks for the track ids of the number, for the verdict of each, and for
// the state of the number when that gave nothing.
func (p *Plan) lookUpECF(ctx context.Context, id *xmlsig.Identity, issued store.Issued, known []evidence.Item) (findings []finding, absent bool, err error) {
	tracks, err := p.authority.TrackIDs(ctx, id, query(issued))
	if err == nil {
		for _, t := range tracks {
			item := evidence.Item{Kind: evidence.Track, TrackID: t.TrackID, At: p.now()}
			findings, known = append(findings, finding{item, t.Raw}), append(known, item)
		}
		absent = len(tracks) == 0
	}
	if evidence.NewTally(known).HasTracks() {
		results, errResult := p.results(ctx, id, issued, known)
		findings = append(findings, results...)
		if len(results) > 0 {
			return findings, false, nil
		}
		err = errors.Join(err, errResult)
	}
	if len(tracks) > 0 || absent {
		return findings, absent, nil
	}
	state, found, errState := p.state(ctx, id, issued, p.authority.State)
	if errState != nil {
		return findings, false, fiscal.LookupError(err, errState)
	}
	if !found {
		return findings, true, nil
	}
	return append(findings, state), false, nil
}

// lookUpSummary asks for the summary by number and code, and for the state of the
// number when there is no such service.
func (p *Plan) lookUpSummary(ctx context.Context, id *xmlsig.Identity, issued store.Issued, _ []evidence.Item) ([]finding, bool, error) {
	state, found, err := p.state(ctx, id, issued, p.authority.SummaryState)
	if err != nil {
		var errState error
		if state, found, errState = p.state(ctx, id, issued, p.authority.State); errState != nil {
			return nil, false, fiscal.LookupError(err, errState)
		}
	}
	if !found {
		return nil, true, nil
	}
	return []finding{state}, false, nil
}

func query(i store.Issued) fiscal.Query {
	return fiscal.Query{RNC: i.RNC, ENCF: i.ENCF, BuyerRNC: i.BuyerRNC, SecurityCode: i.SecurityCode}
}

type stateCall func(context.Context, *xmlsig.Identity, fiscal.Query) (fiscal.Answer, error)

// state asks what the authority holds under our number and compares it with what
// we have signed.
func (p *Plan) state(ctx context.Context, id *xmlsig.Identity, issued store.Issued, ask stateCall) (finding, bool, error) {
	answer, err := ask(ctx, id, query(issued))
	if err != nil {
		return finding{}, false, err
	}
	if answer.Verdict == fiscal.VerdictNotFound {
		return finding{}, false, nil
	}
	item := evidence.Item{
		Kind: evidence.State, Verdict: answer.Verdict, Messages: answer.Messages,
		SequenceFree: answer.SequenceStated && !answer.SequenceUsed, At: p.now(),
	}
	item.Ours, item.Foreign = compare(issued, answer)
	return finding{item, answer.Raw}, true, nil
}

// compare reports whether the authority's answer is about what we have signed, or
// about another document. An answer to a question with our security code is about
// our bytes.
func compare(issued store.Issued, a fiscal.Answer) (ours, foreign bool) {
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
