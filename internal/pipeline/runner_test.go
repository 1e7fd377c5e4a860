package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/wake"
)

// scripted is the sandbox's plan with a step that a test writes.
type scripted struct {
	Sandbox
	step   func(ctx context.Context, w Work) (Result, error)
	settle func() Move
}

func (s scripted) Settle(Document) Move { return s.settle() }

func (s scripted) Do(ctx context.Context, w Work) (Result, error) { return s.step(ctx, w) }

// env is a pipeline on an empty store, with a taxpayer.
type env struct {
	*Pipeline
	t     *testing.T
	clock *storetest.Clock
	scope store.Scope
}

func newEnv(t *testing.T, address string, plan Plan) *env {
	t.Helper()
	b := attach(t, address, plan, storetest.NewClock())
	made := store.Taxpayer{ID: store.NewID(), RNC: "199000013", LegalName: "Prueba, SRL", Phones: []string{}, CreatedAt: b.o.Now(), UpdatedAt: b.o.Now()}
	b.must(b.o.Store.Update(t.Context(), func(tx *store.Tx) error { return tx.CreateTaxpayer(t.Context(), made) }))
	b.scope.TaxpayerID = made.ID
	return b
}

// attach is a pipeline on a store that another one may be using.
func attach(t *testing.T, address string, plan Plan, c *storetest.Clock) *env {
	t.Helper()
	p, err := New(Options{
		Store: storetest.Open(t, address, c.Now), Plan: plan, Env: fiscal.Sandbox, Now: c.Now, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return &env{p, t, c, store.Scope{Environment: fiscal.Sandbox}}
}

// beside is another pipeline on the same database.
func (b *env) beside(address string, plan Plan) *env {
	b.t.Helper()
	other := attach(b.t, address, plan, b.clock)
	other.scope = b.scope
	return other
}

func (b *env) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// add stores a queued invoice with a job that is due.
func (b *env) add(name, plan, stage string) store.Invoice {
	b.t.Helper()
	now := b.o.Now().Truncate(time.Millisecond)
	inv := store.Invoice{
		Scope: b.scope, ID: store.NewID(), DocumentID: store.NewID(), ExternalID: name, Type: fiscal.Consumer, Status: fiscal.Queued, Revision: 1,
		Currency: "DOP", IssueDate: "2026-11-14", Subtotal: "1", DiscountTotal: "0", TaxTotal: "0", Total: "1", Paid: "1", Balance: "0",
		DocumentTotal: "1.00", CreatedAt: now, UpdatedAt: now,
	}
	_, err := b.o.Store.Register(b.t.Context(), store.Registration{
		Reply: store.StoredReply{
			Scope: b.scope, Operation: CreateInvoice, Key: name, Fingerprint: []byte{1}, RawDigest: []byte{2}, ObjectID: inv.ID,
			HTTPStatus: 202, Location: "/", RequestID: "req", CreatedAt: now, Body: []byte(`{}`),
		},
		Invoice: inv, Request: []byte(`{}`),
		Entry: store.HistoryEntry{Scope: b.scope, InvoiceID: inv.ID, ID: store.NewID(), At: now, Kind: "created", Status: inv.Status},
		Job:   &store.Job{Scope: b.scope, DocumentID: inv.DocumentID, Plan: plan, Stage: stage, RunAt: now, CreatedAt: now},
	})
	b.must(err)
	return inv
}

// claimOne claims the only job that is due.
func (b *env) claimOne() store.Job {
	b.t.Helper()
	jobs, err := b.Claim(b.t.Context(), workers)
	b.must(err)
	if len(jobs) != 1 {
		b.t.Fatalf("%d jobs were claimed, want 1", len(jobs))
	}
	return jobs[0]
}

func (b *env) wantNothingDue(when string) {
	b.t.Helper()
	jobs, err := b.Claim(b.t.Context(), workers)
	if err != nil || len(jobs) > 0 {
		b.t.Fatalf("%s: %d jobs are due, %v", when, len(jobs), err)
	}
}

// walked is the statuses that an invoice has had.
func (b *env) walked(inv store.Invoice) []fiscal.Status {
	b.t.Helper()
	events, err := b.o.Store.History(b.t.Context(), b.scope, inv.ID)
	b.must(err)
	var list []fiscal.Status
	for _, e := range events {
		if e.Kind == "status_changed" {
			list = append(list, e.Status)
		}
	}
	return list
}

func (b *env) status(inv store.Invoice) fiscal.Status {
	b.t.Helper()
	now, err := b.o.Store.Invoice(b.t.Context(), b.scope, inv.ID)
	b.must(err)
	return now.Status
}

// A worker that dies with a job in hand lets its lease run out; nobody gets the
// job before, and then somebody does.
func TestJobOfADeadWorkerIsClaimedAgain(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		b := newEnv(t, address, Sandbox{})
		inv := b.add("A", "sandbox-scenario/submitted", "submitted")
		dead := b.claimOne()
		if dead.Attempt != 1 || !dead.LeaseUntil.Equal(b.o.Now().Add(wake.MaxLease)) {
			t.Errorf("claimed %+v", dead)
		}
		b.wantNothingDue("while the lease holds")
		b.clock.Advance(wake.MaxLease - time.Microsecond)
		b.wantNothingDue("a moment before the lease ends")
		b.clock.Advance(time.Microsecond)
		again := b.claimOne()
		if again.Attempt != 2 || again.Lease == dead.Lease {
			t.Errorf("claimed again %+v", again)
		}
		b.RunJob(t.Context(), again)
		if got := b.walked(inv); !slices.Equal(got, []fiscal.Status{fiscal.Submitted}) {
			t.Errorf("walked %q", got)
		}
		b.wantNothingDue("at the end")
	})
}

