package evidence

import (
	"cmp"
	"slices"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// A Tally is the evidence about a document, sorted by what it says.
type Tally struct {
	// Verdicts on our bytes, by what they say.
	accepted, conditional, rejected, duplicates, operator []Item
	// Verdicts on track ids that a look-up by number returned: whose they are is not
	// known.
	found []Item
	// Answers to a look-up by number that are about our bytes, or about others.
	ours, foreign []Item

	tracks       map[string]*track
	order        []string       // of the tracks, oldest first
	answered     map[int64]bool // attempts that the authority has answered, however late
	open         map[int64]bool // attempts without an answer that are still in doubt
	settled      int64          // the attempts up to this one are not in doubt
	doubted      bool           // an attempt was in doubt, or still is
	lookedUp     bool           // a look-up by number showed no acceptance of our bytes
	noLookUp     bool           // the environment offers no look-up by number
	noOther      bool           // a list of all track ids of our number had only ours
	usedByOthers bool           // a look-up by our code showed that our bytes were rejected because the number is used
	received     bool           // the buyer has acknowledged the document
}

// A track is one submission as the authority knows it.
type track struct {
	own        bool // the authority gave the track id to our submission
	attempt    int64
	judged     bool // there is a verdict
	closed     bool // there is a verdict, or the submission is explained otherwise
	processing bool
	lost       bool
}

// NewTally sorts evidence. The order of the items does not matter.
func NewTally(items []Item) *Tally {
	t := &Tally{tracks: make(map[string]*track), answered: make(map[int64]bool), open: make(map[int64]bool)}
	items = slices.Clone(items)
	slices.SortStableFunc(items, func(a, b Item) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.TrackID, b.TrackID), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Verdict, b.Verdict),
			falseFirst(a.NumberFree, b.NumberFree), slices.CompareFunc(a.Messages, b.Messages, compareMessages))
	})
	for _, i := range items { // first which track ids are ours, and which attempts were answered
		if i.TrackID != "" {
			one := t.track(i.TrackID)
			one.own = one.own || !i.Found && (i.Kind == Track || i.Kind == Verdict)
			if i.sent() {
				one.attempt = max(one.attempt, i.Attempt)
			}
		}
		switch i.settles() {
		case oneAttempt:
			t.answered[i.Attempt] = true
		case everyAttempt:
			t.settled = max(t.settled, i.After)
		case noAttempt:
		}
	}
	for _, i := range items {
		if i.settles() == everyAttempt {
			t.endDoubt(i)
		}
		t.add(i)
	}
	return t
}

func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func compareMessages(a, b fiscal.Message) int {
	return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.Text, b.Text))
}

func (t *Tally) add(i Item) {
	switch i.Kind {
	case Track, DeliveryFailed, Commercial, Note, Settled:
	case NoLookUp:
		t.noLookUp = true
	case Lost:
		one := t.track(i.TrackID)
		one.lost, t.doubted = true, true
		one.closed = one.closed || one.attempt > 0 && one.attempt <= t.settled
	case Inconclusive:
		if t.answered[i.Attempt] {
			return
		}
		t.doubted = true
		if i.Attempt > t.settled {
			t.open[i.Attempt] = true
		}
	case Absent:
		t.lookedUp = t.lookedUp || i.TrackID == ""
	case NoOther:
		t.lookedUp, t.noOther = true, true
	case Receipt:
		t.received = true
	case State:
		t.addState(i)
	case Verdict, Operator:
		t.judge(i)
	}
}

func (t *Tally) track(id string) *track {
	found := t.tracks[id]
	if found == nil {
		found = &track{}
		t.tracks[id] = found
		t.order = append(t.order, id)
	}
	return found
}

// addState sorts in the answer to a look-up by number. It counts only when it is
// about our bytes.
func (t *Tally) addState(i Item) {
	switch {
	case i.Ours && i.Verdict == fiscal.VerdictRejected && i.duplicate():
		t.lookedUp, t.usedByOthers, t.duplicates = true, true, append(t.duplicates, i)
	case i.Ours && i.Verdict == fiscal.VerdictInProcess: // it says nothing yet, and is asked again
	case i.Ours:
		t.ours = append(t.ours, i)
	case i.Foreign:
		t.lookedUp, t.foreign = true, append(t.foreign, i)
	default:
		t.lookedUp = true
	}
}

