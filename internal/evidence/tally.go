package evidence

import (
	"cmp"
	"slices"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// A Tally is the evidence about a document, sorted by what it says.
type Tally struct {
	accepted, conditional, rejected, duplicates, foreign, operator []Item

	tracks       map[string]*track
	order        []string       // of the tracks, oldest first
	open         map[int64]bool // inconclusive attempts that nothing explains yet
	inconclusive bool           // there was an inconclusive attempt, settled or not
	lookedUp     bool           // a look-up by number showed no acceptance of our bytes
	received     bool           // the buyer has acknowledged the document
}

// A track is one submission as the authority knows it.
type track struct{ closed, processing, lost bool }

// NewTally sorts evidence. The order of the items does not matter.
func NewTally(items []Item) *Tally {
	t := &Tally{tracks: make(map[string]*track), open: make(map[int64]bool)}
	items = slices.Clone(items)
	slices.SortStableFunc(items, func(a, b Item) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.TrackID, b.TrackID), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Verdict, b.Verdict))
	})
	for _, i := range items {
		t.add(i)
	}
	for _, i := range items {
		if i.Kind == Settled {
			delete(t.open, i.Attempt)
		}
	}
	return t
}

func (t *Tally) add(i Item) {
	if i.TrackID != "" {
		t.track(i.TrackID)
	}
	switch i.Kind {
	case Track, DeliveryFailed, Commercial, Settled:
	case Lost:
		t.track(i.TrackID).lost = true
	case Inconclusive:
		t.inconclusive, t.open[i.Attempt] = true, true
	case Absent:
		t.lookedUp = t.lookedUp || i.TrackID == ""
	case Receipt:
		t.received = true
	case Verdict, State, Operator:
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

// judge sorts in a verdict. The answer to a look-up by number counts only when it
// is about our bytes.
func (t *Tally) judge(i Item) {
	if i.Kind == State && !i.Ours {
		t.lookedUp = true
		if i.Foreign {
			t.foreign = append(t.foreign, i)
		}
		return
	}
	about := &track{} // for a verdict without a track id
	if i.TrackID != "" {
		about = t.track(i.TrackID)
	}
	switch i.Verdict {
	case fiscal.VerdictAccepted:
		t.accepted, about.closed = append(t.accepted, i), true
	case fiscal.VerdictConditional:
		t.conditional, about.closed = append(t.conditional, i), true
	case fiscal.VerdictRejected:
		about.closed = true
		switch {
		case i.Kind == Operator:
			t.operator = append(t.operator, i)
		case i.duplicate():
			t.duplicates = append(t.duplicates, i)
		default:
			t.rejected = append(t.rejected, i)
		}
	case fiscal.VerdictInProcess:
		about.processing = true
	case fiscal.VerdictNotFound:
	}
}

// HasTracks reports whether any track id is known.
func (t *Tally) HasTracks() bool { return len(t.order) > 0 }

// OpenTracks returns the track ids without a verdict, oldest first.
func (t *Tally) OpenTracks() []string {
	return slices.DeleteFunc(slices.Clone(t.order), func(id string) bool { return t.tracks[id].closed })
}

// OpenAttempts returns the inconclusive attempts that nothing explains yet, in
// ascending order.
func (t *Tally) OpenAttempts() []int64 {
	var all []int64
	for attempt := range t.open {
		all = append(all, attempt)
	}
	slices.Sort(all)
	return all
}

func (t *Tally) any(is func(*track) bool) bool {
	for _, one := range t.tracks {
		if is(one) {
			return true
		}
	}
	return false
}
