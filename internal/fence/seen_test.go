package fence_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live/livetest"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/witness"
)

// printed returns the numbers of invoices that have a page, and fails without one.
func (w *env) printed(all []store.Invoice) []string {
	w.T.Helper()
	var numbers []string
	for _, inv := range all {
		now := w.Read(inv)
		if page, err := w.PDF(w.T.Context(), now); err != nil || len(page.Bytes) == 0 || now.ENCF == "" {
			w.T.Fatalf("%s (%s, %s) has no page: %v", now.ExternalID, now.Status, now.ENCF, err)
		}
		numbers = append(numbers, now.ENCF)
	}
	return numbers
}

// A number on a page of a contingency is in the hand of a buyer although nothing was sent.
// After a restore of an older copy no other sale gets it.
func TestAPrintedNumberIsNotIssuedAgain(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w, path := newEnv(t, address), filepath.Join(t.TempDir(), "witness")
		w.Guard(path)
		w.Create(fiscal.FiscalCredit, 1000)
		w.Drive(time.Hour)
		copied := backup(t, address)
		w.Maintain(true)
		var sales []store.Invoice
		for range 4 {
			sales = append(sales, w.Create(fiscal.FiscalCredit, 1000), w.Create(fiscal.Consumer, 1000))
		}
		w.Pass(3)
		seen := w.printed(sales)
		made := w.Made

		w = w.from(copied)
		w.Made = made
		w.Guard(path)
		w.Equal("fenced", []string{"31 at 2", "32 at 1"}, w.Fenced())
		w.Maintain(false)
		w.Pass(1)
		w.Equal("released", []string{"31 2–5: 0 found, 4 absent, 0 unknown", "32 1–4: 0 found, 4 absent, 0 unknown"}, w.release())
		for range 5 {
			for _, inv := range []store.Invoice{w.Create(fiscal.FiscalCredit, 2000), w.Create(fiscal.Consumer, 2000)} {
				w.Drive(time.Hour)
				if got := w.Read(inv); slices.Contains(seen, got.ENCF) || got.Status != fiscal.Accepted {
					t.Errorf("%s is %s with the number %s", got.ExternalID, got.Status, got.ENCF)
				}
			}
		}
		w.Ledger()
		w.Clean()
	})
}

// A number is invisible until the witness knows it: after a restore of a copy from before,
// it may be issued again.
func TestANumberIsHiddenUntilTheWitnessKnowsIt(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w, path := newEnv(t, address), filepath.Join(t.TempDir(), "witness")
		w.Guard(path)
		worker := w.otherNode()
		fail := true
		worker.Options.Point = func(point string) error {
			if fail && (point == "before witnessing" || point == "before witnessing the number") {
				return errors.New("the disk of the witness is full")
			}
			return nil
		}
		worker.Start()
		inv := w.Create(fiscal.FiscalCredit, 1000)
		worker.Drive(10 * time.Second)
		issued, err := w.Store().IssuedDocument(t.Context(), w.Scope, inv.DocumentID)
		if err != nil {
			t.Fatal(err)
		}
		if got := w.Read(inv); got.ENCF != "" || got.Status != fiscal.Queued {
			t.Errorf("the number %s is visible, the witness does not know it", got.ENCF)
		}
		if n := len(w.Sim.Documents(simulator.Filter{})); n != 0 {
			t.Errorf("%d documents were sent", n)
		}
		fail = false
		worker.Drive(time.Hour)
		if got := w.Read(inv); got.ENCF != issued.ENCF || got.Status != fiscal.Accepted {
			t.Errorf("%s %s, want %s accepted", got.ENCF, got.Status, issued.ENCF)
		}
	})
}

// A document that waits before it is sent shows its number. The witness knows it then.
func TestANumberThatIsNotHiddenIsKnownToTheWitness(t *testing.T) {
	t.Parallel()
	w := newEnv(t, storetest.Address(t, "sqlite"))
	w.Guard(filepath.Join(t.TempDir(), "witness"))
	w.Options.Point = func(point string) error {
		if point == "before witnessing" {
			return errors.New("the document is not sent")
		}
		return nil
	}
	w.Start()
	inv := w.Create(fiscal.FiscalCredit, 1000)
	w.Drive(10 * time.Second)
	ranges, err := w.Store().NumberRangesOf(t.Context(), w.Scope, fiscal.FiscalCredit)
	w.Must(err)
	mark, err := w.Options.Fence.Mark(livetest.IssuerRNC, ranges[0])
	if got := w.Read(inv); err != nil || got.ENCF == "" || mark != (witness.Mark{Seen: 1}) {
		t.Errorf("the number is %q, and the witness knows %+v, %v", got.ENCF, mark, err)
	}
}

