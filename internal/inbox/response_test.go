package inbox

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// after returns the document after a statement, as take commits it.
func (d document) after(s statement, known bool) (document, ResponseOutcome) {
	outcome := d.outcome(s, known)
	switch outcome {
	case Stands, Contradicts:
		d.confirmed = append(slices.Clone(d.confirmed), evidence.Item{Kind: evidence.Commercial, Signer: s.signer, Verdict: s.verdict(), Confirmed: true})
	case Unconfirmed:
		d.unconfirmed = append(slices.Clone(d.unconfirmed), store.UnconfirmedResponse{Signer: s.signer, Accepted: s.accepted})
	case Repeated, TooMany:
	}
	return d, outcome
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	yes, no := statement{accepted: true, signer: "a"}, statement{reason: "no", signer: "a"}
	other := statement{reason: "no", signer: "b"}
	type response struct {
		statement
		known bool
		want  ResponseOutcome
	}
	for name, sequence := range map[string][]response{
		"the first known one stands":        {{yes, true, Stands}, {yes, true, Repeated}, {no, true, Contradicts}, {no, true, Repeated}, {yes, true, Repeated}},
		"another known signer":              {{yes, true, Stands}, {other, true, Contradicts}, {other, true, Repeated}},
		"the same with another reason":      {{no, true, Stands}, {statement{reason: "other", signer: "a"}, true, Repeated}},
		"unknown ones are kept apart":       {{no, false, Unconfirmed}, {no, false, Repeated}, {yes, false, Unconfirmed}, {yes, true, Stands}},
		"a known signer who is removed":     {{yes, true, Stands}, {yes, false, Repeated}, {no, false, Unconfirmed}},
		"a known one after an unknown one":  {{other, false, Unconfirmed}, {yes, true, Stands}},
		"an unknown one changes no verdict": {{yes, true, Stands}, {other, false, Unconfirmed}, {no, true, Contradicts}},
	} {
		var d document
		for i, r := range sequence {
			var got ResponseOutcome
			if d, got = d.after(r.statement, r.known); got != r.want {
				t.Errorf("%s: response %d %s, want %s", name, i+1, got, r.want)
			}
		}
	}
}

// Whatever unknown signers send, and in any order, every response of a known signer has
// the outcome that it has without them, and a document never keeps more than its limits.
func TestUnknownSignersNeverMatterToKnownOnes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var all, alone document
		for range rapid.IntRange(1, 60).Draw(t, "responses") {
			s := statement{accepted: rapid.Bool().Draw(t, "accepted"), signer: rapid.StringMatching(`[a-z][0-9]`).Draw(t, "signer")}
			known := s.signer < "n" // half of the signers
			var got, want ResponseOutcome
			all, got = all.after(s, known)
			if known {
				if alone, want = alone.after(s, known); got != want {
					t.Fatalf("%+v: %s beside unknown signers, %s without them", s, got, want)
				}
			}
			if len(all.confirmed) > maxConfirmed || len(all.unconfirmed) > store.MaxUnconfirmedResponses {
				t.Fatalf("%d and %d are kept", len(all.confirmed), len(all.unconfirmed))
			}
		}
		if diff := cmp.Diff(alone.confirmed, all.confirmed); diff != "" {
			t.Fatalf("kept (-without unknown signers +beside them):\n%s", diff)
		}
	})
}

func TestARefusalIsTheFirstOnceForEachDocument(t *testing.T) {
	t.Parallel()
	b := &Inbox{full: map[string]bool{}}
	for _, c := range []struct {
		document string
		first    bool
	}{{"a", true}, {"a", false}, {"b", true}, {"a", false}, {"b", false}} {
		if got := b.firstRefusal(c.document); got != c.first {
			t.Errorf("%s: %v", c.document, got)
		}
	}
}

func TestNewRequiresItsOptions(t *testing.T) {
	t.Parallel()
	if _, err := New(Options{}); err == nil {
		t.Error("New accepts no options")
	}
}
