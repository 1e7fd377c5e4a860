package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/cause"
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

// The same bytes are sent again after so many well-formed answers that the authority does
// not have the document, so far apart. After so many rounds, a document is sent once more
// where no look-up by number exists, and what a look-up shows is no longer taken for old.
const (
	absentTimes = 3
	absentSpan  = time.Minute
	blindRound  = 5
)

// reconcile finds out, by number and by track id, what became of a document that may have
// arrived. It sends the same bytes again only when look-ups have not found the document for
// long enough, and the authority has rejected none of its submissions. About a document that
// is rejected it asks everything again: the authority has shown that it may be accepted.
func (p *Plan) reconcile(ctx context.Context, w pipeline.Work) (pipeline.Result, error) {
	issued, err := p.issued(ctx, w)
	if err != nil {
		return pipeline.Result{}, err
	}
	id, err := p.identity(ctx, w.Job.Scope)
	if err != nil {
		return pipeline.Result{}, err
	}
	if err := p.holdForLookUps(ctx, w); err != nil {
		return pipeline.Result{}, err
	}
	known := w.Evidence
	if w.Invoice.Status == fiscal.Rejected {
		known = evidence.Submissions(known)
	}
	findings, absent, err := p.lookUp(ctx, id, issued, known, w.Job.Attempt)
	pause := p.pause(reconcilePauses, w.Job.Attempt)
	if err != nil && len(findings) == 0 && !errors.Is(err, fiscal.ErrAbsent) {
		return pipeline.Result{}, p.askLater(pause, err)
	}
	tally := evidence.NewTally(append(slices.Clone(w.Evidence), items(findings)...))
	resend := false
	switch {
	case absent:
		findings = append(findings, pipeline.Finding{Item: evidence.Item{Kind: evidence.Absent, At: p.now()}})
		resend = p.provenAbsent(w.Evidence, p.now())
		if !tally.Judged() { // further answers prove the absence
			pause = min(pause, p.pause(reconcilePauses, 2))
		}
	case errors.Is(err, fiscal.ErrAbsent) && !slices.ContainsFunc(findings, showsSubmission):
		// This environment has no look-up: the document is sent once more, and
		// after that an operator decides.
		attempts, err := p.store.Attempts(ctx, w.Job.Scope, w.Job.DocumentID)
		if err != nil {
			return pipeline.Result{}, err
		}
		attempts = slices.DeleteFunc(attempts, func(a store.Attempt) bool { return a.Class == store.NotReceived })
		// One page is no proof: an earlier round must have found no look-up, too.
		resend = tally.NoLookUp() && w.Job.Attempt >= blindRound && len(attempts) < 2 && !tally.Judged() && len(tally.OpenTracks()) == len(tally.LostTracks())
		if !tally.NoLookUp() {
			findings = append(findings, pipeline.Finding{Item: evidence.Item{Kind: evidence.NoLookUp, At: p.now()}})
		}
		if !resend && len(findings) == 0 && w.Invoice.Status != fiscal.Rejected {
			return pipeline.Result{}, wait(pipeline.Wait{After: pause, Reason: cause.New(cause.NoLookUp)})
		}
	}
	stay := &pipeline.Move{Wait: &pipeline.Wait{After: pause}}
	if resend {
		stay = &pipeline.Move{Next: stageSubmit, Cause: cause.New(cause.Absent)}
	}
	return pipeline.Result{Findings: findings, Stay: stay}, nil
}

// provenAbsent reports whether the same bytes may be sent again: the authority has said
// often enough that it has no such document.
func (p *Plan) provenAbsent(known []evidence.Item, now time.Time) bool {
	absent := evidence.Item{Kind: evidence.Absent, At: now}.Learnt(known)
	return evidence.ProvenAbsent(append(slices.Clone(known), absent), absentTimes, p.pace.Scale(absentSpan))
}

// showsSubmission reports whether a finding is about a submission that the authority has.
func showsSubmission(f pipeline.Finding) bool {
	return f.Kind != evidence.Absent && f.Kind != evidence.Lost
}

// showsAcceptance reports whether a look-up by number shows that our document is accepted.
func showsAcceptance(f pipeline.Finding) bool {
	return f.Kind == evidence.State && f.Ours && f.Verdict == fiscal.VerdictAccepted
}

// showsRejection reports whether a look-up by number shows that our document is rejected.
func showsRejection(f pipeline.Finding) bool {
	return f.Kind == evidence.State && f.Ours && f.Verdict == fiscal.VerdictRejected
}

