package live

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// pollPauses are the waits between questions for a verdict; after about 72 hours they are
// hourly. A slow verdict is no failure: nothing is sent again because a verdict takes long.
var pollPauses = slices.Concat(
	[]time.Duration{1 * time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute},
	slices.Repeat([]time.Duration{5 * time.Minute}, 12), slices.Repeat([]time.Duration{15 * time.Minute}, 258), []time.Duration{time.Hour},
)

// lookUpPause is the shortest time between two look-ups of a track id. The authority wants
// a second; the clocks by which nodes wait differ a little.
const lookUpPause = 1200 * time.Millisecond

// A track id is lost when the authority has not known it so often, over so long.
const (
	lostTimes = 3
	lostSpan  = 10 * time.Minute
)

// poll asks for the verdict of every track id that has none yet.
func (p *Plan) poll(ctx context.Context, w pipeline.Work) (pipeline.Result, error) {
	id, err := p.identity(ctx, w.Job.Scope)
	if err != nil {
		return pipeline.Result{}, err
	}
	if err := p.holdForLookUps(ctx, w); err != nil {
		return pipeline.Result{}, err
	}
	findings, err := p.verdicts(ctx, id, w)
	pause := p.pause(pollPauses, w.Job.Attempt)
	if err != nil && len(findings) == 0 {
		return pipeline.Result{}, p.askLater(pause, err)
	}
	return pipeline.Result{Findings: findings, Stay: &pipeline.Move{Wait: &pipeline.Wait{After: pause}}}, nil
}

// verdicts asks about every track id without a verdict. When all have one and the
// authority has judged another submission of our number, which may be ours too, verdicts
// reads the list of track ids.
func (p *Plan) verdicts(ctx context.Context, id *xmlsig.Identity, w pipeline.Work) ([]pipeline.Finding, error) {
	findings, _, err := p.results(ctx, id, *w.Issued, w.Evidence, listUnread)
	known := append(slices.Clone(w.Evidence), items(findings)...)
	if tally := evidence.NewTally(known); err != nil || !tally.MustConfirm() || tally.FoundAcceptance() || len(tally.OpenTracks()) > 0 {
		return findings, err
	}
	issued, err := p.issued(ctx, w)
	if err != nil {
		return findings, err
	}
	listed, _, err := p.lookUp(ctx, id, issued, known, 1)
	if err != nil && !errors.Is(err, fiscal.ErrAbsent) {
		findings = withoutUnconfirmed(findings)
	}
	// The list may not show a submission of a moment ago. Only a later one, of the stage
	// that reconciles, excludes that there is another.
	listed = slices.DeleteFunc(listed, func(f pipeline.Finding) bool { return f.Kind == evidence.NoOther })
	return append(findings, listed...), err
}

// holdForLookUps extends a lease that could end before the authority may be asked again.
// If this process then ends before it commits what it learnt, the next worker asks after
// the lease.
func (p *Plan) holdForLookUps(ctx context.Context, w pipeline.Work) error {
	if w.Job.LeaseUntil.Sub(p.now()) > lookUpPause {
		return nil
	}
	return w.Hold(ctx, new(store.Batch))
}

// A list is whether the list of the track ids of a number was read.
type list bool

const (
	listUnread list = false
	listRead   list = true // or the authority offers none
)

// results asks about every track id without a verdict. A verdict on a track id that
// may be about the document of another issuer is confirmed before it is returned. The
// look-up that confirms it does not tell a conditional acceptance from another one, so
// first the list of track ids must have been read and all of them judged, or one of them
// accepted. unknown says that the authority was asked for our security code and does not
// know it. The error is that of the last question that got no answer.
func (p *Plan) results(ctx context.Context, id *xmlsig.Identity, issued store.Issued, known []evidence.Item, l list) (findings []pipeline.Finding, unknown bool, failure error) {
	tally := evidence.NewTally(known)
	for _, trackID := range tally.OpenTracks() {
		answer, err := p.result(ctx, id, issued, trackID)
		if err != nil {
			failure = err
			continue
		}
		now := p.now()
		if answer.Verdict == fiscal.VerdictNotFound {
			findings = append(findings, pipeline.Finding{Item: evidence.Item{Kind: evidence.Absent, TrackID: trackID, At: now}, Raw: answer.Raw})
			if lost(known, trackID, now, p.pace.Scale(lostSpan)) {
				findings = append(findings, pipeline.Finding{Item: evidence.Item{Kind: evidence.Lost, TrackID: trackID, At: now}})
			}
			continue
		}
		answer.TrackID = trackID
		f := conclusion(answer, now)
		f.Found = !tally.Owns(trackID)
		findings = append(findings, f)
	}
	tally = evidence.NewTally(append(slices.Clone(known), items(findings)...))
	if !tally.MustConfirm() || !tally.FoundAcceptance() && (l == listUnread || tally.FoundInProcess()) {
		return findings, false, failure
	}
	confirmed, err := p.confirm(ctx, id, issued, tally)
	if err != nil && !errors.Is(err, fiscal.ErrAbsent) {
		return withoutUnconfirmed(findings), false, err
	}
	return append(findings, confirmed...), err == nil && len(confirmed) == 0, failure
}

// withoutUnconfirmed removes verdicts that are not confirmed, so that they are asked again.
func withoutUnconfirmed(findings []pipeline.Finding) []pipeline.Finding {
	return slices.DeleteFunc(findings, func(f pipeline.Finding) bool { return f.Found && f.Kind == evidence.Verdict })
}

// result asks for the verdict of one track id. An answer about another document is
// no answer.
func (p *Plan) result(ctx context.Context, id *xmlsig.Identity, issued store.Issued, trackID string) (fiscal.AuthorityAnswer, error) {
	answer, err := p.authority.Result(ctx, id, trackID)
	if err == nil && (answer.ENCF != "" && answer.ENCF != issued.ENCF || answer.RNC != "" && answer.RNC != issued.RNC) {
		p.log.Error("The authority answered about another document than the one that was asked about. The answer is ignored.",
			"document_id", issued.DocumentID, "encf", issued.ENCF)
		err = fiscal.ErrUnavailable
	}
	return answer, err
}

// lost reports whether the authority has not known a track id for long enough,
// including its answer of now.
func lost(known []evidence.Item, trackID string, now time.Time, span time.Duration) bool {
	times, first := evidence.Absences(known, trackID)
	return times+1 >= lostTimes && now.Sub(first) >= span
}

// pause returns the wait after an attempt of a stage, with jitter, so that
// documents do not ask in step.
func (p *Plan) pause(pauses []time.Duration, attempt int64) time.Duration {
	wait := pauses[min(int(max(attempt, 1)), len(pauses)-1)]
	wait += time.Duration(p.random(int64(wait)/5 + 1))
	return p.pace.Of(wait, lookUpPause)
}
