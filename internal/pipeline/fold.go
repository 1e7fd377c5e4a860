package pipeline

import (
	"cmp"
	"slices"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// An Outcome is what all the evidence about a document comes to.
type Outcome struct {
	Status  fiscal.Status
	TrackID string // the one that counts; empty when there is none
	// Verdict is the evidence that decided, nil when none has yet.
	Verdict *Evidence
	// Alarm says what people must look at; empty when there is nothing.
	Alarm string
	// Freeze tells that the range of the number must not be used before people
	// have looked.
	Freeze bool
}

// Fold says where a document stands by everything that is known of it. It is a
// function of the set: the order in which evidence came in does not matter, and
// what is there twice counts once. The rules are numbered as they are decided:
// the first that applies.
func Fold(evidence []Evidence) Outcome {
	s := newSurvey(evidence)
	o := s.outcome()
	if o.Verdict != nil && o.Verdict.TrackID != "" {
		o.TrackID = o.Verdict.TrackID
	} else if len(s.order) > 0 {
		o.TrackID = s.order[0]
	}
	if s.received && (o.Status == fiscal.Accepted || o.Status == fiscal.AcceptedConditional) {
		o.Status = fiscal.Delivered
	}
	return o
}

// A survey is the evidence, sorted by what it says.
type survey struct {
	accepted, conditional, rejected, duplicates, foreign, operator []Evidence

	tracks       map[string]*track
	order        []string       // of the tracks, as the authority gave them
	open         map[int64]bool // inconclusive attempts that nothing explains yet
	inconclusive bool           // there ever was one
	looked       bool           // a look-up by number showed no acceptance of our bytes
	received     bool           // the buyer has acknowledged
}

// A track is one submission as the authority knows it.
type track struct{ closed, processing, lost bool }

func newSurvey(evidence []Evidence) *survey {
	s := &survey{tracks: make(map[string]*track), open: make(map[int64]bool)}
	evidence = slices.Clone(evidence)
	slices.SortStableFunc(evidence, func(a, b Evidence) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.TrackID, b.TrackID), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Verdict, b.Verdict))
	})
	for _, e := range evidence {
		if e.TrackID != "" {
			s.track(e.TrackID)
		}
		switch e.Kind {
		case KindTrack, KindRefusedDelivery, KindCommercial:
		case KindLost:
			s.track(e.TrackID).lost = true
		case KindInconclusive:
			s.inconclusive, s.open[e.Attempt] = true, true
		case KindAbsent:
			s.looked = s.looked || e.TrackID == ""
		case KindReceipt:
			s.received = true
		case KindVerdict, KindState, KindOperator:
			s.judge(e)
		case KindSettled:
		}
	}
	for _, e := range evidence {
		if e.Kind == KindSettled {
			delete(s.open, e.Attempt)
		}
	}
	return s
}

func (s *survey) track(id string) *track {
	t := s.tracks[id]
	if t == nil {
		t = &track{}
		s.tracks[id] = t
		s.order = append(s.order, id)
	}
	return t
}

// judge takes in a verdict. One that a look-up by number showed counts when it
// is of our bytes.
func (s *survey) judge(e Evidence) {
	if e.Kind == KindState && !e.Ours {
		s.looked = true
		if e.Foreign {
			s.foreign = append(s.foreign, e)
		}
		return
	}
	t := &track{} // of nobody, for what has no track id
	if e.TrackID != "" {
		t = s.track(e.TrackID)
	}
	switch e.Verdict {
	case fiscal.VerdictAccepted:
		s.accepted, t.closed = append(s.accepted, e), true
	case fiscal.VerdictConditional:
		s.conditional, t.closed = append(s.conditional, e), true
	case fiscal.VerdictRejected:
		t.closed = true
		switch {
		case e.Kind == KindOperator:
			s.operator = append(s.operator, e)
		case e.duplicate():
			s.duplicates = append(s.duplicates, e)
		default:
			s.rejected = append(s.rejected, e)
		}
	case fiscal.VerdictInProcess:
		t.processing = true
	case fiscal.VerdictNotFound:
	}
}

func (s *survey) outcome() Outcome {
	switch {
	case len(s.accepted) > 0: // 1
		return Outcome{Status: fiscal.Accepted, Verdict: &s.accepted[0]}
	case len(s.conditional) > 0: // 2
		return Outcome{Status: fiscal.AcceptedConditional, Verdict: &s.conditional[0]}
	case len(s.operator) > 0:
		return Outcome{Status: fiscal.Rejected, Verdict: &s.operator[0]}
	case s.any(func(t *track) bool { return t.processing && !t.closed }): // 3
		return Outcome{Status: fiscal.Processing}
	case len(s.rejected) > 0 && len(s.open) == 0 && !s.any(func(t *track) bool { return !t.closed }): // 4
		return Outcome{Status: fiscal.Rejected, Verdict: &s.rejected[0]}
	case len(s.duplicates) > 0 || len(s.foreign) > 0: // 5
		return s.disputed()
	case s.any(func(t *track) bool { return !t.closed && !t.lost }): // 6
		return Outcome{Status: fiscal.Submitted}
	case len(s.open) > 0 || s.any(func(t *track) bool { return t.lost && !t.closed }): // 7
		return Outcome{Status: fiscal.OutcomeUnknown}
	case s.inconclusive || len(s.tracks) > 0:
		// What may have arrived never goes back to the queue, whatever explained
		// it: it is sent again from here.
		return Outcome{Status: fiscal.OutcomeUnknown}
	}
	return Outcome{Status: fiscal.Queued} // 8
}

// disputed is a number that the authority knows already, but not by an
// acceptance of ours: rule 5.
func (s *survey) disputed() Outcome {
	verdict := slices.Concat(s.duplicates, s.foreign)
	switch {
	case len(s.foreign) > 0:
		return Outcome{Status: fiscal.Rejected, Verdict: &verdict[0], Freeze: true,
			Alarm: "the authority holds another document under our number"}
	case !s.inconclusive && s.looked && !s.any(func(t *track) bool { return !t.closed }):
		return Outcome{Status: fiscal.Rejected, Verdict: &verdict[0],
			Alarm: "the authority says that the number was used, and no attempt of ours can have used it"}
	}
	return Outcome{Status: fiscal.OutcomeUnknown}
}

func (s *survey) any(is func(*track) bool) bool {
	for _, t := range s.tracks {
		if is(t) {
			return true
		}
	}
	return false
}
