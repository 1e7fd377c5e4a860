package decision_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/audit"
	"github.com/fiscalhub/fiscalhub/internal/decision"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/live/livetest"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// yearEnv is the environment of live on the last day of the year. Numbers 1 to 100 of type 31 end with the
// day; numbers 101 to 200 last for another year, once the taxpayer has them.
type yearEnv struct {
	*livetest.Env
	logged *bytes.Buffer
}

func newYearEnv(t *testing.T, address string) yearEnv {
	t.Helper()
	w := yearEnv{livetest.New(t, address, livetest.Options{}), new(bytes.Buffer)}
	w.Options.Log = slog.New(slog.NewTextHandler(w.logged, nil))
	w.Start()
	w.Clock.Set(time.Date(2026, 12, 31, 12, 0, 0, 0, time.UTC))
	_, err := storetest.OpenSQL(t, address).ExecContext(t.Context(), `UPDATE number_ranges SET expires = '2026-12-31', last_number = 100 WHERE ecf_type = '31'`)
	w.Must(err)
	w.Must(w.Sim.UpdateTaxpayer(livetest.IssuerRNC, func(t *simulator.Taxpayer) error {
		t.Ranges = []simulator.Range{
			{Type: "31", From: 1, To: 100, Expires: "2026-12-31"}, {Type: "31", From: 101, To: 200, Expires: "2027-12-31"}, {Type: "32", From: 1, To: 1000},
		}
		return nil
	}))
	return w
}

// addLater gives the taxpayer the numbers of the next year.
func (w yearEnv) addLater() {
	w.T.Helper()
	expires, err := fiscal.ParseDate("2027-12-31")
	w.Must(err)
	w.Must(w.Store().Update(w.T.Context(), func(tx *store.Tx) error {
		return tx.AddNumberRange(w.T.Context(), store.NumberRange{
			Scope: w.Scope, ID: store.NewID(), Type: fiscal.FiscalCredit, First: 101, Last: 200, Next: 101, Expires: expires, CreatedAt: w.Now(),
		})
	}))
}

func (w yearEnv) down(is bool) {
	w.T.Helper()
	w.Must(w.Sim.Configure(func(c *simulator.Config) { c.Maintenance = is }))
	for range 3 {
		w.Must(w.Watcher.CheckOutage(w.T.Context(), w.Signals()))
		w.Drive(10 * time.Minute)
		w.Clock.Advance(10 * time.Minute)
	}
	w.Must(w.Watcher.CheckOutage(w.T.Context(), w.Signals()))
}

// waiting creates documents while the authority is out of reach, lets the year end, and
// returns them when the authority is back.
func (w yearEnv) waiting(documents int) (made []store.Invoice) {
	w.T.Helper()
	w.down(true)
	for range documents {
		made = append(made, w.Create(fiscal.FiscalCredit, 1000))
	}
	w.Drive(time.Minute)
	for i, inv := range made {
		if got, want := w.number(inv), fmt.Sprintf("E31%010d", i+1); got != want {
			w.T.Fatalf("document %d has the number %q, want %s", i, got, want)
		}
	}
	w.Clock.Set(time.Date(2027, 1, 1, 4, 0, 0, 0, time.UTC)) // midnight in Santo Domingo
	w.down(false)
	return made
}

func (w yearEnv) reissue(ctx context.Context, documentID, reason string) (store.Invoice, error) {
	return decision.Reissue(ctx, w.Store(), w.Now(), w.Scope, documentID, reason)
}

// number returns the number that a document has, and "" without one.
func (w yearEnv) number(inv store.Invoice) string {
	w.T.Helper()
	issued, err := w.Store().IssuedDocument(w.T.Context(), w.Scope, inv.DocumentID)
	if !errors.Is(err, store.ErrNotFound) {
		w.Must(err)
	}
	return issued.ENCF
}

func (w yearEnv) job(inv store.Invoice) store.Job {
	w.T.Helper()
	job, err := w.Store().JobOf(w.T.Context(), w.Scope, inv.DocumentID)
	w.Must(err)
	return job
}

// arrived returns how often the authority got a document with a number.
func (w yearEnv) arrived(encf string) (times int) {
	for _, d := range w.Sim.Documents(simulator.Filter{}) {
		if d.ENCF == encf {
			times++
		}
	}
	return times
}

