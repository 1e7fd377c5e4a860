package live

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
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// yearEnv is an env on the last day of the year. Numbers 1 to 100 of type 31 end with the
// day; numbers 101 to 200 last for another year, once the taxpayer has them.
type yearEnv struct {
	*env
	logged *bytes.Buffer
}

func newYearEnv(t *testing.T, address string) yearEnv {
	t.Helper()
	w := yearEnv{newEnv(t, address, envOptions{}), new(bytes.Buffer)}
	w.options.Log = slog.New(slog.NewTextHandler(w.logged, nil))
	w.start()
	w.clock.Set(time.Date(2026, 12, 31, 12, 0, 0, 0, time.UTC))
	_, err := storetest.OpenSQL(t, address).ExecContext(t.Context(), `UPDATE number_ranges SET expires = '2026-12-31', last_number = 100 WHERE ecf_type = '31'`)
	w.must(err)
	w.must(w.sim.UpdateTaxpayer(issuerRNC, func(t *simulator.Taxpayer) error {
		t.Ranges = []simulator.Range{
			{Type: "31", From: 1, To: 100, Expires: "2026-12-31"}, {Type: "31", From: 101, To: 200, Expires: "2027-12-31"}, {Type: "32", From: 1, To: 1000},
		}
		return nil
	}))
	return w
}

// addLater gives the taxpayer the numbers of the next year.
func (w yearEnv) addLater() {
	w.t.Helper()
	expires, err := fiscal.ParseDate("2027-12-31")
	w.must(err)
	w.must(w.store().Update(w.t.Context(), func(tx *store.Tx) error {
		return tx.AddNumberRange(w.t.Context(), store.NumberRange{
			Scope: w.scope, ID: store.NewID(), Type: fiscal.FiscalCredit, First: 101, Last: 200, Next: 101, Expires: expires, CreatedAt: w.now(),
		})
	}))
}

func (w yearEnv) down(is bool) {
	w.t.Helper()
	w.must(w.sim.Configure(func(c *simulator.Config) { c.Maintenance = is }))
	for range 3 {
		w.must(w.watcher.CheckOutage(w.t.Context(), w.signals()))
		w.drive(10 * time.Minute)
		w.clock.Advance(10 * time.Minute)
	}
	w.must(w.watcher.CheckOutage(w.t.Context(), w.signals()))
}

// waiting creates documents while the authority is out of reach, lets the year end, and
// returns them when the authority is back.
func (w yearEnv) waiting(documents int) (made []store.Invoice) {
	w.t.Helper()
	w.down(true)
	for range documents {
		made = append(made, w.create(fiscal.FiscalCredit, 1000))
	}
	w.drive(time.Minute)
	for i, inv := range made {
		if got, want := w.number(inv), fmt.Sprintf("E31%010d", i+1); got != want {
			w.t.Fatalf("document %d has the number %q, want %s", i, got, want)
		}
	}
	w.clock.Set(time.Date(2027, 1, 1, 4, 0, 0, 0, time.UTC)) // midnight in Santo Domingo
	w.down(false)
	return made
}

func (w yearEnv) reissue(ctx context.Context, documentID, reason string) (store.Invoice, error) {
	return decision.Reissue(ctx, w.store(), w.now(), w.scope, documentID, reason)
}

// number returns the number that a document has, and "" without one.
func (w yearEnv) number(inv store.Invoice) string {
	w.t.Helper()
	issued, err := w.store().IssuedDocument(w.t.Context(), w.scope, inv.DocumentID)
	if !errors.Is(err, store.ErrNotFound) {
		w.must(err)
	}
	return issued.ENCF
}

func (w yearEnv) job(inv store.Invoice) store.Job {
	w.t.Helper()
	job, err := w.store().JobOf(w.t.Context(), w.scope, inv.DocumentID)
	w.must(err)
	return job
}

