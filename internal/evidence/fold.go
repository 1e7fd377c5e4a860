package evidence

import (
	"slices"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// An Outcome is where all the evidence puts a document.
type Outcome struct {
	Status  fiscal.Status
	TrackID string // the one that counts; empty when there is none
	// Verdict is the item that decided; nil while nothing has.
	Verdict *Item
	// Alarm says what an operator must look at; empty when there is nothing.
	Alarm string
	// Freeze says that the number range must not be used before an operator has
	// looked.
	Freeze bool
}

// Fold decides where a document stands. It is a function of the set of items:
// their order does not matter, and an item that is there twice counts once. The
// numbered rules are applied in their order; the first one that fits decides.
func Fold(items []Item) Outcome {
	t := NewTally(items)
	o := t.outcome()
	if o.Verdict != nil && o.Verdict.TrackID != "" {
		o.TrackID = o.Verdict.TrackID
	} else if len(t.order) > 0 {
		o.TrackID = t.order[0]
	}
	if t.received && (o.Status == fiscal.Accepted || o.Status == fiscal.AcceptedConditional) {
		o.Status = fiscal.Delivered
	}
	return o
}

func (t *Tally) outcome() Outcome {
	switch {
	case len(t.accepted) > 0: // 1
		return Outcome{Status: fiscal.Accepted, Verdict: &t.accepted[0]}
	case len(t.conditional) > 0: // 2
		return Outcome{Status: fiscal.AcceptedConditional, Verdict: &t.conditional[0]}
	case len(t.operator) > 0: // 3
		return Outcome{Status: fiscal.Rejected, Verdict: &t.operator[0]}
	case t.any(func(t *track) bool { return t.processing && !t.closed }): // 4
		return Outcome{Status: fiscal.Processing}
	case len(t.rejected) > 0 && len(t.open) == 0 && !t.any(func(t *track) bool { return !t.closed }): // 5
		return Outcome{Status: fiscal.Rejected, Verdict: &t.rejected[0]}
	case len(t.duplicates) > 0 || len(t.foreign) > 0: // 6
		return t.disputed()
	case t.any(func(t *track) bool { return !t.closed && !t.lost }): // 7
		return Outcome{Status: fiscal.Submitted}
	case t.inconclusive || len(t.tracks) > 0: // 8
		// A document that may have arrived never goes back to the queue. When it
		// is proven absent, it is sent again from this status.
		return Outcome{Status: fiscal.OutcomeUnknown}
	}
	return Outcome{Status: fiscal.Queued} // 9
}

// disputed decides rule 6: the authority knows the number already, but not by an
// acceptance of our bytes.
func (t *Tally) disputed() Outcome {
	verdict := slices.Concat(t.duplicates, t.foreign)
	switch {
	case len(t.foreign) > 0:
		return Outcome{Status: fiscal.Rejected, Verdict: &verdict[0], Freeze: true,
			Alarm: "The authority holds another document under our number."}
	case !t.inconclusive && t.lookedUp && !t.any(func(t *track) bool { return !t.closed }):
		return Outcome{Status: fiscal.Rejected, Verdict: &verdict[0],
			Alarm: "The authority says that the number was used, and no attempt of ours can have used it."}
	}
	return Outcome{Status: fiscal.OutcomeUnknown}
}