func TestALaterRangeIsPreferredWhileTheAuthorityIsOut(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newYearEnv(t, address)
		w.addLater()
		numbered := func(want string) store.Invoice {
			t.Helper()
			inv := w.Create(fiscal.FiscalCredit, 1000)
			w.Drive(0)
			if got := w.number(inv); got != want {
				t.Errorf("the number is %s, want %s", got, want)
			}
			return inv
		}
		numbered("E310000000001")
		w.down(true)
		made := []store.Invoice{numbered("E310000000101")}
		w.Start() // the new process has not found the authority out of reach yet
		made = append(made, numbered("E310000000102"))
		w.down(false)
		numbered("E310000000002")
		w.Clock.Set(time.Date(2027, 1, 1, 4, 0, 0, 0, time.UTC))
		w.Drive(time.Hour)
		for _, inv := range made {
			if got := w.Read(inv); got.Status != fiscal.Accepted {
				t.Errorf("%s is %s", got.ENCF, got.Status)
			}
		}
		w.Clean()
		w.Ledger()
	})
}

func TestADocumentWhoseRangeHasEndedIsHeld(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newYearEnv(t, address)
		made := w.waiting(3)
		w.Drive(5 * time.Hour)
		for _, inv := range made {
			w.Want(inv, "queued")
			job := w.job(inv)
			if job.Stage != "submit" || !job.Cause.Held() || job.Suspended || job.RunAt.Sub(w.Now()) < 30*time.Minute {
				t.Errorf("the job: %+v", job)
			}
			for _, want := range []string{"2026-12-31", "fiscalhub work reissue", "fiscalhub work resend"} {
				if !strings.Contains(job.Cause.String(), want) {
					t.Errorf("%q lacks %q", job.Cause.String(), want)
				}
			}
		}
		w.Start()
		w.Drive(5 * time.Hour)
		if n := strings.Count(w.logged.String(), "level=ERROR msg=\"A number range has ended before"); n != 1 {
			t.Errorf("%d lines about one range, want one:\n%s", n, w.logged)
		}
		if n := len(w.Sim.Documents(simulator.Filter{})); n != 0 {
			t.Errorf("the authority got %d documents", n)
		}
	})
}

// A document that may have arrived is not held: the service asks about it.
func TestADocumentThatMayHaveArrivedIsNotHeld(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newYearEnv(t, address)
		w.Clock.Set(time.Date(2027, 1, 1, 3, 59, 58, 0, time.UTC))
		w.Rule(1, simulator.Reception, simulator.Action{Fault: "F02"}) // stored, and the answer is lost
		inv := w.Create(fiscal.FiscalCredit, 1000)
		w.Drive(0)
		w.Want(inv, "queued outcome_unknown")
		if _, err := w.reissue(t.Context(), inv.DocumentID, "no"); !errors.Is(err, decision.ErrUndecidable) {
			t.Errorf("it took another number: %v", err)
		}
		w.Drive(time.Hour)
		w.Want(inv, "queued outcome_unknown accepted")
		w.Clean()
	})
}

func TestAHeldDocumentTakesANewNumber(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newYearEnv(t, address)
		made := w.waiting(2)
		inv, old := made[0], w.Bytes(made[0])
		if _, err := w.reissue(t.Context(), inv.DocumentID, " "); !errors.Is(err, decision.ErrUndecidable) {
			t.Errorf("without a reason: %v", err)
		}
		ctx := audit.WithCaller(t.Context(), audit.Caller{Actor: "Ana"})
		before := w.Read(inv)
		after, err := w.reissue(ctx, inv.DocumentID, "the year is over")
		w.Must(err)
		if after.ENCF != "" || after.Status != fiscal.Queued || !cmp.Equal(after, w.Read(inv)) || after.ID != before.ID || after.Revision != before.Revision {
			t.Errorf("after: %+v", after)
		}
		if job := w.job(inv); job.Stage != "issue" || job.Cause != "" {
			t.Errorf("the job: %+v", job)
		}
		if _, err := w.PDF(t.Context(), after); !errors.Is(err, pipeline.ErrNoArtifact) {
			t.Errorf("a page without a number: %v", err)
		}
		w.Drive(2 * time.Hour)
		w.Want(inv, "queued queued") // it waits for a range
		if _, err := w.reissue(ctx, inv.DocumentID, "again"); !errors.Is(err, decision.ErrUndecidable) {
			t.Errorf("a document without a number: %v", err)
		}
		w.addLater()
		w.Drive(2 * time.Hour)
		w.Want(inv, "queued queued submitted accepted")
		got := w.Read(inv)
		if got.ENCF != "E310000000101" || w.Bytes(inv) == old {
			t.Errorf("the number is %s", got.ENCF)
		}
		want := "El e-NCF E310000000001 fue sustituido por uno nuevo: su secuencia venció el 2026-12-31 antes de que el documento se pudiera enviar."
		if n := len(got.Messages); n == 0 || got.Messages[n-1] != want {
			t.Errorf("messages %q", got.Messages)
		}
		w.replaced(inv, old)
		if _, err := w.reissue(ctx, inv.DocumentID, "again"); !errors.Is(err, decision.ErrUndecidable) {
			t.Errorf("an accepted document: %v", err)
		}
		w.Want(made[1], "queued")
		if w.arrived("E310000000001") != 0 || w.arrived("E310000000101") != 1 {
			t.Error("the authority has the old number, or not the new one")
		}
		w.Clean()
		w.Ledger()
	})
}