// arrived returns how often the authority got a document with a number.
func (w yearEnv) arrived(encf string) (times int) {
	for _, d := range w.sim.Documents(simulator.Filter{}) {
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
			inv := w.create(fiscal.FiscalCredit, 1000)
			w.drive(0)
			if got := w.number(inv); got != want {
				t.Errorf("the number is %s, want %s", got, want)
			}
			return inv
		}
		numbered("E310000000001")
		w.down(true)
		made := []store.Invoice{numbered("E310000000101")}
		w.start() // the new process has not found the authority out of reach yet
		made = append(made, numbered("E310000000102"))
		w.down(false)
		numbered("E310000000002")
		w.clock.Set(time.Date(2027, 1, 1, 4, 0, 0, 0, time.UTC))
		w.drive(time.Hour)
		for _, inv := range made {
			if got := w.read(inv); got.Status != fiscal.Accepted {
				t.Errorf("%s is %s", got.ENCF, got.Status)
			}
		}
		w.clean()
		w.ledger()
	})
}

func TestADocumentWhoseRangeHasEndedIsHeld(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newYearEnv(t, address)
		made := w.waiting(3)
		w.drive(5 * time.Hour)
		for _, inv := range made {
			w.want(inv, "queued")
			job := w.job(inv)
			if job.Stage != stageSubmit || !job.Held() || job.Suspended || job.RunAt.Sub(w.now()) < 30*time.Minute {
				t.Errorf("the job: %+v", job)
			}
			for _, want := range []string{"2026-12-31", "fiscalhub work reissue", "fiscalhub work resend"} {
				if !strings.Contains(job.LastError, want) {
					t.Errorf("%q lacks %q", job.LastError, want)
				}
			}
		}
		w.start()
		w.drive(5 * time.Hour)
		if n := strings.Count(w.logged.String(), "level=ERROR msg=\"A number range has ended before"); n != 1 {
			t.Errorf("%d lines about one range, want one:\n%s", n, w.logged)
		}
		if n := len(w.sim.Documents(simulator.Filter{})); n != 0 {
			t.Errorf("the authority got %d documents", n)
		}
	})
}

// A document that may have arrived is not held: the service asks about it.
func TestADocumentThatMayHaveArrivedIsNotHeld(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newYearEnv(t, address)
		w.clock.Set(time.Date(2027, 1, 1, 3, 59, 58, 0, time.UTC))
		w.rule(1, simulator.Reception, simulator.Action{Fault: "F02"}) // stored, and the answer is lost
		inv := w.create(fiscal.FiscalCredit, 1000)
		w.drive(0)
		w.want(inv, "queued outcome_unknown")
		if _, err := w.reissue(t.Context(), inv.DocumentID, "no"); !errors.Is(err, ErrUndecidable) {
			t.Errorf("it took another number: %v", err)
		}
		w.drive(time.Hour)
		w.want(inv, "queued outcome_unknown accepted")
		w.clean()
	})
}

func TestAHeldDocumentTakesANewNumber(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newYearEnv(t, address)
		made := w.waiting(2)
		inv, old := made[0], w.bytes(made[0])
		if _, err := w.reissue(t.Context(), inv.DocumentID, " "); !errors.Is(err, ErrUndecidable) {
			t.Errorf("without a reason: %v", err)
		}
		ctx := audit.WithCaller(t.Context(), audit.Caller{Actor: "Ana"})
		before := w.read(inv)
		after, err := w.reissue(ctx, inv.DocumentID, "the year is over")
		w.must(err)
		if after.ENCF != "" || after.Status != fiscal.Queued || !cmp.Equal(after, w.read(inv)) || after.ID != before.ID || after.Revision != before.Revision {
			t.Errorf("after: %+v", after)
		}
		if job := w.job(inv); job.Stage != stageIssue || job.LastError != "" {
			t.Errorf("the job: %+v", job)
		}
		if _, err := w.PDF(t.Context(), after); !errors.Is(err, pipeline.ErrNoArtifact) {
			t.Errorf("a page without a number: %v", err)
		}
		w.drive(2 * time.Hour)
		w.want(inv, "queued queued") // it waits for a range
		if _, err := w.reissue(ctx, inv.DocumentID, "again"); !errors.Is(err, ErrUndecidable) {
			t.Errorf("a document without a number: %v", err)
		}
		w.addLater()
		w.drive(2 * time.Hour)
		w.want(inv, "queued queued submitted accepted")
		got := w.read(inv)
		if got.ENCF != "E310000000101" || w.bytes(inv) == old {
			t.Errorf("the number is %s", got.ENCF)
		}
		want := "El e-NCF E310000000001 fue sustituido por uno nuevo: su secuencia venció el 2026-12-31 antes de que el documento se pudiera enviar."
		if n := len(got.Messages); n == 0 || got.Messages[n-1] != want {
			t.Errorf("messages %q", got.Messages)
		}
		w.replaced(inv, old)
		if _, err := w.reissue(ctx, inv.DocumentID, "again"); !errors.Is(err, ErrUndecidable) {
			t.Errorf("an accepted document: %v", err)
		}
		w.want(made[1], "queued")
		if w.arrived("E310000000001") != 0 || w.arrived("E310000000101") != 1 {
			t.Error("the authority has the old number, or not the new one")
		}
		w.clean()
		w.ledger()
	})
}

