package live_test

import (
	"cmp"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live"
	"github.com/fiscalhub/fiscalhub/internal/live/livetest"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// resolve decides on a document as another process would: without the plan.
func (w *env) resolve(inv store.Invoice, verdict fiscal.Verdict, note string) (store.Invoice, error) {
	r := live.NewResolver(w.Store(), w.Clock.Now, slog.New(slog.NewTextHandler(io.Discard, nil)))
	return r.Resolve(w.T.Context(), w.Scope, live.Decision{DocumentID: inv.DocumentID, Verdict: verdict, Note: note})
}

func TestResolve(t *testing.T) {
	t.Parallel()
	lost := func(w *env) { w.Rule(1, simulator.Reception, simulator.Action{Fault: "F02", Store: livetest.No()}) }
	kept := func(w *env) {
		w.Rule(1, simulator.Reception, simulator.Action{Fault: "F02"})
		w.Rule(1, simulator.RFCE, simulator.Action{Fault: "F02"})
	}
	slow := func(w *env) {
		w.Must(w.Sim.Configure(func(c *simulator.Config) { c.ValidationDelay = simulator.Fixed(26 * time.Hour) }))
	}
	settle := func(w *env) {
		for _, d := range w.Sim.Documents(simulator.Filter{}) {
			w.Must(w.Sim.ForceVerdict(d.ID, simulator.Verdict{Code: 1, Used: true}))
		}
	}
	rejected := func(w *env) { w.Rule(1, simulator.Reception, livetest.Verdict(2, true, "no")) }
	const accept, conditional, reject = fiscal.VerdictAccepted, fiscal.VerdictConditional, fiscal.VerdictRejected
	for _, tt := range []struct {
		name    string
		kind    fiscal.Type
		prepare func(*env)
		idle    bool          // the maxClaim have not begun
		within  time.Duration // how long they have worked
		then    func(*env)    // what the operator sees at the authority
		verdict fiscal.Verdict
		note    string
		refused string
		story   string // after an hour more
	}{
		{name: "an unknown 31 is accepted and goes to its buyer", prepare: kept, verdict: accept, story: "queued outcome_unknown accepted delivered"},
		{name: "an unknown 31 is rejected", prepare: lost, verdict: reject, story: "queued outcome_unknown rejected"},
		{name: "an unknown summary is accepted", kind: fiscal.Consumer, prepare: kept, verdict: accept, story: "queued outcome_unknown accepted"},
		{name: "a submitted one is rejected", verdict: reject, story: "queued submitted rejected"},
		{name: "a submitted one is accepted", verdict: accept, story: "queued submitted accepted delivered"},
		{name: "one in process is accepted", prepare: slow, within: time.Minute, then: settle, verdict: accept, story: "queued submitted processing accepted delivered"},
		{name: "a rejected one turns out accepted", prepare: rejected, within: time.Hour, then: settle, verdict: accept, story: "queued submitted rejected accepted delivered"},
		{name: "a rejected one is not rejected again", prepare: rejected, within: time.Hour, verdict: reject, refused: "rejected already", story: "queued submitted rejected"},
		{name: "an accepted one stands", within: time.Hour, verdict: reject, refused: "delivered, which is final", story: "queued submitted accepted delivered"},
		{name: "one without a number was not sent", idle: true, verdict: accept, refused: "never sent", story: "queued submitted accepted delivered"},
		{name: "without evidence", prepare: rejected, within: time.Hour, verdict: accept, note: " \n", refused: "say what the decision is based on", story: "queued submitted rejected"},
		{name: "with too much", prepare: rejected, within: time.Hour, verdict: accept, note: strings.Repeat("ñ", 1001), refused: "at most 1000", story: "queued submitted rejected"},
		{name: "an unknown 31 is accepted conditionally", prepare: kept, verdict: conditional, story: "queued outcome_unknown accepted_conditional delivered"},
		{name: "an unknown summary is accepted conditionally", kind: fiscal.Consumer, prepare: kept, verdict: conditional, story: "queued outcome_unknown accepted_conditional"},
		{name: "a rejected one turns out conditional", prepare: rejected, within: time.Hour, then: settle, verdict: conditional, story: "queued submitted rejected accepted_conditional delivered"},
		{name: "an accepted one is not made conditional", within: time.Hour, verdict: conditional, refused: "delivered, which is final", story: "queued submitted accepted delivered"},
		{name: "nor in between", prepare: rejected, within: time.Hour, verdict: fiscal.VerdictInProcess, refused: "accepted, accepted conditionally or rejected", story: "queued submitted rejected"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			kind, note := cmp.Or(tt.kind, fiscal.FiscalCredit), cmp.Or(tt.note, "oficina virtual,\n 14 de noviembre")
			storetest.EachAddress(t, func(t *testing.T, address string) {
				w := newEnv(t, address, envOptions{Receiver: true})
				if tt.prepare != nil {
					tt.prepare(w)
				}
				inv := w.Create(kind, 1000)
				if !tt.idle {
					w.Drive(tt.within)
				}
				if tt.then != nil {
					tt.then(w)
				}
				before := w.Read(inv)
				got, err := w.resolve(inv, tt.verdict, note)
				if tt.refused != "" {
					if !errors.Is(err, live.ErrUndecidable) || !strings.Contains(err.Error(), tt.refused) {
						t.Errorf("refused with %v, want %q", err, tt.refused)
					}
				} else {
					w.Must(err)
					wantDecision(t, w, before, got)
				}
				w.Drive(time.Hour)
				w.Want(inv, tt.story)
				w.Clean()
			})
		})
	}
}