// judge sorts in a verdict.
func (t *Tally) judge(i Item) {
	about := &track{own: true} // for a verdict without a track id
	if i.TrackID != "" {
		about = t.track(i.TrackID)
	}
	switch i.Verdict {
	case fiscal.VerdictInProcess:
		about.processing = true
		return
	case fiscal.VerdictNotFound:
		return
	case fiscal.VerdictAccepted, fiscal.VerdictConditional, fiscal.VerdictRejected:
	}
	about.judged, about.closed = true, true
	switch {
	case !about.own && i.Kind == Verdict:
		t.found = append(t.found, i)
	case i.Verdict == fiscal.VerdictAccepted:
		t.accepted = append(t.accepted, i)
	case i.Verdict == fiscal.VerdictConditional:
		t.conditional = append(t.conditional, i)
	case i.Kind == Operator:
		t.operator = append(t.operator, i)
	case i.duplicate():
		t.duplicates = append(t.duplicates, i)
	default:
		t.rejected = append(t.rejected, i)
	}
}

// NoLookUp reports whether the environment offers no look-up by number.
func (t *Tally) NoLookUp() bool { return t.noLookUp }

// Owns reports whether the authority gave a track id to our submission.
func (t *Tally) Owns(trackID string) bool { return t.tracks[trackID] != nil && t.tracks[trackID].own }

// Knows reports whether a track id is known.
func (t *Tally) Knows(trackID string) bool { return t.tracks[trackID] != nil }

// AllJudged reports whether the authority has accepted or rejected every track id of a
// list.
func (t *Tally) AllJudged(list []fiscal.AuthorityAnswer) bool {
	return !slices.ContainsFunc(list, func(a fiscal.AuthorityAnswer) bool { return t.tracks[a.TrackID] == nil || !t.tracks[a.TrackID].judged })
}

// OpenTracks returns the track ids without a verdict, oldest first.
func (t *Tally) OpenTracks() []string {
	return slices.DeleteFunc(slices.Clone(t.order), func(id string) bool { return t.tracks[id].closed })
}

// LostTracks returns the track ids that the authority lost and that nothing
// explains yet, oldest first.
func (t *Tally) LostTracks() []string {
	return slices.DeleteFunc(t.OpenTracks(), func(id string) bool { return !t.tracks[id].lost })
}

// MustConfirm reports whether the authority has judged a submission of our number and it
// is not known yet what that says about all of ours: a look-up that shows the security
// code has to tell. That is so for a verdict on a found track id, for a rejection that says
// that the number is used, and for every rejection while an attempt is in doubt. A look-up
// that showed our bytes rejected says nothing about a submission that was accepted since.
func (t *Tally) MustConfirm() bool {
	switch {
	case len(t.accepted)+len(t.conditional)+len(t.foreign) > 0 || slices.ContainsFunc(t.ours, func(i Item) bool { return i.Verdict != fiscal.VerdictRejected }):
		return false
	case t.FoundAcceptance():
		return true
	case len(t.operator) > 0:
		return false
	case t.InDoubt():
		return len(t.found)+len(t.duplicates)+len(t.rejected) > 0
	case slices.ContainsFunc(t.ours, func(i Item) bool { return !t.repeats(i) }):
		return false
	}
	return len(t.found) > 0 || len(t.duplicates) > 0
}

// Judged reports whether the authority has rejected a submission of ours, or accepted one
// that may not be ours. Then the same bytes are not sent again without an operator: the
// authority would say the same, and nothing would be learnt.
func (t *Tally) Judged() bool {
	return t.FoundAcceptance() || len(t.duplicates) > 0 || len(t.rejected) > 0
}

// OthersRejected reports whether the authority has judged every submission of our
// number that a look-up returned, has accepted none of them, and has none that it gave
// us a track id for.
func (t *Tally) OthersRejected() bool {
	return len(t.found) > 0 && !t.FoundAcceptance() && !t.any(func(one *track) bool { return !one.lost && (one.own || !one.closed) })
}

// FoundAcceptance reports whether a track id that a look-up by number returned was
// accepted.
func (t *Tally) FoundAcceptance() bool {
	return slices.ContainsFunc(t.found, func(i Item) bool { return i.Verdict != fiscal.VerdictRejected })
}

// FoundInProcess reports whether a track id that a look-up by number returned has no
// verdict yet.
func (t *Tally) FoundInProcess() bool {
	return t.any(func(one *track) bool { return !one.own && !one.closed && !one.lost })
}

func (t *Tally) any(is func(*track) bool) bool {
	for _, one := range t.tracks {
		if is(one) {
			return true
		}
	}
	return false
}