// replaced asserts what is left of the first number of a document.
func (w yearEnv) replaced(inv store.Invoice, old string) {
	w.t.Helper()
	ctx := w.t.Context()
	numbers, err := w.store().ReplacedNumbers(ctx, w.scope, inv.DocumentID)
	w.must(err)
	if len(numbers) != 1 || numbers[0].ENCF != "E310000000001" || string(numbers[0].XML) != old || numbers[0].SecurityCode == "" ||
		numbers[0].Reason != "the year is over" || numbers[0].By != "Ana" || numbers[0].DocumentID != inv.DocumentID {
		w.t.Errorf("replaced: %+v", numbers)
	}
	abandoned, err := w.store().AbandonedNumbers(ctx, w.scope, issuerRNC, "E310000000001", "E310000000200")
	w.must(err)
	if len(abandoned) != 1 || abandoned[0].ENCF != "E310000000001" {
		w.t.Errorf("abandoned: %+v", abandoned)
	}
	for _, encf := range []string{"E310000000001", "E310000000101"} {
		found, err := w.store().DocumentsByValue(ctx, store.Within{Environment: w.scope.Environment, All: true}, encf)
		w.must(err)
		if !cmp.Equal(found, []string{inv.DocumentID}) {
			w.t.Errorf("%s finds %v", encf, found)
		}
	}
	entries, err := w.store().History(ctx, w.scope, inv.ID)
	w.must(err)
	if e := entries[1]; e.Kind != "reissued" || e.Detail != "number replaced: E310000000001: the year is over" {
		w.t.Errorf("history: %+v", e)
	}
	if _, err := w.store().IssuedUnder(ctx, w.scope.Environment, issuerRNC, "E310000000001"); !errors.Is(err, store.ErrNotFound) {
		w.t.Errorf("the old number is still one of a document: %v", err)
	}
}

func TestAnOperatorSendsAHeldDocumentAllTheSame(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newYearEnv(t, address)
		made := w.waiting(2)
		_, err := w.resolver().Resend(t.Context(), w.scope, made[0].DocumentID, "the authority has granted more time")
		w.must(err)
		w.rule(2, simulator.Reception, simulator.Action{Fault: "F09"}) // refused, with a new token too, before it is read
		w.drive(2 * time.Hour)
		w.want(made[0], "queued submitted rejected")
		w.want(made[1], "queued")
		wantPosts(2)(t, w.env, made[0])
		if w.arrived("E310000000001") != 1 || w.arrived("E310000000002") != 0 {
			t.Error("the authority did not get the document that was sent")
		}
		w.ledger()
	})
}