// replaced asserts what is left of the first number of a document.
func (w yearEnv) replaced(inv store.Invoice, old string) {
	w.T.Helper()
	ctx := w.T.Context()
	numbers, err := w.Store().ReplacedNumbers(ctx, w.Scope, inv.DocumentID)
	w.Must(err)
	if len(numbers) != 1 || numbers[0].ENCF != "E310000000001" || string(numbers[0].XML) != old || numbers[0].SecurityCode == "" ||
		numbers[0].Reason != "the year is over" || numbers[0].By != "Ana" || numbers[0].DocumentID != inv.DocumentID {
		w.T.Errorf("replaced: %+v", numbers)
	}
	abandoned, err := w.Store().AbandonedNumbers(ctx, w.Scope, livetest.IssuerRNC, "E310000000001", "E310000000200")
	w.Must(err)
	if len(abandoned) != 1 || abandoned[0].ENCF != "E310000000001" {
		w.T.Errorf("abandoned: %+v", abandoned)
	}
	for _, encf := range []string{"E310000000001", "E310000000101"} {
		found, err := w.Store().DocumentsByValue(ctx, store.Within{Environment: w.Scope.Environment, All: true}, encf)
		w.Must(err)
		if !cmp.Equal(found, []string{inv.DocumentID}) {
			w.T.Errorf("%s finds %v", encf, found)
		}
	}
	entries, err := w.Store().History(ctx, w.Scope, inv.ID)
	w.Must(err)
	if e := entries[1]; e.Kind != "reissued" || e.Cause.String() != "number replaced: E310000000001: the year is over" {
		w.T.Errorf("history: %+v", e)
	}
	if _, err := w.Store().IssuedUnder(ctx, w.Scope.Environment, livetest.IssuerRNC, "E310000000001"); !errors.Is(err, store.ErrNotFound) {
		w.T.Errorf("the old number is still one of a document: %v", err)
	}
}

func TestAnOperatorSendsAHeldDocumentAllTheSame(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newYearEnv(t, address)
		made := w.waiting(2)
		_, err := w.Resolver().Resend(t.Context(), w.Scope, made[0].DocumentID, "the authority has granted more time")
		w.Must(err)
		w.Rule(2, simulator.Reception, simulator.Action{Fault: "F09"}) // refused, with a new token too, before it is read
		w.Drive(2 * time.Hour)
		w.Want(made[0], "queued submitted rejected")
		w.Want(made[1], "queued")
		if attempts, err := w.Store().Attempts(t.Context(), w.Scope, made[0].DocumentID); err != nil || len(attempts) != 2 {
			t.Errorf("sent %d times, want 2 (%v)", len(attempts), err)
		}
		if w.arrived("E310000000001") != 1 || w.arrived("E310000000002") != 0 {
			t.Error("the authority did not get the document that was sent")
		}
		w.Ledger()
	})
}

func TestReissueIsRefusedForOtherDocuments(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newYearEnv(t, address)
		refused := func(inv store.Invoice, want string) {
			t.Helper()
			job, jobErr := w.Store().JobOf(t.Context(), w.Scope, inv.DocumentID)
			before := w.Read(inv)
			_, err := w.reissue(t.Context(), inv.DocumentID, "please")
			if !errors.Is(err, decision.ErrUndecidable) || !strings.Contains(lang.ErrorText(err, lang.English), want) {
				t.Errorf("%v, want %s", err, want)
			}
			after, afterErr := w.Store().JobOf(t.Context(), w.Scope, inv.DocumentID)
			if !cmp.Equal(before, w.Read(inv)) || !cmp.Equal(job, after) || errors.Is(jobErr, store.ErrNotFound) != errors.Is(afterErr, store.ErrNotFound) {
				t.Errorf("a refusal changed the document: %+v, then %+v", job, after)
			}
		}
		w.down(true)
		valid := w.Create(fiscal.FiscalCredit, 1000)
		refused(valid, "no number yet")
		w.Drive(time.Minute)
		refused(valid, "has not ended")
		if _, err := w.Resolver().Resend(t.Context(), w.Scope, valid.DocumentID, "please"); !errors.Is(err, decision.ErrUndecidable) {
			t.Errorf("a document that will be sent was sent again: %v", err)
		}
		w.down(false)
		w.Clock.Set(time.Date(2027, 1, 1, 4, 0, 0, 0, time.UTC))
		refused(valid, "accepted")
		if _, err := w.reissue(t.Context(), store.NewID(), "please"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("no document: %v", err)
		}
		w.Clean()
	})
}

