package live_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live"
	"github.com/fiscalhub/fiscalhub/internal/live/livetest"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func TestResendNeedsALookUpThatShowsNothing(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		w.Rule(1, simulator.Reception, simulator.Action{Fault: "F02", Store: livetest.No()}) // it never arrives
		w.Rule(1, simulator.TrackIDs, simulator.Action{Fault: "F05"})                        // the first question gets no answer
		w.Rule(1, simulator.StateLookup, simulator.Action{Fault: "F05"})
		inv := w.Create(fiscal.FiscalCredit, 1000)
		w.Drive(time.Second)
		w.Want(inv, "queued outcome_unknown")
		if _, err := w.Resolver().Resend(t.Context(), w.Scope, inv.DocumentID, "the portal shows nothing"); !errors.Is(err, live.ErrUndecidable) {
			t.Fatalf("sent again before any look-up: %v", err)
		}
		w.Drive(40 * time.Second) // one look-up: nothing there
		if _, err := w.Resolver().Resend(t.Context(), w.Scope, inv.DocumentID, " "); !errors.Is(err, live.ErrUndecidable) {
			t.Errorf("sent again without a reason: %v", err)
		}
		_, err := w.Resolver().Resend(t.Context(), w.Scope, inv.DocumentID, "the portal shows nothing")
		w.Must(err)
		w.Drive(time.Hour)
		w.Want(inv, "queued outcome_unknown submitted accepted")
		wantPosts(2)(t, w, inv)
		known, err := livetest.ReadEvidence(t.Context(), w.Store(), w.Scope, inv.DocumentID)
		w.Must(err)
		if !slices.ContainsFunc(known, func(i evidence.Item) bool {
			return i.Kind == evidence.Note && i.Cause().String() == "sent again: the portal shows nothing"
		}) {
			t.Errorf("the reason is not recorded: %+v", known)
		}
		if _, err := w.Resolver().Resend(t.Context(), w.Scope, inv.DocumentID, "again"); !errors.Is(err, live.ErrUndecidable) {
			t.Errorf("an accepted document was sent again: %v", err)
		}
		w.Clean()
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
			_, err := w.Resolver().Requeue(t.Context(), w.Scope, inv.DocumentID, "the job is gone")
			w.Must(err)
		}
		fresh := w.Create(fiscal.FiscalCredit, 1000)
		forget() // before it has a number
		requeue(fresh)
		w.Rule(1, simulator.Reception, simulator.Action{Fault: "F02"})
		lost := w.Create(fiscal.FiscalCredit, 1000)
		w.Drive(0)
		forget() // while its outcome is unknown, and the other's is open
		requeue(fresh)
		requeue(lost)
		w.Drive(time.Hour)
		for _, inv := range []store.Invoice{fresh, lost} {
			if got := w.Read(inv).Status; got != fiscal.Accepted {
				t.Errorf("%s is %s: %s", inv.ExternalID, got, w.Story(inv))
			}
		}
		done := w.Create(fiscal.Consumer, 1000) // nothing is delivered to its buyer
		w.Drive(time.Hour)
		if _, err := w.Resolver().Requeue(t.Context(), w.Scope, done.DocumentID, "no need"); !errors.Is(err, live.ErrUndecidable) {
			t.Errorf("a document that is done was requeued: %v", err)
		}
		w.Clean()
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
						w.Rule(1, service, simulator.Action{Fault: "F10", Delay: simulator.Duration(time.Second)})
					}
				}
				inv := w.Create(tt.kind, 1000)
				raced := false
				s := storetest.OpenPoints(t, address, w.Now, func(point string) error {
					if raced || !strings.HasPrefix(point, "before ") {
						return nil
					}
					raced = true
					jobs, err := w.Claim(t.Context(), livetest.MaxClaim)
					if err != nil || len(jobs) != 1 {
						t.Errorf("claimed %v, %v", jobs, err)
					}
					w.RunJob(t.Context(), jobs[0])
					return nil
				})
				_, err := live.NewResolver(s, w.Clock.Now, w.Options.Log).Requeue(t.Context(), w.Scope, inv.DocumentID, "it does not go on")
				if err != nil && !errors.Is(err, live.ErrUndecidable) {
					t.Fatal(err)
				}
				if got := w.Read(inv); !raced || got.ENCF == "" || (got.Status == fiscal.Queued) == tt.late {
					t.Fatalf("raced: %v, %+v", raced, got)
				}
				w.Drive(time.Hour)
				w.Want(inv, tt.story)
				if waiting, err := w.Store().WaitingDocuments(t.Context(), w.Scope); err != nil || len(waiting) > 0 {
					t.Errorf("still waiting: %+v, %v", waiting, err)
				}
				w.Clean()
			})
		})
	}
}