// Documents that waited for the authority go before those that came later, so that the
// authority has no gap but for what is under way.
func TestDocumentsAreSentInTheOrderOfTheirNumbers(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address)
		for range 2 {
			w.Create(fiscal.FiscalCredit, 1000)
			w.Create(fiscal.Consumer, 1000)
		}
		w.Drive(time.Hour)
		w.Maintain(true)
		for range 60 {
			w.Create(fiscal.FiscalCredit, 1000)
			w.Create(fiscal.Consumer, 1000)
		}
		w.Pass(2)
		w.Maintain(false)
		var late []store.Invoice
		for range 3 {
			late = append(late, w.Create(fiscal.FiscalCredit, 1000), w.Create(fiscal.Consumer, 1000))
		}
		// The workers of the new ones act first.
		for range 3 {
			jobs, err := w.Claim(t.Context(), livetest.MaxClaim)
			w.Must(err)
			slices.SortFunc(jobs, func(a, b store.Job) int { return b.CreatedAt.Compare(a.CreatedAt) })
			for _, job := range jobs {
				w.RunJob(t.Context(), job)
			}
		}
		w.Pass(6)
		last := map[string]string{}
		for _, d := range w.Sim.Documents(simulator.Filter{}) {
			issued, err := w.Store().IssuedUnder(t.Context(), w.Options.Env, d.RNC, d.ENCF)
			w.Must(err)
			attempts, err := w.Store().Attempts(t.Context(), w.Scope, issued.DocumentID)
			w.Must(err)
			if slices.ContainsFunc(attempts, func(a store.Attempt) bool { return a.Class == store.Inconclusive }) {
				continue // it was sent at the beginning of the outage, in its turn
			}
			if kind := d.ENCF[:3]; d.ENCF < last[kind] {
				t.Errorf("%s was sent after %s", d.ENCF, last[kind])
			} else {
				last[kind] = d.ENCF
			}
		}
		for _, inv := range late {
			if got := w.Read(inv); got.Status != fiscal.Accepted {
				t.Errorf("%s is %s", got.ENCF, got.Status)
			}
		}
		if got := fmt.Sprint(last); got != "map[E31:E310000000065 E32:E320000000065]" {
			t.Errorf("the authority has %s", got)
		}
		w.Clean()
	})
}

// With the database and the witness lost, a search at the authority would end in the gap
// that a contingency leaves. The release asks for the last number instead.
func TestAReleaseDoesNotGuess(t *testing.T) {
	t.Parallel()
	address := storetest.Address(t, "sqlite")
	w, dir := newEnv(t, address), t.TempDir()
	w.Guard(filepath.Join(dir, "a"))
	w.Create(fiscal.FiscalCredit, 1000)
	w.Drive(time.Hour)
	copied := backup(t, address)
	w.Maintain(true)
	for range 60 {
		w.Create(fiscal.FiscalCredit, 1000)
	}
	w.Pass(2)
	w = w.from(copied)
	w.Guard(filepath.Join(dir, "b"))
	w.Maintain(false)
	w.Pass(1)
	if released, err := w.Releaser().Release(t.Context(), w.Scope); !errors.Is(err, fence.ErrNotStated) || len(released) != 0 {
		t.Errorf("%+v, %v", released, err)
	}
	w.Equal("fenced", []string{"31 at 2", "32 at 1"}, w.Fenced())
	for _, tt := range []struct {
		stated fence.Stated
		ok     bool
	}{{fence.Stated{Type: fiscal.FiscalCredit, Number: 1001}, false}, {fence.Stated{Type: fiscal.FiscalCredit, Number: 61}, true}} {
		stating := w.Releaser()
		stating.Stated = []fence.Stated{tt.stated, {Type: fiscal.Consumer}}
		if released, err := stating.Release(t.Context(), w.Scope); (err == nil) != tt.ok || tt.ok && (len(released) != 2 || released[0].To != 61) {
			t.Errorf("%+v: %+v, %v", tt.stated, released, err)
		}
	}
	w.Ledger()
}

