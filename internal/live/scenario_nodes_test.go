package live_test

import (
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live/livetest"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/wake"
)

// The service is killed between the post and its answer. The next one finds
// an attempt without an end, asks, and sends again only what has not arrived.
func TestKillBetweenRequestAndAnswer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, trial, at, story string
		posts                  int
	}{
		{"it has arrived", "31 plain", "after Submit", "queued outcome_unknown accepted delivered", 1},
		{"it has not", "31 plain", "before Submit", "queued outcome_unknown submitted accepted delivered", 2},
		{"a summary has arrived", "small 32 plain", "after SubmitSummary", "queued outcome_unknown accepted", 1},
		{"a summary has not", "small 32 plain", "before SubmitSummary", "queued outcome_unknown accepted", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, engine := range storetest.Engines() {
				t.Run(engine, func(t *testing.T) {
					t.Parallel()
					all := trials()
					c := newCrashEnv(t, engine, all[slices.IndexFunc(all, func(tr trial) bool { return tr.name == tt.trial })])
					c.begin(t)
					p, killed := &points{}, make(chan struct{})
					p.stop = func(n int) {
						if p.names[n-1] == tt.at {
							runtime.Goexit()
						}
					}
					first := c.service(t, c.store, p)
					go func() {
						defer close(killed)
						first.Drive(time.Hour)
					}()
					<-killed
					if last := p.names[len(p.names)-1]; last != tt.at {
						t.Fatalf("it ended at %q", last)
					}
					open, err := c.store.Attempts(t.Context(), c.scope, c.inv.DocumentID)
					if err != nil || len(open) != 1 || !open[0].ClosedAt.IsZero() {
						t.Fatalf("what was left is %+v, %v; want an open attempt", open, err)
					}
					c.clock.Advance(wake.MaxLease + time.Second)
					w := c.service(t, storetest.Open(t, c.address, c.clock.Now), &points{})
					w.Drive(12 * time.Hour)
					w.Want(c.inv, tt.story)
					wantPosts(tt.posts)(t, w, c.inv)
					c.audit(t, w, tt.posts, 1)
				})
			}
		})
	}
}

// crowd works off the queue as drive does, but all that is due at a time.
func (w *env) crowd(most time.Duration, nodes ...*pipeline.Pipeline) {
	w.T.Helper()
	end := w.Now().Add(most)
	for range 10_000 {
		var busy sync.WaitGroup
		found := 0
		for _, node := range append(nodes, w.Pipeline) {
			jobs, err := node.Claim(w.T.Context(), livetest.MaxClaim)
			w.Must(err)
			for _, job := range jobs {
				busy.Go(func() { node.RunJob(w.T.Context(), job) })
			}
			found += len(jobs)
		}
		busy.Wait()
		if found > 0 {
			continue
		}
		next, err := w.Store().NextJob(w.T.Context(), w.Options.Env, w.Now())
		if err != nil || next.After(end) {
			return
		}
		w.Clock.Advance(max(next.Sub(w.Now()), time.Microsecond))
	}
	w.T.Fatal("the queue does not come to an end")
}

// The token dies in the middle of a batch. One is fetched for all of
// them, and every document arrives once. TOKEN_DOCUMENTS says how many; the
// scenario has 500.
func TestTokenExpiresWithinABatch(t *testing.T) {
	t.Parallel()
	documents := livetest.Number(t, "TOKEN_DOCUMENTS", 40)
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		w.Must(w.Sim.Configure(func(c *simulator.Config) { c.JournalSize = 100 * documents }))
		w.Rule(1, simulator.Token, simulator.Action{Fault: "F09", Variant: "expires-after", After: documents / 2})
		made := make([]store.Invoice, documents)
		for i := range made {
			made[i] = w.Create(fiscal.Consumer, 1000)
		}
		w.crowd(time.Hour)
		arrived := map[string]int{}
		refused := 0
		for _, r := range w.Asked(simulator.RFCE) {
			if r.Status == http.StatusUnauthorized {
				refused++
				continue
			}
			arrived[r.ENCF]++
		}
		for i, inv := range made {
			w.Want(inv, "queued accepted")
			wantPosts(1)(t, w, inv)
			if encf := fmt.Sprintf("E32%010d", i+1); arrived[encf] != 1 {
				t.Errorf("%s arrived %d times", encf, arrived[encf])
			}
		}
		if n := len(w.Asked(simulator.Token)); n != 2 || refused == 0 || refused > 8 {
			t.Errorf("%d tokens were fetched, and %d calls refused; want 2, and no more refused than may be under way", n, refused)
		}
		w.Clean()
	})
}