// Two operators decide differently at the same moment. The worker that is about to send
// the document either has recorded its attempt, and the number stays, or sends nothing.
func TestReissueWhileTheDocumentIsBeingSent(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"before holding submit", "after holding submit"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			storetest.EachAddress(t, func(t *testing.T, address string) {
				w := newYearEnv(t, address)
				inv := w.waiting(1)[0]
				w.addLater()
				_, err := w.Resolver().Resend(t.Context(), w.Scope, inv.DocumentID, "send it")
				w.Must(err)
				var once sync.Once
				var refusal error
				w.Engine.Point = func(name string) error {
					if name == point {
						once.Do(func() {
							_, refusal = w.reissue(t.Context(), inv.DocumentID, "no, another number")
						})
					}
					return nil
				}
				w.StartEngine()
				w.Drive(time.Hour)
				if point == "before holding submit" {
					w.Must(refusal)
					w.Want(inv, "queued queued submitted accepted")
				} else {
					if !errors.Is(refusal, decision.ErrUndecidable) {
						t.Errorf("the number was replaced while it was sent: %v", refusal)
					}
					w.Want(inv, "queued submitted rejected")
				}
				if old, later := w.arrived("E310000000001"), w.arrived("E310000000101"); old+later != 1 {
					t.Errorf("the authority got the old number %d times and the new one %d times", old, later)
				}
				w.Ledger()
			})
		})
	}
}

// Workers and operators act on many documents at once. No document is sent under two
// numbers.
func TestReissueRacesWithWorkers(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newYearEnv(t, address)
		made := w.waiting(12)
		w.addLater()
		for _, inv := range made {
			_, err := w.Resolver().Resend(t.Context(), w.Scope, inv.DocumentID, "send it")
			w.Must(err)
		}
		jobs, err := w.Claim(t.Context(), livetest.MaxClaim)
		w.Must(err)
		var all sync.WaitGroup
		for _, job := range jobs {
			all.Go(func() { w.RunJob(t.Context(), job) })
		}
		for _, inv := range made {
			all.Go(func() {
				if _, err := w.reissue(t.Context(), inv.DocumentID, "another number"); err != nil && !errors.Is(err, decision.ErrUndecidable) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		w.Drive(2 * time.Hour)
		for i, inv := range made {
			replaced, err := w.Store().ReplacedNumbers(t.Context(), w.Scope, inv.DocumentID)
			w.Must(err)
			old := w.arrived(fmt.Sprintf("E31%010d", i+1))
			if got := w.Read(inv); old+len(replaced) != 1 || w.arrived(got.ENCF) != 1 || !got.Status.Final() {
				t.Errorf("%s (%s): replaced %d times, and the old number arrived %d times: %s", got.ENCF, got.Status, len(replaced), old, w.Story(inv))
			}
		}
		w.Ledger()
	})
}

// A number that was tried, did not arrive and was replaced explains what the witness knows.
// After a restart the other documents of the range are held as before.
func TestAReplacedNumberPutsNoOtherInDoubt(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w, path := newYearEnv(t, address), filepath.Join(t.TempDir(), "witness")
		w.Guard(path)
		made := w.waiting(3)
		last, err := w.Store().IssuedDocument(t.Context(), w.Scope, made[2].DocumentID)
		w.Must(err)
		w.Must(w.Options.Fence.BeforeSend(t.Context(), last))
		tried := store.Attempt{Scope: w.Scope, DocumentID: last.DocumentID, Number: 1, Kind: "submit", Digest: last.SentDigest, OpenedAt: w.Now()}
		closed := tried
		closed.Class, closed.ClosedAt = store.NotReceived, w.Now()
		w.Must(w.Store().Commit(t.Context(), new(store.Batch).OpenAttempt(tried).CloseAttempt(closed)))
		w.addLater()
		_, err = w.reissue(t.Context(), last.DocumentID, "signed on the last day")
		w.Must(err)
		w.Guard(path)
		w.Drive(2 * time.Hour)
		for _, inv := range made[:2] {
			if got := w.Read(inv); got.Status != fiscal.Queued || !w.job(inv).Cause.Held() {
				t.Errorf("%s is %s: %q", got.ENCF, got.Status, w.job(inv).Cause.String())
			}
		}
	})
}
