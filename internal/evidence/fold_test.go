package evidence

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

var noon = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

func word(track string, v fiscal.Verdict, messages ...fiscal.Message) Item {
	return Item{Kind: Verdict, TrackID: track, Verdict: v, Messages: messages, At: noon}
}

func given(track string) Item { return Item{Kind: Track, TrackID: track, At: noon} }
func found(track string) Item { return Item{Kind: Track, TrackID: track, Found: true, At: noon} }
func foundWord(v fiscal.Verdict) Item {
	return Item{Kind: Verdict, TrackID: "T0", Verdict: v, Found: true, At: noon}
}
func lostAttempt() Item { return Item{Kind: Inconclusive, Attempt: 1, At: noon} }

func later(i Item) Item {
	i.At = i.At.Add(time.Second)
	return i
}

func TestFold(t *testing.T) {
	t.Parallel()
	used := fiscal.Message{Code: "135", Text: "Número de secuencia no autorizada."}
	wrong := fiscal.Message{Code: "176", Text: "El campo IndicadorMontoGravado no es válido."}
	expired := fiscal.Message{Code: "145", Text: "El campo FechaVencimientoSecuencia no es válido."}
	state := func(v fiscal.Verdict, ours, foreign bool) Item {
		return Item{Kind: State, Verdict: v, Ours: ours, Foreign: foreign, At: noon}
	}
	free := word("T1", fiscal.VerdictRejected, used)
	free.NumberFree = true
	for name, tt := range map[string]struct {
		evidence []Item
		want     fiscal.Status
		alarm    bool
	}{
		"nothing":                             {nil, fiscal.Queued, false},
		"a track":                             {[]Item{given("T1")}, fiscal.Submitted, false},
		"a track in process":                  {[]Item{given("T1"), word("T1", fiscal.VerdictInProcess)}, fiscal.Processing, false},
		"a track in process that ended":       {[]Item{word("T1", fiscal.VerdictInProcess), word("T1", fiscal.VerdictAccepted)}, fiscal.Accepted, false},
		"conditional":                         {[]Item{word("T1", fiscal.VerdictConditional, wrong)}, fiscal.AcceptedConditional, false},
		"rejected":                            {[]Item{given("T1"), word("T1", fiscal.VerdictRejected, wrong)}, fiscal.Rejected, false},
		"refused at the door":                 {[]Item{word("", fiscal.VerdictRejected, wrong)}, fiscal.Rejected, false},
		"rejected, but another track is open": {[]Item{word("T1", fiscal.VerdictRejected, wrong), given("T2")}, fiscal.Submitted, false},
		"rejected, but another attempt may have arrived": {[]Item{word("T1", fiscal.VerdictRejected, wrong), lostAttempt()}, fiscal.OutcomeUnknown, false},
		"rejected, and the other attempt was not found":  {[]Item{word("T1", fiscal.VerdictRejected, wrong), lostAttempt(), {Kind: Settled, Attempt: 1}}, fiscal.OutcomeUnknown, false},
		"rejected, and the other attempt never shows up": {[]Item{lostAttempt(), {Kind: Absent, At: noon.Add(time.Minute)}, {Kind: Absent, At: noon.Add(time.Hour)}, {Kind: NoOther, At: noon.Add(time.Hour)}, word("T2", fiscal.VerdictRejected, wrong)}, fiscal.OutcomeUnknown, false},
		"rejected, and there are no look-ups":            {[]Item{lostAttempt(), {Kind: NoLookUp, At: noon}, word("T2", fiscal.VerdictRejected, expired)}, fiscal.OutcomeUnknown, false},
		"rejected, and a look-up shows our code":         {[]Item{lostAttempt(), word("T2", fiscal.VerdictRejected, wrong), later(state(fiscal.VerdictRejected, true, false))}, fiscal.Rejected, false},
		"rejected, and a look-up shows our code earlier": {[]Item{state(fiscal.VerdictRejected, true, false), later(lostAttempt()), later(word("T2", fiscal.VerdictRejected, wrong))}, fiscal.OutcomeUnknown, false},
		"rejected, and a look-up shows too little":       {[]Item{lostAttempt(), word("T2", fiscal.VerdictRejected, wrong), later(state(fiscal.VerdictRejected, false, false))}, fiscal.OutcomeUnknown, false},
		"rejected, and a look-up shows ours in process":  {[]Item{lostAttempt(), word("T2", fiscal.VerdictRejected, wrong), later(state(fiscal.VerdictInProcess, true, false))}, fiscal.OutcomeUnknown, false},
		"rejected, and the operator knows more":          {[]Item{lostAttempt(), word("T2", fiscal.VerdictRejected, wrong), {Kind: Operator, Verdict: fiscal.VerdictConditional, At: noon}}, fiscal.AcceptedConditional, false},
		"the answer comes late":                          {[]Item{lostAttempt(), {Kind: Verdict, Attempt: 1, Verdict: fiscal.VerdictRejected, At: noon}}, fiscal.Rejected, false},
		"a summary, already used, and our code":          {[]Item{lostAttempt(), word("", fiscal.VerdictRejected, used), later(state(fiscal.VerdictRejected, true, false))}, fiscal.Rejected, false},
		"already used, both rejected":                    {[]Item{lostAttempt(), word("T2", fiscal.VerdictRejected, used), foundWord(fiscal.VerdictRejected), later(state(fiscal.VerdictRejected, true, false))}, fiscal.Rejected, false},
		"already used, and the list was not read":        {[]Item{lostAttempt(), word("T2", fiscal.VerdictRejected, used), later(state(fiscal.VerdictRejected, true, false))}, fiscal.OutcomeUnknown, false},
		"already used beside a remark":                   {[]Item{given("T1"), word("T1", fiscal.VerdictRejected, wrong, used)}, fiscal.OutcomeUnknown, false},
		"already used, with the other code":              {[]Item{given("T1"), word("T1", fiscal.VerdictRejected, fiscal.Message{Code: "1209"})}, fiscal.OutcomeUnknown, false},
		"a lost answer":                                  {[]Item{lostAttempt()}, fiscal.OutcomeUnknown, false},
		"a lost answer that is proven absent":            {[]Item{lostAttempt(), {Kind: Settled, Attempt: 1}}, fiscal.OutcomeUnknown, false},
		"already used after a lost answer":               {[]Item{lostAttempt(), given("T2"), word("T2", fiscal.VerdictRejected, used)}, fiscal.OutcomeUnknown, false},
		"already used, and the first is accepted":        {[]Item{lostAttempt(), word("T2", fiscal.VerdictRejected, used), word("T1", fiscal.VerdictAccepted)}, fiscal.Accepted, false},
		"already used, and the first is in process":      {[]Item{word("T2", fiscal.VerdictRejected, used), word("T1", fiscal.VerdictInProcess)}, fiscal.Processing, false},
		"already used, never lost, not looked":           {[]Item{word("T1", fiscal.VerdictRejected, used)}, fiscal.OutcomeUnknown, false},
		"already used, never lost, looked":               {[]Item{word("T1", fiscal.VerdictRejected, used), {Kind: Absent, At: noon}}, fiscal.Rejected, true},
		"already used, and seen rejected by number":      {[]Item{given("T1"), word("T1", fiscal.VerdictRejected, used), state(fiscal.VerdictRejected, true, false)}, fiscal.OutcomeUnknown, false},
		"already used and seen, the other in process":    {[]Item{given("T1"), word("T1", fiscal.VerdictRejected, used), state(fiscal.VerdictRejected, true, false), found("T0"), foundWord(fiscal.VerdictInProcess)}, fiscal.Processing, false},
		"already used and seen, the other accepted":      {[]Item{given("T1"), word("T1", fiscal.VerdictRejected, used), state(fiscal.VerdictRejected, true, false), foundWord(fiscal.VerdictAccepted), state(fiscal.VerdictAccepted, true, false)}, fiscal.Accepted, false},
		"already used and seen, absent before":           {[]Item{{Kind: Absent, At: noon}, given("T1"), word("T1", fiscal.VerdictRejected, used), state(fiscal.VerdictRejected, true, false)}, fiscal.Rejected, true},
		"already used and seen, no other track":          {[]Item{given("T1"), word("T1", fiscal.VerdictRejected, used), state(fiscal.VerdictRejected, true, false), {Kind: NoOther, At: noon}}, fiscal.Rejected, false},
		"not authorised, and free":                       {[]Item{free}, fiscal.Rejected, false},
		"another's document under our number":            {[]Item{word("T1", fiscal.VerdictRejected, used), state(fiscal.VerdictAccepted, false, true)}, fiscal.Rejected, true},
		"found accepted by number":                       {[]Item{lostAttempt(), state(fiscal.VerdictAccepted, true, false)}, fiscal.Accepted, false},
		"found by number, but who knows whose":           {[]Item{lostAttempt(), state(fiscal.VerdictAccepted, false, false)}, fiscal.OutcomeUnknown, false},
		"a track that nobody knows any more":             {[]Item{given("T1"), {Kind: Lost, TrackID: "T1", At: noon}}, fiscal.OutcomeUnknown, false},
		"a lost track that came back":                    {[]Item{given("T1"), {Kind: Lost, TrackID: "T1", At: noon}, word("T1", fiscal.VerdictAccepted)}, fiscal.Accepted, false},
		"a found track without a verdict":                {[]Item{lostAttempt(), found("T0")}, fiscal.Submitted, false},
		"a found track is accepted, unconfirmed":         {[]Item{lostAttempt(), found("T0"), foundWord(fiscal.VerdictAccepted)}, fiscal.OutcomeUnknown, false},
		"a found track is accepted, and ours":            {[]Item{lostAttempt(), foundWord(fiscal.VerdictAccepted), state(fiscal.VerdictAccepted, true, false)}, fiscal.Accepted, false},
		"a found track is conditional, and ours":         {[]Item{lostAttempt(), foundWord(fiscal.VerdictConditional), state(fiscal.VerdictAccepted, true, false)}, fiscal.AcceptedConditional, false},
		"our own track is conditional":                   {[]Item{word("T1", fiscal.VerdictConditional), state(fiscal.VerdictAccepted, true, false)}, fiscal.AcceptedConditional, false},
		"a found track is accepted, and foreign":         {[]Item{given("T1"), word("T1", fiscal.VerdictRejected, used), foundWord(fiscal.VerdictAccepted), state(fiscal.VerdictAccepted, false, true)}, fiscal.Rejected, true},
		"foreign, but our own verdict is open":           {[]Item{given("T1"), foundWord(fiscal.VerdictAccepted), state(fiscal.VerdictAccepted, false, true)}, fiscal.Submitted, false},
		"a found rejection that is ours":                 {[]Item{lostAttempt(), {Kind: Settled, Attempt: 1}, foundWord(fiscal.VerdictRejected), state(fiscal.VerdictRejected, true, false)}, fiscal.Rejected, false},
		"a found rejection, seen by number":              {[]Item{lostAttempt(), foundWord(fiscal.VerdictRejected), state(fiscal.VerdictRejected, true, false)}, fiscal.Rejected, false},
		"a found rejection, seen, then sent again":       {[]Item{state(fiscal.VerdictRejected, true, false), foundWord(fiscal.VerdictRejected), later(lostAttempt())}, fiscal.OutcomeUnknown, false},
		"a found rejection, and a lost track":            {[]Item{given("T1"), {Kind: Lost, TrackID: "T1", At: noon}, foundWord(fiscal.VerdictRejected), later(state(fiscal.VerdictRejected, true, false))}, fiscal.Rejected, false},
		"already used, and only our track exists":        {[]Item{word("T1", fiscal.VerdictRejected, used), {Kind: NoOther, At: noon}}, fiscal.Rejected, true},
		"a lost track, and another rejected":             {[]Item{given("T1"), {Kind: Lost, TrackID: "T1", At: noon}, {Kind: Settled, TrackID: "T1"}, given("T2"), word("T2", fiscal.VerdictRejected, wrong)}, fiscal.OutcomeUnknown, false},
		"the operator decides":                           {[]Item{lostAttempt(), {Kind: Operator, Verdict: fiscal.VerdictRejected, At: noon}}, fiscal.Rejected, false},
		"the operator was wrong":                         {[]Item{{Kind: Operator, Verdict: fiscal.VerdictRejected, At: noon}, word("T1", fiscal.VerdictAccepted)}, fiscal.Accepted, false},
		"delivered":                                      {[]Item{word("T1", fiscal.VerdictConditional), {Kind: Receipt, At: noon}}, fiscal.Delivered, false},
		"the buyer rejects what was accepted":            {[]Item{word("T1", fiscal.VerdictAccepted), {Kind: Commercial, Verdict: fiscal.VerdictRejected, At: noon}}, fiscal.Accepted, false},
		"acknowledged before the verdict":                {[]Item{given("T1"), {Kind: Receipt, At: noon}}, fiscal.Submitted, false},
	} {
		got := Fold(tt.evidence)
		if got.Status != tt.want || (got.Alarm != "") != tt.alarm {
			t.Errorf("%s: %+v, want %s", name, got, tt.want)
		}
	}
}