// A worker that was taken for dead comes back with its result: it is refused,
// and what the other did stands.
func TestLostLeaseChangesNothing(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		entered, release := make(chan struct{}), make(chan struct{})
		slow := scripted{step: func(ctx context.Context, w Work) (Result, error) {
			close(entered)
			<-release
			return Sandbox{}.Do(ctx, w)
		}}
		b := newEnv(t, address, slow)
		inv := b.add("A", "sandbox-scenario/processing", "submitted")
		late := b.claimOne()
		done := make(chan struct{})
		go func() {
			defer close(done)
			b.RunJob(t.Context(), late)
		}()
		<-entered
		b.clock.Advance(wake.MaxLease)
		other := b.beside(address, Sandbox{})
		other.RunJob(t.Context(), other.claimOne())
		close(release)
		<-done
		if got := b.walked(inv); !slices.Equal(got, []fiscal.Status{fiscal.Submitted}) {
			t.Errorf("walked %q, want one step", got)
		}
		// Nor has the late one put the job back: its next stage comes as planned.
		b.wantNothingDue("at once")
		b.clock.Advance(scenarioPause)
		if next := other.claimOne(); next.Stage != "processing" || next.Attempt != 1 || next.Cause != "" {
			t.Errorf("the next stage is %+v", next)
		}
	})
}

// The late worker fails: giving the job back is refused as well.
func TestLostLeaseDoesNotGiveTheJobBack(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		failing := scripted{step: func(context.Context, Work) (Result, error) { return Result{}, errors.New("out of reach") }}
		b := newEnv(t, address, failing)
		b.add("A", "sandbox-scenario/processing", "submitted")
		late := b.claimOne()
		b.clock.Advance(wake.MaxLease)
		other := b.beside(address, Sandbox{})
		mine := other.claimOne()
		b.RunJob(t.Context(), late)
		other.RunJob(t.Context(), mine)
		b.clock.Advance(scenarioPause)
		if next := other.claimOne(); next.Stage != "processing" || next.Cause != "" {
			t.Errorf("the next stage is %+v", next)
		}
	})
}

func TestRetriesWaitLongerEachTime(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		broken := true
		b := newEnv(t, address, scripted{step: func(ctx context.Context, w Work) (Result, error) {
			if broken {
				return Result{}, fmt.Errorf("attempt %d fails", w.Job.Attempt)
			}
			return Sandbox{}.Do(ctx, w)
		}})
		inv := b.add("A", "sandbox-scenario/processing", "submitted")
		for attempt := int64(1); attempt <= 12; attempt++ {
			job := b.claimOne()
			if job.Attempt != attempt {
				t.Fatalf("attempt %d, want %d", job.Attempt, attempt)
			}
			if attempt > 1 && job.Cause.String() != fmt.Sprintf("attempt %d fails", attempt-1) {
				t.Errorf("attempt %d finds the error %q", attempt, job.Cause.String())
			}
			b.RunJob(t.Context(), job)
			wait := min(time.Second<<attempt, 5*time.Minute)
			b.clock.Advance(wait - time.Microsecond)
			b.wantNothingDue(fmt.Sprintf("just before %s after attempt %d", wait, attempt))
			b.clock.Advance(time.Microsecond)
		}
		if got := b.status(inv); got != fiscal.Queued {
			t.Errorf("failures moved it to %s", got)
		}
		broken = false
		b.RunJob(t.Context(), b.claimOne())
		b.clock.Advance(scenarioPause)
		if next := b.claimOne(); next.Attempt != 1 || next.Cause != "" || next.Stage != "processing" {
			t.Errorf("success does not reset the count of attempts: %+v", next)
		}
	})
}

