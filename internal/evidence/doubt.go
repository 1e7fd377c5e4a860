package evidence

import (
	"slices"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// An attempt whose answer was lost, or whose track id the authority has lost, is in doubt:
// the authority may have accepted its document. While an attempt is in doubt, no rejection
// of another submission is final, whatever its reason, and the number is not free.

// A proof is which attempts an item of evidence takes out of doubt.
type proof int

const (
	noAttempt    proof = iota
	oneAttempt         // the one that it answers
	everyAttempt       // all that were sent before it was learnt
)

// settles is the only rule about what ends a doubt:
//
//	what is learnt                                                ends the doubt about
//	----------------------------------------------------------    --------------------
//	an operator's decision                                        every attempt
//	a look-up shows our security code, accepted or rejected       every attempt
//	a look-up shows another document accepted under our number    every attempt
//	the answer to the attempt itself, however late                that attempt
//	a verdict on another submission of the same bytes             none
//	a verdict on a submission that may not be ours                none
//	a look-up finds nothing, however often                        none
//	a list of the track ids of our number has only known ones     none
//	there is no look-up                                           none
func (i Item) settles() proof {
	switch i.Kind {
	case Operator:
		if judgement(i.Verdict) {
			return everyAttempt
		}
	case State:
		if i.Foreign || i.Ours && judgement(i.Verdict) {
			return everyAttempt
		}
	case Track, Verdict:
		if i.Attempt > 0 && !i.Found {
			return oneAttempt
		}
	case Absent, Lost, Inconclusive, Settled, NoOther, NoLookUp, Note, Receipt, DeliveryFailed, Commercial:
	}
	return noAttempt
}

// judgement reports whether a verdict is one that ends the authority's work on a document.
func judgement(v fiscal.Verdict) bool {
	return v.Accepted() || v == fiscal.VerdictRejected
}

// Learnt returns an item with the number of the last attempt that was known when it was
// learnt, if it is the answer to a look-up by number. Such an answer is about the attempts
// before it. Their times do not tell which these are: the clock may have been set between.
func (i Item) Learnt(known []Item) Item {
	if i.Kind != State && (i.Kind != Absent || i.TrackID != "") || i.After > 0 {
		return i
	}
	for _, k := range known {
		if k.sent() {
			i.After = max(i.After, k.Attempt)
		}
	}
	return i
}

// sent reports whether an item is about an attempt itself.
func (i Item) sent() bool {
	return i.Kind == Inconclusive || (i.Kind == Track || i.Kind == Verdict) && !i.Found
}

// endDoubt takes every attempt out of doubt that was sent before an item.
func (t *Tally) endDoubt(i Item) {
	if i.After == 0 { // of an earlier version, or an operator's: by its time
		clear(t.open)
	}
	for _, one := range t.tracks {
		one.closed = one.closed || one.lost && (i.After == 0 || one.attempt <= i.After)
	}
}

// InDoubt reports whether the authority may have accepted a submission of ours that it has
// not answered, or whose track id it has lost.
func (t *Tally) InDoubt() bool { return t.doubts() > 0 }

func (t *Tally) doubts() int { return len(t.open) + len(t.LostTracks()) }

// MayRepeat reports whether a look-up that shows our bytes rejected may only show the
// submission that is known to be rejected, and not yet the one that is in doubt. That is so
// when there are more attempts in doubt than the authority shows submissions of unknown
// origin that it has rejected.
func (t *Tally) MayRepeat() bool {
	shown := 0
	for id, one := range t.tracks {
		if !one.own && slices.ContainsFunc(t.found, func(i Item) bool { return i.TrackID == id && i.Verdict == fiscal.VerdictRejected }) {
			shown++
		}
	}
	if shown == 0 && len(t.rejected)+len(t.duplicates) == 0 {
		shown = 1 // nothing else of ours can be meant
	}
	return t.doubts() > shown
}

// ProvenAbsent reports whether the authority has said so many times, so far apart, that it
// has no such document, since the last attempt that may have arrived. Then the same bytes may
// be sent again. It ends no doubt, and it proves nothing when the authority has rejected a
// submission of ours: it would say so again.
func ProvenAbsent(items []Item, times int, apart time.Duration) bool {
	return !NewTally(items).Judged() && AbsentSinceDoubt(items, apart) >= times
}

// AbsentSinceDoubt counts the answers, so far apart, that the authority has no such document,
// since it was last sent without a clear end: the answer was lost, the authority lost the
// document, or it rejected it. Only what it said after that is about all submissions of ours.
func AbsentSinceDoubt(items []Item, apart time.Duration) (times int) {
	var sent, last time.Time
	attempt := int64(0)
	for _, i := range items {
		refused := i.Kind == Verdict && i.Verdict == fiscal.VerdictRejected && !i.Found
		switch {
		case i.Kind == Inconclusive:
			attempt = max(attempt, i.Attempt)
			if i.At.After(sent) {
				sent = i.At
			}
		case (i.Kind == Lost || refused) && i.At.After(last):
			last = i.At
		}
	}
	absences := slices.DeleteFunc(slices.Clone(items), func(i Item) bool {
		since := i.At.After(last) && (i.After > 0 && i.After >= attempt || i.After == 0 && i.At.After(sent))
		return i.Kind != Absent || i.TrackID != "" || !since
	})
	slices.SortFunc(absences, func(a, b Item) int { return a.At.Compare(b.At) })
	for n, i := range absences {
		if n == 0 || i.At.Sub(last) >= apart {
			times, last = times+1, i.At
		}
	}
	return times
}

// Submissions returns what is known of the submissions of a document without anything that
// the authority said about them later, so that it is asked about all of them again.
func Submissions(items []Item) []Item {
	return slices.DeleteFunc(slices.Clone(items), func(i Item) bool { return i.Kind != Track && i.Kind != Inconclusive })
}