func TestMustConfirm(t *testing.T) {
	t.Parallel()
	seen := Item{Kind: State, Verdict: fiscal.VerdictRejected, Ours: true, At: noon}
	accepted := Item{Kind: State, Verdict: fiscal.VerdictAccepted, Ours: true, At: noon}
	decided := Item{Kind: Operator, Verdict: fiscal.VerdictRejected, At: noon}
	working := Item{Kind: State, Verdict: fiscal.VerdictInProcess, Ours: true, At: noon}
	for name, tt := range map[string]struct {
		evidence []Item
		want     bool
	}{
		"nothing":                              {nil, false},
		"a found rejection":                    {[]Item{foundWord(fiscal.VerdictRejected)}, true},
		"a found rejection, seen as ours":      {[]Item{foundWord(fiscal.VerdictRejected), seen}, false},
		"a found acceptance":                   {[]Item{foundWord(fiscal.VerdictAccepted)}, true},
		"a found acceptance after a rejection": {[]Item{seen, foundWord(fiscal.VerdictAccepted)}, true},
		"a found acceptance, seen as ours":     {[]Item{seen, foundWord(fiscal.VerdictAccepted), accepted}, false},
		"a found acceptance after no verdict":  {[]Item{lostAttempt(), working, foundWord(fiscal.VerdictAccepted)}, true},
		"a used number after no verdict":       {[]Item{working, word("T2", fiscal.VerdictRejected, fiscal.Message{Code: "135"})}, true},
		"an operator decided":                  {[]Item{decided, foundWord(fiscal.VerdictRejected)}, false},
		"an operator may have been wrong":      {[]Item{decided, foundWord(fiscal.VerdictAccepted)}, true},
		"a rejection":                          {[]Item{word("T1", fiscal.VerdictRejected)}, false},
		"a rejection, and an attempt in doubt": {[]Item{lostAttempt(), word("T2", fiscal.VerdictRejected)}, true},
		"a rejection, and a lost track":        {[]Item{given("T1"), {Kind: Lost, TrackID: "T1", At: noon}, word("T2", fiscal.VerdictRejected)}, true},
		"a rejection, and the doubt has ended": {[]Item{lostAttempt(), word("T2", fiscal.VerdictRejected), later(seen)}, false},
		"a rejection, and a doubt since":       {[]Item{seen, word("T2", fiscal.VerdictRejected), later(lostAttempt())}, true},
	} {
		if got := NewTally(tt.evidence).MustConfirm(); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestOthersRejected(t *testing.T) {
	t.Parallel()
	rejected := foundWord(fiscal.VerdictRejected)
	for name, tt := range map[string]struct {
		evidence []Item
		want     bool
	}{
		"nothing":                            {nil, false},
		"a rejected one":                     {[]Item{lostAttempt(), found("T0"), rejected}, true},
		"an accepted one":                    {[]Item{found("T0"), foundWord(fiscal.VerdictAccepted)}, false},
		"one in process":                     {[]Item{found("T0"), foundWord(fiscal.VerdictInProcess)}, false},
		"a rejected one and an open one":     {[]Item{rejected, found("T2")}, false},
		"a rejected one and an open of ours": {[]Item{rejected, given("T1")}, false},
		"a rejected one and ours, judged":    {[]Item{rejected, word("T1", fiscal.VerdictRejected)}, false},
		"a rejected one and ours, lost":      {[]Item{rejected, given("T1"), {Kind: Lost, TrackID: "T1", At: noon}}, true},
	} {
		if got := NewTally(tt.evidence).OthersRejected(); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func drawEvidence(t *rapid.T) Item {
	e := Item{
		Kind: rapid.SampledFrom([]Kind{
			Track, Verdict, Verdict, State, Absent, Lost, Inconclusive, Settled, NoOther, NoLookUp, Operator, Note, Receipt, DeliveryFailed, Commercial,
		}).Draw(t, "kind"),
		At: noon.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "at")) * time.Second),
	}
	switch e.Kind {
	case Verdict, Track, Lost:
		e.TrackID = rapid.SampledFrom([]string{"T1", "T2", "T3"}).Draw(t, "track")
		e.Found = e.Kind != Lost && rapid.Bool().Draw(t, "found")
		if !e.Found && e.Kind != Lost && rapid.Bool().Draw(t, "answers") {
			e.Attempt = rapid.Int64Range(1, 3).Draw(t, "attempt")
		}
	case Inconclusive, Settled:
		e.Attempt = rapid.Int64Range(1, 3).Draw(t, "attempt")
	case State:
		e.Ours = rapid.Bool().Draw(t, "ours")
		e.Foreign = !e.Ours && rapid.Bool().Draw(t, "foreign")
	case Absent, NoOther, NoLookUp, Operator, Note, Receipt, DeliveryFailed, Commercial:
	}
	if e.Kind == Verdict || e.Kind == State || e.Kind == Operator || e.Kind == Commercial {
		e.Verdict = fiscal.Verdict(rapid.IntRange(1, 4).Draw(t, "verdict"))
		if rapid.Bool().Draw(t, "has messages") {
			e.Messages = []fiscal.Message{{Code: rapid.SampledFrom([]string{"135", "145", "176", "1209"}).Draw(t, "code"), Text: "x"}}
		}
		e.NumberFree = rapid.Bool().Draw(t, "free")
	}
	return e
}

// The order of arrival never matters, and what comes twice counts once.
func TestFoldIsAFunctionOfTheSet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		evidence := rapid.SliceOfN(rapid.Custom(drawEvidence), 0, 8).Draw(t, "evidence")
		want := Fold(evidence)
		shuffled := rapid.Permutation(evidence).Draw(t, "order")
		// What buyers say about the goods comes without the job: it may not count.
		fewer := slices.DeleteFunc(slices.Clone(evidence), func(e Item) bool { return e.Kind == Commercial })
		for _, other := range [][]Item{shuffled, slices.Concat(shuffled, shuffled), fewer} {
			if got := Fold(other); got.Status != want.Status || got.TrackID != want.TrackID || got.Freeze != want.Freeze || got.Alarm != want.Alarm || got.NumberFree != want.NumberFree {
				t.Fatalf("%+v in one order, %+v in another", want, got)
			}
		}
	})
}