func TestUnknownStageIsRetried(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		b := newEnv(t, address, Sandbox{})
		for _, tt := range []struct{ plan, stage string }{
			{"sandbox-scenario/accepted", "nonsense"}, {"sandbox-scenario/accepted", ""}, {"sandbox-scenario/none", "submitted"},
			{"live", "issue"}, {"", "submitted"}, {"sandbox-scenario/rejected", "accepted"},
		} {
			inv := b.add(tt.plan+" "+tt.stage, tt.plan, tt.stage)
			b.RunJob(t.Context(), b.claimOne())
			b.clock.Advance(2 * time.Second)
			again := b.claimOne()
			if again.Attempt != 2 || !strings.Contains(again.Cause.String(), fmt.Sprintf("%q", tt.stage)) || b.status(inv) != fiscal.Queued {
				t.Errorf("%s at %q: %+v, %s", tt.plan, tt.stage, again, b.status(inv))
			}
			// It is never given up: out of the way of the next case.
			b.must(b.o.Store.Update(t.Context(), func(tx *store.Tx) error { return tx.Do(t.Context(), new(store.Batch).FinishJob(again)) }))
		}
	})
}

// A step to a status that the table does not allow is not made.
func TestForbiddenStatusChangeIsRetried(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		b := newEnv(t, address, scripted{step: func(context.Context, Work) (Result, error) { return Result{Move: &Move{Status: fiscal.Delivered}}, nil }})
		inv := b.add("A", "x", "y")
		b.RunJob(t.Context(), b.claimOne())
		b.clock.Advance(2 * time.Second)
		if job := b.claimOne(); !strings.Contains(job.Cause.String(), "cannot become") {
			t.Errorf("the job says %q", job.Cause.String())
		}
		if got := b.walked(inv); len(got) != 0 || b.status(inv) != fiscal.Queued {
			t.Errorf("walked %q to %s", got, b.status(inv))
		}
	})
}

// Two nodes work off one queue: each stage is done once, in its order.
func TestTwoRunnersDoAStageOnce(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		var mu sync.Mutex
		done := map[string]int{}
		plan := scripted{step: func(_ context.Context, w Work) (Result, error) {
			mu.Lock()
			done[w.Job.DocumentID+" "+w.Job.Stage]++
			mu.Unlock()
			path := []string{"submitted", "processing", "accepted"}
			at := slices.Index(path, w.Job.Stage)
			m := &Move{Status: fiscal.Status(path[at]), Cause: "test"}
			if at+1 < len(path) {
				m.Next = path[at+1]
			}
			return Result{Move: m}, nil
		}}
		b := newEnv(t, address, plan)
		const documents = 30
		var all []store.Invoice
		for i := range documents {
			all = append(all, b.add(fmt.Sprint(i), "test", "submitted"))
		}
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		var running sync.WaitGroup
		for _, p := range []*env{b, b.beside(address, plan)} {
			running.Go(func() { p.Run(ctx) })
		}
		deadline := time.After(time.Minute)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for left := documents; left > 0; {
			select {
			case <-tick.C:
			case <-deadline:
				t.Fatalf("%d documents are not done", left)
			}
			list, err := b.o.Store.ListInvoices(t.Context(), b.scope, store.InvoiceFilter{Status: fiscal.Accepted, Limit: documents})
			b.must(err)
			left = documents - len(list)
		}
		cancel()
		running.Wait()
		want := []fiscal.Status{fiscal.Submitted, fiscal.Processing, fiscal.Accepted}
		for _, inv := range all {
			if diff := cmp.Diff(want, b.walked(inv)); diff != "" {
				t.Errorf("walked (-want +got):\n%s", diff)
			}
		}
		for stage, n := range done {
			if n != 1 {
				t.Errorf("%s was done %d times", stage, n)
			}
		}
		b.wantNothingDue("at the end")
	})
}

// A claim that was not committed is no claim: its jobs are somebody else's.
func TestUncommittedClaimReturnsNoJobs(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		b := newEnv(t, address, Sandbox{})
		b.add("A", "sandbox-scenario/submitted", "submitted")
		db := storetest.OpenSQL(t, address)
		// The row that a claim adds has no parent, which is found out at the commit.
		poison := []string{
			`CREATE TABLE poison (x TEXT REFERENCES taxpayers (id) DEFERRABLE INITIALLY DEFERRED)`,
			`CREATE TRIGGER poisoned AFTER UPDATE ON jobs BEGIN INSERT INTO poison VALUES ('nobody'); END`,
		}
		if b.o.Store.Engine() == "postgres" {
			poison = append(poison[:1],
				`CREATE FUNCTION poison() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN INSERT INTO poison VALUES ('nobody'); RETURN NEW; END $$`,
				`CREATE TRIGGER poisoned AFTER UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION poison()`)
		}
		for _, s := range poison {
			_, err := db.ExecContext(t.Context(), s)
			b.must(err)
		}
		jobs, err := b.Claim(t.Context(), workers)
		if !errors.Is(err, store.ErrUnavailable) {
			t.Fatalf("the commit was to fail, got %v", err)
		}
		if len(jobs) != 0 {
			t.Errorf("%d jobs in spite of it", len(jobs))
		}
	})
}