// lookUp asks the authority by number what it has of a document. absent says that it has
// none. In the first rounds it leaves out a rejection that may be the one of another
// submission that is known already: the authority may not show yet what it accepted.
func (p *Plan) lookUp(ctx context.Context, id *xmlsig.Identity, issued store.Issued, known []evidence.Item, round int64) (findings []pipeline.Finding, absent bool, err error) {
	ask := p.lookUpECF
	if issued.Summarized {
		ask = p.lookUpSummary
	}
	findings, absent, err = ask(ctx, id, issued, known, round)
	if round >= blindRound || !slices.ContainsFunc(findings, showsRejection) {
		return findings, absent, err
	}
	rest := slices.DeleteFunc(slices.Clone(findings), showsRejection)
	if evidence.NewTally(append(slices.Clone(known), items(rest)...)).MayRepeat() {
		return rest, false, errOldAnswer
	}
	return findings, absent, err
}

// lookUpECF asks for the track ids of the number and for the verdict of each. Track ids that
// are not known to be ours count only when a look-up shows our security code. The state of
// the number, which does not tell a conditional acceptance from another one, is asked instead
// only where the authority offers no list. Our document is absent when the list is empty, and
// when the authority has rejected everything on it and does not know our security code.
func (p *Plan) lookUpECF(ctx context.Context, id *xmlsig.Identity, issued store.Issued, known []evidence.Item, round int64) (findings []pipeline.Finding, absent bool, err error) {
	listed, err := p.authority.TrackIDs(ctx, id, query(issued))
	if err == nil {
		findings = p.listed(listed, evidence.NewTally(known))
	}
	results, unknown, errResult := p.results(ctx, id, issued, append(slices.Clone(known), items(findings)...), list(err == nil || errors.Is(err, fiscal.ErrAbsent)))
	findings = append(findings, results...)
	tally := evidence.NewTally(append(slices.Clone(known), items(findings)...))
	switch {
	case err == nil && errResult == nil && unknown && tally.OthersRejected():
		return findings, true, nil
	case err == nil && round < blindRound && slices.ContainsFunc(results, showsAcceptance) && !tally.FoundAcceptance() && tally.AllJudged(listed):
		return nil, false, errOldList
	case len(listed) > 0 || slices.ContainsFunc(results, showsSubmission):
		return findings, false, errResult
	case !errors.Is(err, fiscal.ErrAbsent):
		return findings, err == nil, err
	}
	state, found, errState := p.state(ctx, id, query(issued), issued, p.authority.State)
	if errState != nil {
		return findings, false, fiscal.LookupError(errors.Join(err, errResult), errState)
	}
	if found {
		findings = append(findings, state)
	}
	return findings, !found, nil
}

// errOldList means that the list of track ids was read before the authority showed there
// what it has accepted. Only the list says whether that is conditional.
var errOldList = fmt.Errorf("%w: the list of track ids lacks the accepted submission", fiscal.ErrUnavailable)

// errOldAnswer means that a look-up showed a rejection that was known before, and the
// submission whose answer was lost may not be shown yet.
var errOldAnswer = fmt.Errorf("%w: the look-up shows a rejection that is known, and an attempt has no answer yet", fiscal.ErrUnavailable)

// listed returns the findings in a list of all track ids of our number.
func (p *Plan) listed(answers []fiscal.AuthorityAnswer, t *evidence.Tally) []pipeline.Finding {
	var findings []pipeline.Finding
	others := false
	for _, a := range answers {
		others = others || !t.Owns(a.TrackID)
		if !t.Knows(a.TrackID) {
			findings = append(findings, pipeline.Finding{Item: evidence.Item{Kind: evidence.Track, TrackID: a.TrackID, Found: true, At: p.now()}, Raw: a.Raw})
		}
	}
	if len(answers) > 0 && !others {
		findings = append(findings, pipeline.Finding{Item: evidence.Item{Kind: evidence.NoOther, At: p.now()}})
	}
	return findings
}