// An acceptance counts only if it is of our bytes: without a verdict on a track id of
// ours, a look-up that shows our security code or an operator's decision, nothing is
// accepted.
func TestFoldAcceptsOnlyOurBytes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		items := rapid.SliceOfN(rapid.Custom(drawEvidence), 0, 8).Draw(t, "evidence")
		own := map[string]bool{}
		for _, i := range items {
			if i.TrackID != "" && !i.Found && (i.Kind == Track || i.Kind == Verdict) {
				own[i.TrackID] = true
			}
		}
		proven := slices.ContainsFunc(items, func(i Item) bool {
			if i.Verdict != fiscal.VerdictAccepted && i.Verdict != fiscal.VerdictConditional {
				return false
			}
			return i.Kind == Verdict && own[i.TrackID] || i.Kind == State && i.Ours || i.Kind == Operator
		})
		switch got := Fold(items).Status; got {
		case fiscal.Accepted, fiscal.AcceptedConditional, fiscal.Delivered:
			if !proven {
				t.Fatalf("%s without a proof: %+v", got, items)
			}
		default:
		}
	})
}

// Whatever is learnt, an acceptance stands, and nothing that may have been sent
// goes back to the queue.
func TestFoldNeverForgetsAnAcceptance(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		evidence := rapid.SliceOfN(rapid.Custom(drawEvidence), 1, 10).Draw(t, "evidence")
		status := fiscal.Queued
		for i := range evidence {
			next := Fold(evidence[:i+1]).Status
			accepted := status == fiscal.Accepted || status == fiscal.AcceptedConditional || status == fiscal.Delivered
			if accepted && next != fiscal.Accepted && next != fiscal.AcceptedConditional && next != fiscal.Delivered {
				t.Fatalf("%s became %s with %+v", status, next, evidence[i])
			}
			if next == fiscal.Queued && status != fiscal.Queued {
				t.Fatalf("%s went back to the queue", status)
			}
			status = next
		}
	})
}