// A copy has a document whose number was not visible yet, and the document was sent
// afterwards. After the restore the number becomes visible, as that of every document.
func TestAHiddenNumberIsShownAfterARestore(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w, path := newEnv(t, address), filepath.Join(t.TempDir(), "witness")
		w.Guard(path)
		all := []store.Invoice{w.Create(fiscal.FiscalCredit, 1000), w.Create(fiscal.Consumer, 1000), w.Create(fiscal.Consumer, 300_000)}
		worker := w.otherNode()
		worker.Options.Point = func(point string) error {
			if point == "before witnessing" || point == "before witnessing the number" {
				return errors.New("the worker ends before it shows the number")
			}
			return nil
		}
		worker.Start()
		worker.Drive(0)
		copied := backup(t, address)
		w.Drive(time.Hour)

		w = w.from(copied)
		w.Guard(path)
		w.Drive(0)
		for _, inv := range all { // the event of this status has the number
			if got := w.Read(inv); got.ENCF == "" || got.Status != fiscal.OutcomeUnknown {
				t.Errorf("%s is %s with the number %q", got.ExternalID, got.Status, got.ENCF)
			}
		}
		w.Drive(time.Hour)
		for _, inv := range all {
			issued, err := w.Store().IssuedDocument(t.Context(), w.Scope, inv.DocumentID)
			w.Must(err)
			if got := w.Read(inv); got.ENCF != issued.ENCF || got.Status != fiscal.Accepted {
				t.Errorf("%s is %s with the number %q, want %s", got.ExternalID, got.Status, got.ENCF, issued.ENCF)
			}
		}
		if sent := w.Sim.Documents(simulator.Filter{}); len(sent) != len(all) {
			t.Errorf("the authority got %d documents, want %d", len(sent), len(all))
		}
		w.release()
		w.Clean()
	})
}

// An operator who states too low a number is corrected by what the authority has.
func TestAStatedNumberIsNotBelowWhatTheAuthorityHas(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w, dir := newEnv(t, address), t.TempDir()
		w.Guard(filepath.Join(dir, "a"))
		copied := backup(t, address)
		for range 5 {
			w.Create(fiscal.FiscalCredit, 1000)
		}
		w.Drive(time.Hour)
		made := w.Made
		w = w.from(copied)
		w.Made = made
		lost, err := os.Create(filepath.Join(dir, "b")) // damaged: nobody knows the numbers
		w.Must(err)
		w.Must(lost.Close())
		w.Guard(filepath.Join(dir, "b"))
		stating := w.Releaser()
		stating.Stated = []fence.Stated{{Type: fiscal.FiscalCredit, Number: 2}, {Type: fiscal.Consumer}}
		released, err := stating.Release(t.Context(), w.Scope)
		if err != nil || len(released) != 2 || released[0].To != 5 || released[1].To != 0 {
			t.Errorf("%+v, %v", released, err)
		}
		w.Ledger()
	})
}

// Of two releases at once one releases the range. The other one does not say that it stays
// fenced.
func TestTwoReleasesAtOnce(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w, path := newEnv(t, address), filepath.Join(t.TempDir(), "witness")
		w.Guard(path)
		copied := backup(t, address)
		for range 3 {
			w.Create(fiscal.FiscalCredit, 1000)
		}
		w.Drive(time.Hour)
		w = w.from(copied)
		w.Guard(path)
		var other []string
		slow := w.Releaser()
		slow.Progress = func(store.NumberRange, int64, int64) {
			if other == nil {
				other = w.release()
			}
		}
		if released, err := slow.Release(t.Context(), w.Scope); err != nil || len(released) > len(other) {
			t.Errorf("%+v, %v", released, err)
		}
		w.Equal("the other one", []string{"31 1–3: 3 found, 0 absent, 0 unknown"}, other[:1])
		w.Equal("fenced", []string{}, w.Fenced())
		w.Ledger()
	})
}
