package evidence

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// proven reports, without the tally, whether anything says what became of all that was sent
// up to an instant.
func proven(items []Item, sent time.Time) bool {
	return slices.ContainsFunc(items, func(i Item) bool {
		switch i.Kind {
		case Operator:
			return i.Verdict == fiscal.VerdictRejected
		case State:
			return i.Foreign || i.Ours && i.Verdict == fiscal.VerdictRejected && !i.At.Before(sent)
		default:
			return false
		}
	})
}

// While an attempt has no answer, or its track id is lost, no rejection is final unless a
// look-up shows our number, or an operator decides. The number is not free either.
func TestNoRejectionIsFinalInDoubt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		items := rapid.SliceOfN(rapid.Custom(drawEvidence), 0, 8).Draw(t, "evidence")
		items = append(items, Item{Kind: Inconclusive, Attempt: 9, At: noon.Add(2 * time.Second)})
		items = rapid.Permutation(items).Draw(t, "order")
		got := Fold(items)
		for _, i := range items {
			answered := slices.ContainsFunc(items, func(a Item) bool {
				return !a.Found && (a.Kind == Track || a.Kind == Verdict) && i.Attempt > 0 && a.Attempt == i.Attempt
			})
			judged := slices.ContainsFunc(items, func(v Item) bool {
				return v.Kind == Verdict && v.TrackID == i.TrackID && v.Verdict != fiscal.VerdictInProcess
			})
			inDoubt := i.Kind == Inconclusive && !answered || i.Kind == Lost && !judged
			if inDoubt && !proven(items, i.At) && (got.Status == fiscal.Rejected || got.NumberFree) {
				t.Fatalf("%s in spite of %+v: %+v", got.Status, i, items)
			}
		}
	})
}

// What finds nothing, and what is about another submission, never makes a document in doubt
// final, however much of it there is.
func TestNothingFoundConfirmsNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		items := []Item{{Kind: Inconclusive, Attempt: 1, At: noon}}
		for n := range rapid.IntRange(0, 20).Draw(t, "answers") {
			at := noon.Add(time.Duration(n) * time.Hour)
			refused := word("T2", fiscal.VerdictRejected, fiscal.Message{Code: rapid.SampledFrom([]string{"75", "135", "145", "176", "1209"}).Draw(t, "code")})
			refused.At, refused.NumberFree = at, rapid.Bool().Draw(t, "free")
			items = append(items, rapid.SampledFrom([]Item{
				{Kind: Absent, At: at}, {Kind: NoOther, At: at}, {Kind: NoLookUp, At: at}, {Kind: Settled, Attempt: 1, At: at}, refused,
				{Kind: State, Verdict: fiscal.VerdictRejected, At: at},
			}).Draw(t, "answer"))
		}
		if got := Fold(items); got.Status != fiscal.OutcomeUnknown || got.NumberFree {
			t.Fatalf("%+v: %+v", got, items)
		}
		if NewTally(items).Judged() != slices.ContainsFunc(items, func(i Item) bool { return i.Kind == Verdict }) {
			t.Fatal("a rejected copy would be sent again")
		}
	})
}

func TestMayRepeat(t *testing.T) {
	t.Parallel()
	second := lostAttempt()
	second.Attempt = 2
	rejected := word("T2", fiscal.VerdictRejected)
	for name, tt := range map[string]struct {
		evidence []Item
		want     bool
	}{
		"nothing":               {nil, false},
		"one attempt in doubt":  {[]Item{lostAttempt()}, false},
		"two attempts in doubt": {[]Item{lostAttempt(), second}, true},
		"a rejected copy":       {[]Item{lostAttempt(), rejected}, true},
		"a rejected copy, and the other one shows": {[]Item{lostAttempt(), rejected, foundWord(fiscal.VerdictRejected)}, false},
		"a rejected copy, and nothing in doubt":    {[]Item{rejected}, false},
		"a rejected copy, and a lost track":        {[]Item{given("T1"), {Kind: Lost, TrackID: "T1", At: noon}, rejected}, true},
	} {
		if got := NewTally(tt.evidence).MayRepeat(); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Which attempts the answer to a look-up is about is a matter of what was known then, and
// not of the times: a clock may have been set between.
func TestALookUpIsAboutTheAttemptsBeforeIt(t *testing.T) {
	t.Parallel()
	lost := func(n int64, at time.Time) Item { return Item{Kind: Inconclusive, Attempt: n, At: at} }
	rejected := func(at time.Time, known ...Item) Item {
		return Item{Kind: State, Ours: true, Verdict: fiscal.VerdictRejected, At: at}.Learnt(known)
	}
	absent := func(at time.Time, known ...Item) Item { return Item{Kind: Absent, At: at}.Learnt(known) }
	ahead, first := noon.Add(24*time.Hour), lost(1, noon)
	track := Item{Kind: Track, TrackID: "T1", Attempt: 1, At: ahead}
	for name, tt := range map[string]struct {
		items   []Item
		inDoubt bool
		absent  int
	}{
		"the attempt was ahead":         {[]Item{lost(1, ahead), rejected(noon, lost(1, ahead))}, false, 0},
		"the look-up was ahead":         {[]Item{first, rejected(ahead, first), lost(2, noon.Add(time.Minute))}, true, 0},
		"the lost track was ahead":      {[]Item{track, {Kind: Lost, TrackID: "T1", At: ahead}, rejected(noon, track)}, false, 0},
		"nothing found, attempt ahead":  {[]Item{lost(1, ahead), absent(noon, lost(1, ahead))}, true, 1},
		"nothing found, look-up ahead":  {[]Item{first, absent(ahead, first), lost(2, noon.Add(time.Minute))}, true, 0},
		"nothing found, as before":      {[]Item{first, {Kind: Absent, At: ahead}}, true, 1},
		"nothing found before, earlier": {[]Item{lost(1, ahead), {Kind: Absent, At: noon}}, true, 0},
	} {
		if got := NewTally(tt.items).InDoubt(); got != tt.inDoubt {
			t.Errorf("%s: in doubt %t", name, got)
		}
		if got := AbsentSinceDoubt(tt.items, 0); got != tt.absent {
			t.Errorf("%s: absent %d times, want %d", name, got, tt.absent)
		}
	}
}