// wantDecision asserts that a decision is there with all that belongs to it.
func wantDecision(t *testing.T, w *env, before, after store.Invoice) {
	t.Helper()
	if after.Revision != before.Revision+1 || after.TrackID != before.TrackID {
		t.Errorf("moved from %+v to %+v", before, after)
	}
	events, err := w.Store().History(t.Context(), w.Scope, after.ID)
	w.Must(err)
	if got := events[len(events)-1].Cause.String(); got != "decided by an operator: oficina virtual,  14 de noviembre" {
		t.Errorf("the history says %q", got)
	}
	known, err := livetest.ReadEvidence(t.Context(), w.Store(), w.Scope, after.DocumentID)
	w.Must(err)
	if o := evidence.Fold(known); o.Status != after.Status || o.Verdict == nil || o.Verdict.Kind != evidence.Operator {
		t.Errorf("the document is %s and the evidence comes to %+v", after.Status, o)
	}
	if first := append(after.Messages, "")[0]; (first == fiscal.ConditionalMessage) != (after.Status == fiscal.AcceptedConditional) {
		t.Errorf("%s with the messages %q", after.Status, after.Messages)
	}
	issued, err := w.Store().IssuedDocument(t.Context(), w.Scope, after.DocumentID)
	if err != nil || issued.State != store.NumberUsed {
		t.Errorf("the number is %s, %v", issued.State, err)
	}
	job, err := w.Store().JobOf(t.Context(), w.Scope, after.DocumentID)
	if after.Status != fiscal.Rejected && after.Type == fiscal.FiscalCredit {
		if err != nil || job.Stage != live.StageDeliver || job.Lease != "" || job.RunAt.After(w.Now()) {
			t.Errorf("the job is %+v, %v", job, err)
		}
	} else if !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a job is left: %+v, %v", job, err)
	}
}

// An operator decides while a worker is asking. The worker's answer comes late,
// and counts all the same: a valid document is not hidden.
func TestResolveWhileAWorkerHoldsTheJob(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{Receiver: true})
		w.Rule(1, simulator.Reception, simulator.Action{Fault: "F02"})
		inv := w.Create(fiscal.FiscalCredit, 1000)
		w.Drive(0)
		w.Clock.Advance(10 * time.Second)
		jobs, err := w.Claim(t.Context(), livetest.MaxClaim)
		w.Must(err)
		if len(jobs) != 1 || jobs[0].Stage != live.StageReconcile {
			t.Fatalf("jobs %+v", jobs)
		}
		_, err = w.resolve(inv, fiscal.VerdictRejected, "nobody knows it")
		w.Must(err)
		w.RunJob(t.Context(), jobs[0])
		w.Want(inv, "queued outcome_unknown rejected accepted")
		known, err := livetest.ReadEvidence(t.Context(), w.Store(), w.Scope, inv.DocumentID)
		w.Must(err)
		if !slices.ContainsFunc(known, func(e evidence.Item) bool { return e.Kind == evidence.Verdict && e.Verdict == fiscal.VerdictAccepted }) {
			t.Errorf("the worker's answer is lost: %+v", known)
		}
		w.Drive(time.Hour)
		w.Want(inv, "queued outcome_unknown rejected accepted delivered")
		waiting, err := w.Store().WaitingDocuments(t.Context(), store.Scope{})
		if err != nil || len(waiting) != 0 {
			t.Errorf("still waiting: %+v, %v", waiting, err)
		}
		w.Clean()
	})
}