// Two maxClaim ask for the result of the same document. Whether one comes
// first or both are at it, neither asks too often, and each change is recorded once.
func TestTwoNodesPollTheSameDocument(t *testing.T) {
	t.Parallel()
	t.Run("side by side", func(t *testing.T) {
		t.Parallel()
		storetest.EachAddress(t, func(t *testing.T, address string) {
			w := newEnv(t, address, envOptions{})
			w.Must(w.Sim.Configure(func(c *simulator.Config) { c.ValidationDelay = simulator.Fixed(time.Minute) }))
			made := make([]store.Invoice, 6)
			for i := range made {
				made[i] = w.Create(fiscal.FiscalCredit, 1000)
			}
			w.Drive(0) // sent, and not asked about
			other := w.otherNode().Pipeline
			for range 600 {
				var both sync.WaitGroup
				for _, node := range []*pipeline.Pipeline{w.Pipeline, other} {
					both.Go(func() {
						jobs, err := node.Claim(t.Context(), livetest.MaxClaim)
						if err != nil {
							t.Error(err)
						}
						for _, job := range jobs {
							node.RunJob(t.Context(), job)
						}
					})
				}
				both.Wait()
				next, err := w.Store().NextJob(t.Context(), w.Options.Env, w.Now())
				if err != nil {
					break
				}
				w.Clock.Advance(max(next.Sub(w.Now()), 0))
			}
			for _, inv := range made {
				w.Want(inv, "queued submitted processing accepted")
			}
			w.Clean()
		})
	})
	// The first stands still with its question until the other has taken over.
	for _, engine := range storetest.Engines() {
		t.Run("one after the other, "+engine, func(t *testing.T) {
			t.Parallel()
			c := newCrashEnv(t, engine, trials()[0])
			whole := c.survive(t)
			for _, at := range []string{"before Result", "after Result"} {
				n := slices.Index(whole, at) + 1
				if n == 0 {
					t.Fatalf("no %s in %q", at, whole)
				}
				c.overtaken(t, n, false)
				c.overtaken(t, n, true)
			}
		})
	}
}

// In process for six hours. The authority is asked as the schedule says,
// each pause up to a fifth longer, and nothing is sent again.
func TestSlowVerdictIsNeverSentAgain(t *testing.T) {
	t.Parallel()
	schedule := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute}
	for range 12 {
		schedule = append(schedule, 5*time.Minute)
	}
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		const hours = 6 * time.Hour
		w.Must(w.Sim.Configure(func(c *simulator.Config) { c.ValidationDelay = simulator.Fixed(hours) }))
		inv := w.Create(fiscal.FiscalCredit, 1000)
		w.Drive(hours - 30*time.Minute)
		w.Want(inv, "queued submitted processing")
		last := w.Asked(simulator.Reception)[0].At
		for i, r := range w.Asked(simulator.Result) {
			pause := 15 * time.Minute
			if i < len(schedule) {
				pause = schedule[i]
			}
			if took := r.At.Sub(last); took < pause || took > pause+pause/5 {
				t.Errorf("question %d came after %s, want %s and up to a fifth more", i+1, took, pause)
			}
			last = r.At
		}
		w.Drive(2 * time.Hour)
		w.Want(inv, "queued submitted processing accepted")
		wantPosts(1)(t, w, inv)
		w.Clean()
	})
}

// A consumer invoice goes as a summary up to the last cent below 250,000,
// and whole from there.
func TestSummaryBelowTheLimit(t *testing.T) {
	t.Parallel()
	for total, whole := range map[string]bool{"249999.99": false, "250000.00": true} {
		t.Run(total, func(t *testing.T) {
			t.Parallel()
			storetest.EachAddress(t, func(t *testing.T, address string) {
				w := newEnv(t, address, envOptions{})
				inv := w.Add(map[string]any{
					"ecf_type": fiscal.Consumer, "issue_date": "2026-11-14", "currency": "DOP", "payment_type": "cash",
					"buyer": map[string]any{"legal_name": "Comprador, SRL", "tax_id": livetest.BuyerRNC},
					"lines": []any{map[string]any{
						"line_id": "1", "description": "Cosa", "item_kind": "product", "quantity": "1", "unit_price": total, "discount": nil, "taxes": []any{},
					}},
					"declared_totals": map[string]any{"subtotal": total, "discount_total": "0", "tax_total": "0", "total": total},
				})
				w.Drive(time.Hour)
				story, posts := "queued accepted", map[simulator.Service]int{simulator.RFCE: 1}
				if whole {
					story, posts = "queued submitted accepted", map[simulator.Service]int{simulator.Reception: 1}
				}
				w.Want(inv, story)
				for _, service := range []simulator.Service{simulator.RFCE, simulator.Reception} {
					if n := len(w.Asked(service)); n != posts[service] {
						t.Errorf("%d posts to %s, want %d", n, service, posts[service])
					}
				}
				issued, err := w.Store().IssuedDocument(t.Context(), w.Scope, inv.DocumentID)
				if got := w.Read(inv); err != nil || (got.TrackID != "") != whole || (issued.Summary == nil) != whole {
					t.Errorf("track id %q, a summary of %d bytes, %v", got.TrackID, len(issued.Summary), err)
				}
				w.Clean()
			})
		})
	}
}

