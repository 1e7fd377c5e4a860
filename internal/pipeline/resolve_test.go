package pipeline

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

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// resolve decides on a document as another process would: without the plan.
func (w *town) resolve(inv store.Invoice, verdict fiscal.Verdict, note string) (store.Invoice, error) {
	r := Resolver{Store: w.Store, Now: w.clock.now, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	return r.Resolve(w.t.Context(), w.scope, Decision{DocumentID: inv.DocumentID, Verdict: verdict, Note: note})
}

func TestResolve(t *testing.T) {
	t.Parallel()
	lost := func(w *town) { w.rule(1, simulator.Reception, simulator.Action{Fault: "F02", Store: no()}) }
	kept := func(w *town) {
		w.rule(1, simulator.Reception, simulator.Action{Fault: "F02"})
		w.rule(1, simulator.RFCE, simulator.Action{Fault: "F02"})
	}
	slow := func(w *town) {
		w.must(w.sim.Configure(func(c *simulator.Config) { c.ValidationDelay = simulator.Fixed(26 * time.Hour) }))
	}
	settle := func(w *town) {
		for _, d := range w.sim.Documents(simulator.Filter{}) {
			w.must(w.sim.ForceVerdict(d.ID, simulator.Verdict{Code: 1, Used: true}))
		}
	}
	rejected := func(w *town) { w.rule(1, simulator.Reception, forced(2, true, "no")) }
	const accept, reject = fiscal.VerdictAccepted, fiscal.VerdictRejected
	for _, tt := range []struct {
		name    string
		kind    fiscal.Type
		prepare func(*town)
		idle    bool          // the workers have not begun
		within  time.Duration // how long they have worked
		then    func(*town)   // what the operator sees at the authority
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
		{name: "an accepted one stands", within: time.Hour, verdict: reject, refused: "delivered, which stands", story: "queued submitted accepted delivered"},
		{name: "one without a number was not sent", idle: true, verdict: accept, refused: "never sent", story: "queued submitted accepted delivered"},
		{name: "without evidence", prepare: rejected, within: time.Hour, verdict: accept, note: " \n", refused: "must be told", story: "queued submitted rejected"},
		{name: "with too much", prepare: rejected, within: time.Hour, verdict: accept, note: strings.Repeat("ñ", 1001), refused: "at most 1000", story: "queued submitted rejected"},
		{name: "nor in between", prepare: rejected, within: time.Hour, verdict: fiscal.VerdictConditional, refused: "accepted or rejected", story: "queued submitted rejected"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			kind, note := cmp.Or(tt.kind, fiscal.FiscalCredit), cmp.Or(tt.note, "oficina virtual,\n 14 de noviembre")
			storetest.EachAddress(t, func(t *testing.T, address string) {
				w := newTown(t, address, townOptions{receiver: true})
				if tt.prepare != nil {
					tt.prepare(w)
				}
				inv := w.create(kind, 1000)
				if !tt.idle {
					w.drive(tt.within)
				}
				if tt.then != nil {
					tt.then(w)
				}
				before := w.read(inv)
				got, err := w.resolve(inv, tt.verdict, note)
				if tt.refused != "" {
					if !errors.Is(err, ErrUndecidable) || !strings.Contains(err.Error(), tt.refused) {
						t.Errorf("refused with %v, want %q", err, tt.refused)
					}
				} else {
					w.must(err)
					wantDecision(t, w, before, got)
				}
				w.drive(time.Hour)
				w.want(inv, tt.story)
				w.clean()
			})
		})
	}
}

// wantDecision asserts that a decision is there with all that belongs to it.
func wantDecision(t *testing.T, w *town, before, after store.Invoice) {
	t.Helper()
	if after.Sequence != before.Sequence+1 || after.TrackID != before.TrackID {
		t.Errorf("moved from %+v to %+v", before, after)
	}
	events, err := w.Store.History(t.Context(), w.scope, after.ID)
	w.must(err)
	if got := events[len(events)-1].Detail; got != "decided by an operator: oficina virtual,  14 de noviembre" {
		t.Errorf("the history says %q", got)
	}
	evidence, err := ReadEvidence(t.Context(), w.Store, w.scope, after.DocumentID)
	w.must(err)
	if o := Fold(evidence); o.Status != after.Status || o.Verdict == nil || o.Verdict.Kind != KindOperator {
		t.Errorf("the document is %s and the evidence comes to %+v", after.Status, o)
	}
	issued, err := w.Store.IssuedDocument(t.Context(), w.scope, after.DocumentID)
	if err != nil || issued.State != store.NumberUsed {
		t.Errorf("the number is %s, %v", issued.State, err)
	}
	job, err := w.Store.JobOf(t.Context(), w.scope, after.DocumentID)
	if after.Status == fiscal.Accepted && after.Type == fiscal.FiscalCredit {
		if err != nil || job.Stage != stageDeliver || job.Lease != "" || job.RunAt.After(w.Now()) {
			t.Errorf("the job is %+v, %v", job, err)
		}
	} else if !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a job is left: %+v, %v", job, err)
	}
}

