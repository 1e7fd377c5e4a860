package live_test

import (
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live/livetest"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// TestScenarios are what the product must pass on the simulator: one document
// each, a fault, and the statuses that it must go through.
func TestScenarios(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		kind    fiscal.Type
		net     int
		amb     string
		prepare func(*env)
		within  time.Duration
		story   string
		also    func(*testing.T, *env, store.Invoice)
	}{
		{name: "a 31 is delivered", story: "queued submitted accepted delivered"},
		{name: "a small 32 has no track id", kind: fiscal.Consumer, story: "queued accepted"},
		{name: "a large 32 goes whole", kind: fiscal.Consumer, net: 211_865, story: "queued submitted accepted"},
		{
			name: "conditional", prepare: func(w *env) { w.Rule(1, simulator.Reception, livetest.Verdict(4, true, "irregular")) },
			story: "queued submitted accepted_conditional delivered",
			also: func(t *testing.T, w *env, inv store.Invoice) {
				if got := w.Read(inv).Messages; len(got) != 2 || got[0] != "[4] Aceptado Condicional" || got[1] != "[176] irregular" {
					t.Errorf("messages %q", got)
				}
			},
		},
		{
			name: "rejected, the number is used", prepare: func(w *env) { w.Rule(1, simulator.Reception, livetest.Verdict(2, true, "no")) },
			story: "queued submitted rejected", also: wantNumber(store.NumberUsed),
		},
		{
			name: "rejected, the number is free", prepare: func(w *env) { w.Rule(1, simulator.Reception, livetest.Verdict(2, false, "no")) },
			story: "queued submitted rejected", also: wantNumber(store.NumberReusable),
		},
		{
			name: "the answer is lost, and the document is there", prepare: func(w *env) { w.Rule(1, simulator.Reception, simulator.Action{Fault: "F02"}) },
			story: "queued outcome_unknown accepted delivered", also: wantPosts(1),
		},
		{
			name: "the answer is lost, and the document is not there", prepare: func(w *env) { w.Rule(1, simulator.Reception, simulator.Action{Fault: "F02", Store: livetest.No()}) },
			story: "queued outcome_unknown submitted accepted delivered", also: wantPosts(2),
		},
		{
			name: "the answer to a summary is lost, and the summary is there", kind: fiscal.Consumer, prepare: func(w *env) { w.Rule(1, simulator.RFCE, simulator.Action{Fault: "F02"}) },
			story: "queued outcome_unknown accepted", also: wantPosts(1),
		},
		{
			name: "the answer to a summary is lost, and the summary is not there", kind: fiscal.Consumer, prepare: func(w *env) { w.Rule(1, simulator.RFCE, simulator.Action{Fault: "F02", Store: livetest.No()}) },
			story: "queued outcome_unknown accepted", also: wantPosts(2),
		},
		{
			name: "in process for 26 hours", within: 48 * time.Hour,
			prepare: func(w *env) {
				w.Must(w.Sim.Configure(func(c *simulator.Config) { c.ValidationDelay = simulator.Fixed(26 * time.Hour) }))
			},
			story: "queued submitted processing accepted delivered", also: wantPosts(1),
		},
		{
			name: "a gateway answers 400 with a page", prepare: func(w *env) { w.Rule(1, simulator.Reception, simulator.Action{Fault: "F07"}) },
			story: "queued outcome_unknown submitted accepted delivered", also: wantPosts(2),
		},
		{
			name: "a proxy answers 503, not stored", prepare: func(w *env) { w.Rule(1, simulator.Reception, simulator.Action{Fault: "F05"}) },
			story: "queued outcome_unknown submitted accepted delivered", also: wantPosts(2),
		},
		{
			name: "a token that is refused once", prepare: func(w *env) { w.Rule(1, simulator.Reception, simulator.Action{Fault: "F09"}) },
			story: "queued submitted accepted delivered",
		},
		{
			name: "too many requests", prepare: func(w *env) {
				w.Rule(1, simulator.Reception, simulator.Action{Fault: "F10", Delay: simulator.Duration(time.Minute)})
			},
			story: "queued submitted accepted delivered",
			also: func(t *testing.T, w *env, inv store.Invoice) {
				attempts, err := w.Store().Attempts(t.Context(), w.Scope, inv.DocumentID)
				if err != nil || len(attempts) != 2 || attempts[1].OpenedAt.Sub(attempts[0].ClosedAt) < time.Minute {
					t.Errorf("it was not waited as long as the authority asked: %+v, %v", attempts, err)
				}
			},
		},
		{
			name: "the buyer is down for two days", within: 4 * 24 * time.Hour,
			prepare: func(w *env) {
				_, err := w.Sim.AddRule(simulator.Rule{Match: simulator.Match{Service: simulator.PeerReception, To: w.Now().Add(48 * time.Hour)}, Action: simulator.Action{Fault: "peer", Variant: "500"}})
				w.Must(err)
			},
			story: "queued submitted accepted delivered",
		},
		{
			name: "the buyer says that the document is not for it", prepare: func(w *env) { w.Rule(0, simulator.PeerReception, simulator.Action{Fault: "peer", Variant: "arecf-4"}) },
			story: "queued submitted accepted",
		},
		{
			name: "the verdict flips", prepare: func(w *env) { w.Rule(0, simulator.Result, simulator.Action{Fault: "F16"}) },
			story: "queued submitted accepted delivered",
		},
		{
			name: "no look-up exists", amb: "certecf", within: 48 * time.Hour,
			prepare: func(w *env) { w.Rule(1, simulator.Reception, simulator.Action{Fault: "F02"}) },
			story:   "queued outcome_unknown submitted outcome_unknown",
			also:    wantPosts(2), // once more where no look-up exists, and not a third time
		},
		{
			name: "no look-up exists, and an earlier attempt did not arrive", amb: "certecf", within: 48 * time.Hour,
			prepare: func(w *env) {
				w.Rule(1, simulator.Reception, simulator.Action{Fault: "F10", Delay: simulator.Duration(time.Minute)})
				w.Rule(1, simulator.Reception, simulator.Action{Fault: "F02"})
			},
			story: "queued outcome_unknown submitted outcome_unknown",
			also:  wantPosts(3),
		},
		{
			name: "answers about others are no evidence", prepare: func(w *env) {
				w.Rule(1, simulator.Result, simulator.Action{Fault: "F15", Variant: "other-encf"})
				w.Rule(1, simulator.Result, simulator.Action{Fault: "F15", Variant: "contradiction"})
				w.Rule(1, simulator.Result, simulator.Action{Fault: "F15", Variant: "unknown-code"})
			},
			story: "queued submitted accepted delivered",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.kind == "" {
				tt.kind = fiscal.FiscalCredit
			}
			if tt.net == 0 {
				tt.net = 1000
			}
			if tt.within == 0 {
				tt.within = 12 * time.Hour
			}
			storetest.EachAddress(t, func(t *testing.T, address string) {
				w := newEnv(t, address, envOptions{Amb: tt.amb, Receiver: true})
				if tt.prepare != nil {
					tt.prepare(w)
				}
				inv := w.Create(tt.kind, tt.net)
				w.Drive(tt.within)
				w.Want(inv, tt.story)
				if tt.also != nil {
					tt.also(t, w, inv)
				}
				w.Clean()
			})
		})
	}
}

func wantNumber(state store.NumberState) func(*testing.T, *env, store.Invoice) {
	return func(t *testing.T, w *env, inv store.Invoice) {
		t.Helper()
		issued, err := w.Store().IssuedDocument(t.Context(), w.Scope, inv.DocumentID)
		if err != nil || issued.State != state {
			t.Errorf("the number is %s, want %s (%v)", issued.State, state, err)
		}
	}
}

func wantPosts(n int) func(*testing.T, *env, store.Invoice) {
	return func(t *testing.T, w *env, inv store.Invoice) {
		t.Helper()
		attempts, err := w.Store().Attempts(t.Context(), w.Scope, inv.DocumentID)
		if err != nil || len(attempts) != n {
			t.Errorf("sent %d times, want %d (%v)", len(attempts), n, err)
		}
	}
}