// confirm asks whose document holds our number: first with our security code, which
// only our document answers to, then without it, which shows the code of whichever
// document the authority has. It returns no finding when the authority has none yet.
func (p *Plan) confirm(ctx context.Context, id *xmlsig.Identity, issued store.Issued, t *evidence.Tally) (_ []pipeline.Finding, err error) {
	if issued.XML == nil {
		if issued, err = p.store.IssuedDocument(ctx, issued.Scope, issued.DocumentID); err != nil {
			return nil, err
		}
	}
	ours, found, err := p.state(ctx, id, query(issued), issued, p.authority.State)
	if err != nil {
		return nil, err
	}
	if found {
		return []pipeline.Finding{ours}, nil
	}
	if !t.Judged() {
		return nil, nil
	}
	theirs, found, err := p.state(ctx, id, fiscal.Query{RNC: issued.RNC, ENCF: issued.ENCF}, issued, p.authority.State)
	if err != nil || !found { // it may not have been reported yet
		return nil, err
	}
	return []pipeline.Finding{theirs}, nil
}

// lookUpSummary asks for the summary by number and code, and for the state of the
// number when there is no such service or when the summary is not shown as accepted:
// nothing may be accepted under the number then.
func (p *Plan) lookUpSummary(ctx context.Context, id *xmlsig.Identity, issued store.Issued, known []evidence.Item, _ int64) ([]pipeline.Finding, bool, error) {
	state, found, err := p.state(ctx, id, query(issued), issued, p.authority.SummaryState)
	if err != nil {
		var errState error
		if state, found, errState = p.state(ctx, id, query(issued), issued, p.authority.State); errState != nil {
			return nil, false, fiscal.LookupError(err, errState)
		}
	}
	var findings []pipeline.Finding
	if found {
		if findings = append(findings, state); state.Verdict != fiscal.VerdictRejected {
			return findings, false, nil
		}
	}
	tally := evidence.NewTally(append(slices.Clone(known), items(findings)...))
	theirs, held, err := p.state(ctx, id, fiscal.Query{RNC: issued.RNC, ENCF: issued.ENCF}, issued, p.authority.State)
	switch {
	case err == nil && held && theirs.Foreign:
		return append(findings, theirs), false, nil
	case err == nil && held && theirs.Verdict.Accepted():
		return []pipeline.Finding{theirs}, false, nil
	case err != nil && !errors.Is(err, fiscal.ErrAbsent) && tally.Judged():
		return nil, false, err
	}
	return findings, !found, nil
}

func items(findings []pipeline.Finding) []evidence.Item {
	all := make([]evidence.Item, len(findings))
	for i, f := range findings {
		all[i] = f.Item
	}
	return all
}

func query(i store.Issued) fiscal.Query {
	return fiscal.Query{RNC: i.RNC, ENCF: i.ENCF, BuyerRNC: i.BuyerRNC, SecurityCode: i.SecurityCode}
}

type stateCall func(context.Context, *xmlsig.Identity, fiscal.Query) (fiscal.AuthorityAnswer, error)

// state asks what the authority holds under our number and compares it with what
// we have signed.
func (p *Plan) state(ctx context.Context, id *xmlsig.Identity, q fiscal.Query, issued store.Issued, ask stateCall) (pipeline.Finding, bool, error) {
	answer, err := ask(ctx, id, q)
	if err != nil {
		return pipeline.Finding{}, false, err
	}
	if answer.Verdict == fiscal.VerdictNotFound {
		return pipeline.Finding{}, false, nil
	}
	item := evidence.Item{
		Kind: evidence.State, Verdict: answer.Verdict, Messages: answer.Messages,
		NumberFree: answer.NumberStated && !answer.NumberUsed, At: p.now(),
	}
	item.Ours, item.Foreign = compare(issued, q, answer)
	return pipeline.Finding{Item: item, Raw: answer.Raw}, true, nil
}

// compare reports whether the authority's answer is about what we have signed, or
// about an accepted document of another issuer. Neither is so when the answer shows
// too little or contradicts itself. An answer about a summary that was asked for by
// our security code is about our bytes.
func compare(issued store.Issued, q fiscal.Query, a fiscal.AuthorityAnswer) (ours, foreign bool) {
	if a.SecurityCode != "" && a.SecurityCode != issued.SecurityCode {
		return false, a.Verdict.Accepted()
	}
	if a.SecurityCode == "" && (!issued.Summarized || q.SecurityCode == "") {
		return false, false
	}
	if a.HasTotal {
		verified, err := xmlsig.Verify(issued.XML, xmlsig.InvoiceLimits())
		if err != nil {
			return false, false
		}
		if d, _, err := ecf.Read(verified); err != nil || !d.Totals.Total.Equal(a.Total) {
			return false, false
		}
	}
	return true, false
}