// An operator decides while a worker is asking. The worker's answer comes late,
// and counts all the same: a valid document is not hidden.
func TestResolveBesideAWorker(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newTown(t, address, townOptions{receiver: true})
		w.rule(1, simulator.Reception, simulator.Action{Fault: "F02"})
		inv := w.create(fiscal.FiscalCredit, 1000)
		w.drive(0)
		w.clock.advance(10 * time.Second)
		jobs, err := w.claim(t.Context(), workers)
		w.must(err)
		if len(jobs) != 1 || jobs[0].Stage != stageReconcile {
			t.Fatalf("jobs %+v", jobs)
		}
		_, err = w.resolve(inv, fiscal.VerdictRejected, "nobody knows it")
		w.must(err)
		w.run(t.Context(), jobs[0])
		w.want(inv, "queued outcome_unknown rejected accepted")
		evidence, err := ReadEvidence(t.Context(), w.Store, w.scope, inv.DocumentID)
		w.must(err)
		if !slices.ContainsFunc(evidence, func(e Evidence) bool { return e.Kind == KindVerdict && e.Verdict == fiscal.VerdictAccepted }) {
			t.Errorf("the worker's answer is lost: %+v", evidence)
		}
		w.drive(time.Hour)
		w.want(inv, "queued outcome_unknown rejected accepted delivered")
		waiting, err := w.Store.Waiting(t.Context(), store.Scope{})
		if err != nil || len(waiting) != 0 {
			t.Errorf("still waiting: %+v, %v", waiting, err)
		}
		w.clean()
	})
}

// What the authority has accepted, by an answer that came late, cannot be
// rejected.
func TestResolveAgainstTheAuthority(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newTown(t, address, townOptions{})
		w.rule(1, simulator.Reception, simulator.Action{Fault: "F02"})
		inv := w.create(fiscal.FiscalCredit, 1000)
		w.drive(0)
		late, err := Evidence{Kind: KindVerdict, TrackID: "T", Verdict: fiscal.VerdictAccepted, At: w.Now()}.record(w.scope, inv.DocumentID, nil)
		w.must(err)
		w.must(w.Store.Update(t.Context(), func(tx *store.Tx) error {
			return tx.Do(t.Context(), new(store.Batch).AddEvidence(late))
		}))
		if _, err := w.resolve(inv, fiscal.VerdictRejected, "no"); !errors.Is(err, ErrUndecidable) || !strings.Contains(err.Error(), "has accepted it") {
			t.Errorf("rejected: %v", err)
		}
		evidence, err := ReadEvidence(t.Context(), w.Store, w.scope, inv.DocumentID)
		if err != nil || slices.ContainsFunc(evidence, func(e Evidence) bool { return e.Kind == KindOperator }) {
			t.Errorf("%+v, %v", evidence, err)
		}
		w.want(inv, "queued outcome_unknown")
	})
}

// Operators and workers commit at the same moment: whoever comes first, each
// document is accepted once and goes to its buyer, and nothing is left over.
func TestResolveRaces(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newTown(t, address, townOptions{receiver: true})
		w.rule(8, simulator.Reception, simulator.Action{Fault: "F02"})
		made := make([]store.Invoice, 8)
		for i := range made {
			made[i] = w.create(fiscal.FiscalCredit, 1000)
		}
		w.drive(0)
		w.clock.advance(10 * time.Second)
		jobs, err := w.claim(t.Context(), workers)
		w.must(err)
		var busy sync.WaitGroup
		for _, job := range jobs {
			busy.Go(func() { w.run(t.Context(), job) })
		}
		for _, inv := range made {
			busy.Go(func() {
				if _, err := w.resolve(inv, fiscal.VerdictAccepted, "seen"); err != nil && !errors.Is(err, ErrUndecidable) {
					t.Error(err)
				}
			})
		}
		busy.Wait()
		w.drive(time.Hour)
		for _, inv := range made {
			w.want(inv, "queued outcome_unknown accepted delivered")
		}
		if waiting, err := w.Store.Waiting(t.Context(), store.Scope{}); err != nil || len(waiting) != 0 {
			t.Errorf("still waiting: %+v, %v", waiting, err)
		}
		w.clean()
	})
}