// What the authority has accepted, by an answer that came late, cannot be
// rejected.
func TestResolveCannotContradictTheAuthority(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		w.Rule(1, simulator.Reception, simulator.Action{Fault: "F02"})
		inv := w.Create(fiscal.FiscalCredit, 1000)
		w.Drive(0)
		late, err := pipeline.Finding{Item: evidence.Item{Kind: evidence.Verdict, TrackID: "T", Verdict: fiscal.VerdictAccepted, At: w.Now()}}.Row(w.Scope, inv.DocumentID)
		w.Must(err)
		w.Must(w.Store().Update(t.Context(), func(tx *store.Tx) error {
			return tx.Do(t.Context(), new(store.Batch).AddEvidence(late))
		}))
		if _, err := w.resolve(inv, fiscal.VerdictRejected, "no"); !errors.Is(err, live.ErrUndecidable) || !strings.Contains(err.Error(), "has accepted the document") {
			t.Errorf("rejected: %v", err)
		}
		known, err := livetest.ReadEvidence(t.Context(), w.Store(), w.Scope, inv.DocumentID)
		if err != nil || slices.ContainsFunc(known, func(e evidence.Item) bool { return e.Kind == evidence.Operator }) {
			t.Errorf("%+v, %v", known, err)
		}
		w.Want(inv, "queued outcome_unknown")
	})
}

// Operators and workers commit at the same moment: whichever comes first, each
// document is accepted once and goes to its buyer, and nothing is left over.
func TestConcurrentResolves(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{Receiver: true})
		w.Rule(8, simulator.Reception, simulator.Action{Fault: "F02"})
		made := make([]store.Invoice, 8)
		for i := range made {
			made[i] = w.Create(fiscal.FiscalCredit, 1000)
		}
		w.Drive(0)
		w.Clock.Advance(10 * time.Second)
		jobs, err := w.Claim(t.Context(), livetest.MaxClaim)
		w.Must(err)
		var busy sync.WaitGroup
		for _, job := range jobs {
			busy.Go(func() { w.RunJob(t.Context(), job) })
		}
		for _, inv := range made {
			busy.Go(func() {
				if _, err := w.resolve(inv, fiscal.VerdictAccepted, "seen"); err != nil && !errors.Is(err, live.ErrUndecidable) {
					t.Error(err)
				}
			})
		}
		busy.Wait()
		w.Drive(time.Hour)
		for _, inv := range made {
			w.Want(inv, "queued outcome_unknown accepted delivered")
		}
		if waiting, err := w.Store().WaitingDocuments(t.Context(), store.Scope{}); err != nil || len(waiting) != 0 {
			t.Errorf("still waiting: %+v, %v", waiting, err)
		}
		w.Clean()
	})
}

// A buyer's response changes the document while an operator decides. The decision is taken
// again on the document as it is then.
func TestADecisionIsRepeatedWhenTheDocumentChanges(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		inv := w.Create(fiscal.Consumer, 100)
		w.Drive(time.Minute)
		runs := 0
		after, err := w.Resolver().Change(t.Context(), "document.resolve", w.Scope, inv.DocumentID, "portal", func(tx *store.Tx) (store.Invoice, error) {
			if runs++; runs == 1 {
				stale := w.Read(inv)
				stale.Revision--
				return stale, tx.Do(t.Context(), new(store.Batch).UpdateInvoice(stale, stale))
			}
			return tx.InvoiceOfDocument(t.Context(), w.Scope, inv.DocumentID)
		})
		if err != nil || runs != 2 || after.ID != inv.ID {
			t.Errorf("%d runs: %+v, %v", runs, after, err)
		}
	})
}
