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
			refused.At, refused.SequenceFree = at, rapid.Bool().Draw(t, "free")
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