func TestReissueIsRefusedForOtherDocuments(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newYearEnv(t, address)
		refused := func(inv store.Invoice, want string) {
			t.Helper()
			job, jobErr := w.store().JobOf(t.Context(), w.scope, inv.DocumentID)
			before := w.read(inv)
			_, err := w.reissue(t.Context(), inv.DocumentID, "please")
			if !errors.Is(err, ErrUndecidable) || !strings.Contains(lang.ErrorText(err, lang.English), want) {
				t.Errorf("%v, want %s", err, want)
			}
			after, afterErr := w.store().JobOf(t.Context(), w.scope, inv.DocumentID)
			if !cmp.Equal(before, w.read(inv)) || !cmp.Equal(job, after) || errors.Is(jobErr, store.ErrNotFound) != errors.Is(afterErr, store.ErrNotFound) {
				t.Errorf("a refusal changed the document: %+v, then %+v", job, after)
			}
		}
		w.down(true)
		valid := w.create(fiscal.FiscalCredit, 1000)
		refused(valid, "no number yet")
		w.drive(time.Minute)
		refused(valid, "has not ended")
		if _, err := w.resolver().Resend(t.Context(), w.scope, valid.DocumentID, "please"); !errors.Is(err, ErrUndecidable) {
			t.Errorf("a document that will be sent was sent again: %v", err)
		}
		w.down(false)
		w.clock.Set(time.Date(2027, 1, 1, 4, 0, 0, 0, time.UTC))
		refused(valid, "accepted")
		if _, err := w.reissue(t.Context(), store.NewID(), "please"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("no document: %v", err)
		}
		w.clean()
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
				_, err := w.resolver().Resend(t.Context(), w.scope, inv.DocumentID, "send it")
				w.must(err)
				var once sync.Once
				var refusal error
				w.engine.Point = func(name string) error {
					if name == point {
						once.Do(func() {
							_, refusal = w.reissue(t.Context(), inv.DocumentID, "no, another number")
						})
					}
					return nil
				}
				w.startEngine()
				w.drive(time.Hour)
				if point == "before holding submit" {
					w.must(refusal)
					w.want(inv, "queued queued submitted accepted")
				} else {
					if !errors.Is(refusal, ErrUndecidable) {
						t.Errorf("the number was replaced while it was sent: %v", refusal)
					}
					w.want(inv, "queued submitted rejected")
				}
				if old, later := w.arrived("E310000000001"), w.arrived("E310000000101"); old+later != 1 {
					t.Errorf("the authority got the old number %d times and the new one %d times", old, later)
				}
				w.ledger()
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
			_, err := w.resolver().Resend(t.Context(), w.scope, inv.DocumentID, "send it")
			w.must(err)
		}
		jobs, err := w.Claim(t.Context(), maxClaim)
		w.must(err)
		var all sync.WaitGroup
		for _, job := range jobs {
			all.Go(func() { w.RunJob(t.Context(), job) })
		}
		for _, inv := range made {
			all.Go(func() {
				if _, err := w.reissue(t.Context(), inv.DocumentID, "another number"); err != nil && !errors.Is(err, ErrUndecidable) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		w.drive(2 * time.Hour)
		for i, inv := range made {
			replaced, err := w.store().ReplacedNumbers(t.Context(), w.scope, inv.DocumentID)
			w.must(err)
			old := w.arrived(fmt.Sprintf("E31%010d", i+1))
			if got := w.read(inv); old+len(replaced) != 1 || w.arrived(got.ENCF) != 1 || !got.Status.Final() {
				t.Errorf("%s (%s): replaced %d times, and the old number arrived %d times: %s", got.ENCF, got.Status, len(replaced), old, w.story(inv))
			}
		}
		w.ledger()
	})
}

// A number that was tried, did not arrive and was replaced explains what the witness knows.
// After a restart the other documents of the range are held as before.
func TestAReplacedNumberPutsNoOtherInDoubt(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w, path := newYearEnv(t, address), filepath.Join(t.TempDir(), "witness")
		w.guard(path)
		made := w.waiting(3)
		last, err := w.store().IssuedDocument(t.Context(), w.scope, made[2].DocumentID)
		w.must(err)
		w.must(w.options.Fence.BeforeSend(t.Context(), last))
		tried := store.Attempt{Scope: w.scope, DocumentID: last.DocumentID, Number: 1, Kind: stageSubmit, Digest: last.SentDigest, OpenedAt: w.now()}
		w.must(w.store().Commit(t.Context(), new(store.Batch).OpenAttempt(tried).CloseAttempt(*closed(tried, store.NotReceived, w.now()))))
		w.addLater()
		_, err = w.reissue(t.Context(), last.DocumentID, "signed on the last day")
		w.must(err)
		w.guard(path)
		w.drive(2 * heldPause)
		for _, inv := range made[:2] {
			if got := w.read(inv); got.Status != fiscal.Queued || !w.job(inv).Held() {
				t.Errorf("%s is %s: %q", got.ENCF, got.Status, w.job(inv).LastError)
			}
		}
	})
}
