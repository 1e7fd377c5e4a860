package live

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func (w *env) resolver() *Resolver { return NewResolver(w.store(), w.clock.Now, w.options.Log) }

func TestResendNeedsALookUpThatShowsNothing(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		w.rule(1, simulator.Reception, simulator.Action{Fault: "F02", Store: no()}) // it never arrives
		w.rule(1, simulator.TrackIDs, simulator.Action{Fault: "F05"})               // the first question gets no answer
		w.rule(1, simulator.StateLookup, simulator.Action{Fault: "F05"})
		inv := w.create(fiscal.FiscalCredit, 1000)
		w.drive(time.Second)
		w.want(inv, "queued outcome_unknown")
		if _, err := w.resolver().Resend(t.Context(), w.scope, inv.DocumentID, "the portal shows nothing"); !errors.Is(err, ErrUndecidable) {
			t.Fatalf("sent again before any look-up: %v", err)
		}
		w.drive(40 * time.Second) // one look-up: nothing there
		if _, err := w.resolver().Resend(t.Context(), w.scope, inv.DocumentID, " "); !errors.Is(err, ErrUndecidable) {
			t.Errorf("sent again without a reason: %v", err)
		}
		_, err := w.resolver().Resend(t.Context(), w.scope, inv.DocumentID, "the portal shows nothing")
		w.must(err)
		w.drive(time.Hour)
		w.want(inv, "queued outcome_unknown submitted accepted")
		wantPosts(2)(t, w, inv)
		known, err := readEvidence(t.Context(), w.store(), w.scope, inv.DocumentID)
		w.must(err)
		if !slices.ContainsFunc(known, func(i evidence.Item) bool {
			return i.Kind == evidence.Note && i.Cause().String() == "sent again: the portal shows nothing"
		}) {
			t.Errorf("the reason is not recorded: %+v", known)
		}
		if _, err := w.resolver().Resend(t.Context(), w.scope, inv.DocumentID, "again"); !errors.Is(err, ErrUndecidable) {
			t.Errorf("an accepted document was sent again: %v", err)
		}
		w.clean()
	})
}

// A document whose job is gone, at each stage, goes on after a requeue.
func TestRequeueGoesOnWithTheStageOfTheEvidence(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		forget := func() {
			if _, err := storetest.OpenSQL(t, address).ExecContext(t.Context(), `DELETE FROM jobs`); err != nil {
				t.Fatal(err)
			}
		}
		requeue := func(inv store.Invoice) {
			t.Helper()
			_, err := w.resolver().Requeue(t.Context(), w.scope, inv.DocumentID, "the job is gone")
			w.must(err)
		}
		fresh := w.create(fiscal.FiscalCredit, 1000)
		forget() // before it has a number
		requeue(fresh)
		w.rule(1, simulator.Reception, simulator.Action{Fault: "F02"})
		lost := w.create(fiscal.FiscalCredit, 1000)
		w.drive(0)
		forget() // while its outcome is unknown, and the other's is open
		requeue(fresh)
		requeue(lost)
		w.drive(time.Hour)
		for _, inv := range []store.Invoice{fresh, lost} {
			if got := w.read(inv).Status; got != fiscal.Accepted {
				t.Errorf("%s is %s: %s", inv.ExternalID, got, w.story(inv))
			}
		}
		done := w.create(fiscal.Consumer, 1000) // nothing is delivered to its buyer
		w.drive(time.Hour)
		if _, err := w.resolver().Requeue(t.Context(), w.scope, done.DocumentID, "no need"); !errors.Is(err, ErrUndecidable) {
			t.Errorf("a document that is done was requeued: %v", err)
		}
		w.clean()
	})
}

// A worker numbers the document while an operator requeues it. The document goes on from
// where it is then, and is not numbered again.
func TestRequeueThatRacesWithNumbering(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		kind  fiscal.Type
		late  bool // the document is sent before the requeue, too
		story string
	}{
		"a 31 is numbered":      {fiscal.FiscalCredit, false, "queued submitted accepted"},
		"a 31 is sent":          {fiscal.FiscalCredit, true, "queued submitted accepted"},
		"a summary is numbered": {fiscal.Consumer, false, "queued accepted"},
		"a summary is sent":     {fiscal.Consumer, true, "queued accepted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.EachAddress(t, func(t *testing.T, address string) {
				w := newEnv(t, address, envOptions{})
				if !tt.late {
					for _, service := range []simulator.Service{simulator.Reception, simulator.RFCE} {
						w.rule(1, service, simulator.Action{Fault: "F10", Delay: simulator.Duration(time.Second)})
					}
				}
				inv := w.create(tt.kind, 1000)
				raced := false
				s := storetest.OpenPoints(t, address, w.now, func(point string) error {
					if raced || !strings.HasPrefix(point, "before ") {
						return nil
					}
					raced = true
					jobs, err := w.Claim(t.Context(), maxClaim)
					if err != nil || len(jobs) != 1 {
						t.Errorf("claimed %v, %v", jobs, err)
					}
					w.RunJob(t.Context(), jobs[0])
					return nil
				})
				_, err := NewResolver(s, w.clock.Now, w.options.Log).Requeue(t.Context(), w.scope, inv.DocumentID, "it does not go on")
				if err != nil && !errors.Is(err, ErrUndecidable) {
					t.Fatal(err)
				}
				if got := w.read(inv); !raced || got.ENCF == "" || (got.Status == fiscal.Queued) == tt.late {
					t.Fatalf("raced: %v, %+v", raced, got)
				}
				w.drive(time.Hour)
				w.want(inv, tt.story)
				if waiting, err := w.store().WaitingDocuments(t.Context(), w.scope); err != nil || len(waiting) > 0 {
					t.Errorf("still waiting: %+v, %v", waiting, err)
				}
				w.clean()
			})
		})
	}
}
