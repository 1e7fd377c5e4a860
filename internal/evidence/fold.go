package evidence

import (
	"slices"

	"github.com/fiscalhub/fiscalhub/internal/cause"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// An Outcome is where all the evidence puts a document.
type Outcome struct {
	Status  fiscal.Status
	TrackID string // the one that counts; empty when there is none
	// Verdict is the item that decided; nil while nothing has.
	Verdict *Item
	// Alarm says what an operator must look at; empty when there is nothing.
	Alarm cause.Cause
	// Freeze says that the number range must not be used before an operator has
	// looked.
	Freeze bool
	// NumberFree says that the document is rejected and that the authority lets its number
	// be used again. Every rejection must say so.
	NumberFree bool
}

// Fold decides where a document stands. An acceptance counts only if it is of our
// bytes: the track id was given to our own submission, or a look-up by number has
// shown our security code. Fold is a function of the set of items:
// their order does not matter, and an item that is there twice counts once. The
// numbered rules are applied in their order; the first one that fits decides.
func Fold(items []Item) Outcome {
	t := NewTally(items)
	o := t.outcome()
	if o.Verdict != nil && o.Verdict.TrackID != "" {
		o.TrackID = o.Verdict.TrackID
	} else {
		o.TrackID = t.likelyTrack()
	}
	o.NumberFree = o.Status == fiscal.Rejected && o.Verdict.NumberFree &&
		!slices.ContainsFunc(slices.Concat(t.rejected, t.duplicates, t.found), func(i Item) bool { return !i.NumberFree })
	if t.received && (o.Status == fiscal.Accepted || o.Status == fiscal.AcceptedConditional) {
		o.Status = fiscal.Delivered
	}
	return o
}

// likelyTrack returns the track id to show before a verdict: the first that the
// authority gave us, or else one that it shows for our number.
func (t *Tally) likelyTrack() string {
	for _, id := range t.order {
		if t.tracks[id].own {
			return id
		}
	}
	if len(t.order) > 0 && len(t.foreign) == 0 {
		return t.order[0]
	}
	return ""
}

func (t *Tally) outcome() Outcome {
	if i := t.acceptance(); i != nil { // 1
		status := fiscal.Accepted
		if i.Verdict == fiscal.VerdictConditional {
			status = fiscal.AcceptedConditional
		}
		return Outcome{Status: status, Verdict: i}
	}
	switch {
	case len(t.operator) > 0: // 2
		return Outcome{Status: fiscal.Rejected, Verdict: &t.operator[0]}
	case len(t.foreign) > 0 && !t.any(func(t *track) bool { return t.own && !t.closed && !t.lost }): // 3
		return Outcome{Status: fiscal.Rejected, Verdict: first(t.duplicates, t.foreign), Freeze: true,
			Alarm: cause.New(cause.NumberForeign)}
	case t.any(func(t *track) bool { return t.processing && !t.closed }): // 4
		return Outcome{Status: fiscal.Processing}
	case t.rejection() != nil && !t.undecided(): // 5
		return Outcome{Status: fiscal.Rejected, Verdict: t.rejection()}
	case len(t.duplicates) > 0 && !t.undecided() && t.lookedUp && (t.usedByOthers || !t.doubted): // 6
		return Outcome{Status: fiscal.Rejected, Verdict: &t.duplicates[0],
			Alarm: cause.New(cause.NumberUsed)}
	case len(t.duplicates) == 0 && t.any(func(t *track) bool { return !t.closed && !t.lost }): // 7
		return Outcome{Status: fiscal.Submitted}
	case t.doubted || len(t.tracks) > 0 || len(t.duplicates) > 0: // 8
		// A document that may have arrived never goes back to the queue. When look-ups
		// do not find it for long enough, it is sent again from this status.
		return Outcome{Status: fiscal.OutcomeUnknown}
	}
	return Outcome{Status: fiscal.Queued} // 9
}

// undecided reports whether a submission that may be ours could still turn out to be
// accepted.
func (t *Tally) undecided() bool {
	return t.InDoubt() || t.FoundAcceptance() || t.any(func(t *track) bool { return !t.closed })
}

// first returns the first item of the first list that has one.
func first(lists ...[]Item) *Item { return &slices.Concat(lists...)[0] }

// acceptance returns the item that proves an acceptance of our bytes, or nil. The
// verdict on our own track id counts first. A look-up by number cannot tell a
// conditional acceptance of a whole document, so the verdict on the found track id
// says which one it is: the authority accepts one document for a number, and the
// look-up has shown that it is ours.
func (t *Tally) acceptance() *Item {
	if len(t.accepted) > 0 {
		return &t.accepted[0]
	}
	if len(t.conditional) > 0 {
		return &t.conditional[0]
	}
	for i := range t.ours {
		confirmed := &t.ours[i]
		if confirmed.Verdict != fiscal.VerdictAccepted && confirmed.Verdict != fiscal.VerdictConditional {
			continue
		}
		for j := range t.found {
			if t.found[j].Verdict != fiscal.VerdictRejected {
				return &t.found[j]
			}
		}
		return confirmed
	}
	return nil
}

// rejection returns the item that proves a rejection of our bytes for another reason
// than a used number, or nil.
func (t *Tally) rejection() *Item {
	if len(t.rejected) > 0 {
		return &t.rejected[0]
	}
	for i := range t.ours {
		if t.ours[i].Verdict != fiscal.VerdictRejected || t.ours[i].duplicate() {
			continue
		}
		for j := range t.found { // it has the authority's reasons
			if t.found[j].Verdict == fiscal.VerdictRejected && !t.found[j].duplicate() {
				return &t.found[j]
			}
		}
		switch {
		case t.repeats(t.ours[i]) && !t.noOther && len(t.found) == 0:
			continue
		case len(t.ours[i].Messages) == 0 && len(t.duplicates) > 0:
			return &t.duplicates[0] // it has the authority's reasons
		}
		return &t.ours[i]
	}
	return nil
}

// repeats reports whether a look-up that shows our bytes rejected, without a reason, may
// only repeat a rejection that says that the number is used. When the authority got one
// submission twice, the other one can still be accepted: the list of track ids has it, so
// that it counts once the list was read.
// There is no list of summaries, which have no track ids.
func (t *Tally) repeats(i Item) bool {
	return i.Verdict == fiscal.VerdictRejected && len(i.Messages) == 0 &&
		slices.ContainsFunc(t.duplicates, func(d Item) bool { return d.TrackID != "" })
}
