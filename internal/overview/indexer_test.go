package overview

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// counted returns the counts of a scope by the start of the span and the status.
func (e *env) counted(scope store.Scope, span store.Span) map[string]int64 {
	e.t.Helper()
	counts, err := e.DocumentCounts(e.t.Context(), scope, span, time.UnixMicro(0))
	if err != nil {
		e.t.Fatal(err)
	}
	all := map[string]int64{}
	for _, c := range counts {
		all[c.Start.Format(time.RFC3339)+" "+string(c.Status)] = c.Documents
	}
	return all
}

// Whatever changes between the steps of the indexer, and whichever node makes them, the
// counts are those of the documents.
func TestCountsFollowEveryChangeOfStatus(t *testing.T) {
	eachEngine(t, fiscal.Production, func(t *testing.T, e *env) {
		random := rand.New(rand.NewPCG(1, 2))
		nodes := []*Indexer{e.indexer, e.newIndexer()}
		var all []store.Invoice
		next := map[fiscal.Status][]fiscal.Status{
			fiscal.Queued:    {fiscal.Submitted, fiscal.ValidationFailed, fiscal.OutcomeUnknown},
			fiscal.Submitted: {fiscal.Processing, fiscal.Accepted, fiscal.Rejected}, fiscal.Processing: {fiscal.Accepted, fiscal.OutcomeUnknown},
			fiscal.OutcomeUnknown: {fiscal.Rejected, fiscal.Accepted}, fiscal.Rejected: {fiscal.Accepted}, fiscal.Accepted: {fiscal.Delivered},
		}
		for i := range 150 {
			switch {
			case i%3 == 0:
				scope := []store.Scope{e.a, e.b}[random.IntN(2)]
				created := e.clock.Now().Add(-time.Duration(random.IntN(50)) * time.Hour)
				all = append(all, e.invoice(scope, fmt.Sprint("C-", i), "x", "", "1.00", func(inv *store.Invoice) {
					inv.CreatedAt, inv.UpdatedAt = created, created
				}))
			case i%10 == 0:
				if _, err := nodes[random.IntN(2)].Step(t.Context()); err != nil && !errors.Is(err, store.ErrIndexerReplaced) {
					t.Fatal(err)
				}
			case i%50 == 1:
				e.clock.Advance(leaseTime + time.Second) // the other node may take over
			default:
				n := random.IntN(len(all))
				if to := next[all[n].Status]; len(to) > 0 {
					all[n] = e.become(all[n], to[random.IntN(len(to))], "")
				}
			}
		}
		e.clock.Advance(leaseTime + time.Second)
		e.index()
		for _, scope := range []store.Scope{e.a, e.b, {Environment: fiscal.Production}} {
			for _, span := range []store.Span{store.SpanHour, store.SpanDay, store.SpanAll} {
				want := map[string]int64{}
				for _, inv := range all {
					if scope.TaxpayerID == "" || scope == inv.Scope {
						want[span.Start(inv.CreatedAt).Format(time.RFC3339)+" "+string(inv.Status)]++
					}
				}
				if diff := cmp.Diff(want, e.counted(scope, span)); diff != "" {
					t.Errorf("%s of %q (-want +got):\n%s", span, scope.TaxpayerID, diff)
				}
			}
		}
		// A verdict is counted once, however often the status changes afterwards.
		var verdicts int64
		for _, inv := range all {
			if slices.Contains([]fiscal.Status{fiscal.Accepted, fiscal.Rejected, fiscal.ValidationFailed, fiscal.Delivered}, inv.Status) {
				verdicts++
			}
		}
		times, err := e.VerdictTimes(t.Context(), store.Scope{Environment: fiscal.Production}, store.SpanDay, time.UnixMicro(0))
		if err != nil || times.Documents() != verdicts {
			t.Errorf("%d verdicts are counted, want %d; %v", times.Documents(), verdicts, err)
		}
	})
}

// Documents that existed before the indexer, and documents whose transaction ended late,
// are indexed too.
func TestTheIndexHasOldAndLateDocuments(t *testing.T) {
	eachEngine(t, fiscal.Sandbox, func(t *testing.T, e *env) {
		now := e.clock.Now()
		withID := func(at time.Time) func(*store.Invoice) {
			return func(inv *store.Invoice) {
				id := store.FirstIDAt(at)
				inv.DocumentID = id[:len(id)-4] + inv.DocumentID[len(inv.DocumentID)-4:]
			}
		}
		for i := range 3 * indexBatch {
			e.invoice(e.a, fmt.Sprint("old-", i), "x", "", "10.00", withID(now.Add(-time.Duration(i)*24*time.Hour)))
		}
		e.invoice(e.a, "new", "x", "", "10.00", nil)
		e.index()
		if got := e.found(e.everything(), Query{Text: "10.00", Limit: 400}); len(got) != 3*indexBatch+1 {
			t.Errorf("%d documents are found", len(got))
		}
		e.invoice(e.a, "late", "x", "", "20.00", withID(now.Add(-time.Minute)))
		e.index()
		if got := e.found(e.everything(), Query{Text: "20.00"}); len(got) != 0 {
			t.Errorf("found %q: the test shows nothing", got)
		}
		e.clock.Advance(2 * behind)
		e.index()
		if got := e.found(e.everything(), Query{Text: "20.00"}); len(got) != 1 {
			t.Errorf("the late document is not found")
		}
		state, err := e.reporter.indexState(t.Context(), e.clock.Now())
		if err != nil || !state.Started || !state.Complete {
			t.Errorf("state %+v, %v", state, err)
		}
	})
}

// One node at a time indexes, and a node that lost its lease changes nothing.
func TestOneNodeIndexes(t *testing.T) {
	eachEngine(t, fiscal.Sandbox, func(t *testing.T, e *env) {
		e.invoice(e.a, "1", "x", "", "10.00", nil)
		other := e.newIndexer()
		e.index()
		if _, err := other.Step(t.Context()); !errors.Is(err, store.ErrIndexerReplaced) {
			t.Errorf("a second node: %v", err)
		}
		e.clock.Advance(leaseTime + time.Second)
		if _, err := other.Step(t.Context()); err != nil {
			t.Errorf("after the end of the lease: %v", err)
		}
		err := e.Index(t.Context(), e.indexer.holder, store.WalkCreated, "z", nil, e.clock.Now())
		if !errors.Is(err, store.ErrIndexerReplaced) {
			t.Errorf("a node without the lease: %v", err)
		}
		e.invoice(e.a, "2", "x", "", "10.00", nil)
		e.indexWith(other)
		if got := e.found(e.everything(), Query{Text: "10"}); len(got) != 2 {
			t.Errorf("found %q", got)
		}
	})
}

func TestRunIndexesUntilItsContextEnds(t *testing.T) {
	eachEngine(t, fiscal.Sandbox, func(t *testing.T, e *env) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			e.indexer.Run(ctx)
		}()
		e.invoice(e.a, "1", "x", "", "10.00", nil)
		deadline := time.Now().Add(20 * time.Second)
		for len(e.found(e.everything(), Query{Text: "10"})) == 0 {
			if time.Now().After(deadline) {
				t.Fatal("the document is not indexed")
			}
			time.Sleep(5 * time.Millisecond)
		}
		cancel()
		<-done
	})
}