// The range expires at midnight in the country. What was accepted before
// waits for another one, and no number is given after it.
func TestNumberRangeExpiresAtMidnight(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		// The last moments of 2027-12-31, four hours behind UTC.
		midnight := time.Date(2028, 1, 1, 4, 0, 0, 0, time.UTC)
		w.Clock.Advance(midnight.Add(-time.Minute).Sub(w.Now()))
		before := w.Create(fiscal.FiscalCredit, 1000)
		w.Drive(0)
		late := w.Create(fiscal.FiscalCredit, 1000)
		w.Clock.Advance(midnight.Add(2 * time.Second).Sub(w.Now())) // what is signed says two seconds less
		w.Drive(30 * time.Second)
		if got := w.Read(late).ENCF; got != "" {
			t.Errorf("%s was given after the range had expired", got)
		}
		missing, err := w.Plan.Ready(t.Context(), w.Scope, fiscal.FiscalCredit)
		if got := livetest.Codes(missing); err != nil || !slices.Equal(got, []string{"sequence.expired"}) {
			t.Errorf("missing %q, %v", got, err)
		}
		expires, err := fiscal.ParseDate("2028-12-31")
		w.Must(err)
		w.Must(w.Store().Update(t.Context(), func(tx *store.Tx) error {
			return tx.AddNumberRange(t.Context(), store.NumberRange{
				Scope: w.Scope, ID: store.NewID(), Type: fiscal.FiscalCredit, First: 20_000_001, Last: 20_000_009, Next: 20_000_001, Expires: expires, CreatedAt: w.Now(),
			})
		}))
		w.Must(w.Sim.UpdateTaxpayer(livetest.IssuerRNC, func(t *simulator.Taxpayer) error {
			t.Ranges = append(t.Ranges, simulator.Range{Type: "31", From: 20_000_001, To: 20_000_009, Expires: "2028-12-31"})
			return nil
		}))
		w.Drive(time.Hour)
		w.Want(before, "queued submitted accepted")
		w.Want(late, "queued submitted accepted")
		if got := []string{w.Read(before).ENCF, w.Read(late).ENCF}; !slices.Equal(got, []string{"E310000000001", "E310020000001"}) {
			t.Errorf("numbers %q", got)
		}
		w.Clean()
	})
}

// The clock of the machine is set while a document is being sent and
// another one waits. Nothing is dated by a wrong clock, no number is given
// twice, and all comes to its end.
func TestClockOfTheMachineIsSet(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{time.Hour, -time.Hour, 24 * time.Hour, -24 * time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			t.Parallel()
			for _, engine := range storetest.Engines() {
				t.Run(engine, func(t *testing.T) {
					t.Parallel()
					setClock(t, newCrashEnv(t, engine, trials()[0]), by)
				})
			}
		})
	}
}

func setClock(t *testing.T, c *crashEnv, by time.Duration) {
	t.Helper()
	var off atomic.Int64
	now := func() time.Time { return c.clock.Now().Add(time.Duration(off.Load())) }
	c.client.Now = now
	service := func(p *points) *env {
		w := c.service(t, c.store, p)
		w.Options.Now = now
		w.Start()
		w.Made = c.made
		return w
	}
	c.begin(t)
	sent := c.inv
	stands, goOn, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	slowly, other := &points{}, service(&points{})
	slowly.stop = func(n int) {
		if strings.HasPrefix(slowly.names[n-1], "after Submit") && slowly.sent() == 1 {
			close(stands)
			<-goOn
		}
	}
	slow := service(slowly)
	go func() {
		defer close(done)
		slow.Drive(0)
	}()
	select {
	case <-stands:
	case <-done:
		t.Fatalf("it was never sent: %q", slowly.names)
	}
	off.Store(int64(by))
	other.Drive(0) // a lease that looks over, or not
	close(goOn)
	<-done
	slow.Drive(10 * time.Minute) // the authority's answers tell that the clocks are apart
	slow.Made = c.made
	waits := slow.Create(fiscal.FiscalCredit, 1000)
	slow.Drive(10 * time.Minute)
	if got := slow.Read(waits).ENCF; got != "" {
		t.Errorf("%s was signed by a clock that is %s off", got, by)
	}
	off.Store(0)
	// What was put off by the wrong clock comes due by the right one.
	c.clock.Advance(max(by, 0))
	other.Drive(6 * time.Hour)
	for i, inv := range []store.Invoice{sent, waits} {
		got := other.Read(inv)
		if want := fmt.Sprintf("E31%010d", i+1); got.Status != fiscal.Delivered || got.ENCF != want {
			t.Errorf("%s is %s under %s, want delivered under %s", inv.ExternalID, got.Status, got.ENCF, want)
		}
		c.inv = inv
		c.auditHistory(t, other, got)
	}
	if n := len(c.sim.Documents(simulator.Filter{})); n != 2 {
		t.Errorf("the authority has %d documents", n)
	}
	for _, v := range c.sim.Violations() {
		if v.Kind != simulator.TokenAgain { // by our clock the old one was over
			t.Errorf("violation: %s", v)
		}
	}
}
