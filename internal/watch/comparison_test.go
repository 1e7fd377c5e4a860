package watch_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live"
	"github.com/fiscalhub/fiscalhub/internal/live/livetest"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/watch"
)

// Each accepted document is compared once, a day after its acceptance and not before.
// While the authority agrees, there is no alarm and nothing changes.
func TestComparisonOfEqualDocumentsRaisesNoAlarm(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		c := newCompareEnv(t, address)
		c.Must(c.Compare(t.Context())) // the service runs for the first time
		all := c.accepted()
		before := c.rows()
		c.rounds(20, time.Hour)
		if got := c.questions(); len(got) > 0 {
			t.Errorf("asked about %v on the first day", got)
		}
		c.rounds(1, 4*time.Hour)
		c.rounds(20, 2*time.Second)
		got := c.questions()
		slices.Sort(got)
		var want []string
		for _, inv := range all {
			want = append(want, inv.ENCF)
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("asked (-want +got):\n%s", diff)
		}
		if c.alarms() > 0 || len(c.differences()) > 0 {
			t.Errorf("alarms: %v\n%s", c.differences(), c.logged)
		}
		if diff := cmp.Diff(before, c.rows()); diff != "" {
			t.Errorf("the comparison changed rows:\n%s", diff)
		}
		state, err := c.Store().Comparison(t.Context(), c.Options.Env)
		if err != nil || c.Now().Sub(state.ComparedAt) > time.Minute {
			t.Errorf("last compared at %s, %v", state.ComparedAt, err)
		}
		c.Clean()
	})
}

// wrong makes the authority show a document differently.
type wrong func(*compareEnv, store.Invoice)

// shows is an answer to look-ups of the document by its number.
func shows(services []simulator.Service, a simulator.Action) wrong {
	return func(c *compareEnv, inv store.Invoice) {
		for _, service := range services {
			_, err := c.Sim.AddRule(simulator.Rule{Match: simulator.Match{Service: service, ENCF: inv.ENCF}, Action: a})
			c.Must(err)
		}
	}
}

// judged is another verdict.
func judged(code int) wrong {
	return func(c *compareEnv, inv store.Invoice) {
		for _, d := range c.Sim.Documents(simulator.Filter{ENCF: inv.ENCF}) {
			c.Must(c.Sim.ForceVerdict(d.ID, simulator.Verdict{Code: code, Used: true}))
		}
	}
}

// Every kind of difference raises one alarm, however often it is seen. The document, its
// history, its events and the numbers stay as they are. When the authority agrees again,
// the difference ends.
func TestEachDifferenceRaisesOneAlarm(t *testing.T) {
	t.Parallel()
	state := []simulator.Service{simulator.StateLookup}
	missing := shows([]simulator.Service{simulator.StateLookup, simulator.RFCELookup}, simulator.Action{Fault: "F12"})
	other := func(what string) wrong {
		return shows(state, simulator.Action{Fault: "F15", Variant: "other-" + what})
	}
	cases := []struct {
		kind  fiscal.Type
		net   int
		wrong wrong
		want  string
	}{
		{fiscal.FiscalCredit, 1000, missing, "not_found: not_found, not accepted"},
		{fiscal.Consumer, 1000, missing, "not_found: not_found, not accepted"},
		{fiscal.FiscalCredit, 1000, judged(2), "state: rejected, not accepted"},
		{fiscal.Consumer, 1000, judged(2), "state: rejected, not accepted"},
		{fiscal.Consumer, 1000, judged(4), "state: accepted_conditional, not accepted"},
		{fiscal.Consumer, 300_000, other("code"), "security_code: ZZZZZZ, not "},
		{fiscal.FiscalCredit, 1000, other("total"), "total: 1, not 1180.00"},
		{fiscal.Consumer, 1000, other("total"), "total: 1, not 1180.00"},
		{fiscal.FiscalCredit, 1000, other("buyer"), "buyer: 101000000, not " + livetest.BuyerRNC},
	}
	storetest.EachAddress(t, func(t *testing.T, address string) {
		c := newCompareEnv(t, address)
		c.Must(c.Compare(t.Context()))
		made := make([]store.Invoice, len(cases))
		for i, tt := range cases {
			made[i] = c.Create(tt.kind, tt.net)
		}
		c.Drive(time.Hour)
		before := c.rows()
		for i, tt := range cases {
			made[i] = c.Read(made[i])
			tt.wrong(c, made[i])
		}
		days := func(n int) {
			for range n {
				c.rounds(1, 25*time.Hour)
				c.rounds(2*len(cases), 10*time.Second)
			}
		}
		days(3)
		open := c.differences()
		for i, tt := range cases {
			if n := len(slices.DeleteFunc(slices.Clone(open), func(d string) bool { return !strings.HasPrefix(d, made[i].ExternalID+" "+tt.want) })); n != 1 {
				t.Errorf("%s: want the difference %q", made[i].ExternalID, tt.want)
			}
			if n := len(slices.DeleteFunc(c.questions(), func(encf string) bool { return encf != made[i].ENCF })); n < 3 {
				t.Errorf("%s: asked %d times in three days; the difference is not looked at every day", made[i].ExternalID, n)
			}
		}
		if n := c.alarms(); n != len(cases) || len(open) != len(cases) {
			t.Errorf("%d alarms in three days, want %d: %q\n%s", n, len(cases), open, c.logged)
		}
		if strings.Contains(c.logged.String(), "ZZZZZZ") {
			t.Error("the log contains a security code")
		}
		if diff := cmp.Diff(before, c.rows()); diff != "" {
			t.Errorf("the comparison changed rows:\n%s", diff)
		}
		c.Sim.ClearRules()
		for _, inv := range made {
			judged(1)(c, inv)
		}
		days(1)
		if got := c.differences(); len(got) > 0 || c.alarms() != len(cases) {
			t.Errorf("the authority agrees again, and there are %q, %d alarms", got, c.alarms())
		}
	})
}

// A document of another provider under our number shows as another code, not as a
// missing document.
func TestForeignDocumentShowsAsAnotherCode(t *testing.T) {
	t.Parallel()
	c := newCompareEnv(t, storetest.Address(t, "sqlite"))
	c.Must(c.Compare(t.Context()))
	inv := c.Create(fiscal.FiscalCredit, 1000)
	c.Drive(time.Hour)
	c.Must(c.Sim.Reset(nil)) // the authority forgets our document, and the other provider's gets the number
	for _, taxpayer := range []simulator.Taxpayer{simulator.Baseline(livetest.IssuerRNC, livetest.Holder, "2027-12-31"), simulator.Baseline(livetest.BuyerRNC, "00199000019", "2027-12-31")} {
		c.Must(c.Sim.AddTaxpayer(taxpayer))
	}
	other := c.otherProvider()
	theirs := other.Create(fiscal.FiscalCredit, 2000)
	c.Clock.Advance(2 * time.Hour) // the tokens of before are not known any more
	other.Drive(time.Hour)
	if got := other.Read(theirs).ENCF; got != c.Read(inv).ENCF {
		t.Fatalf("the other provider has %s", got)
	}
	c.rounds(1, 25*time.Hour)
	got := strings.Join(c.differences(), "\n")
	if !strings.Contains(got, "security_code") || !strings.Contains(got, "total: 2360, not 1180.00") || strings.Contains(got, "not_found") {
		t.Errorf("differences:\n%s", got)
	}
}

// An authority that is out of reach, or whose look-ups fail, raises no alarm and loses no
// progress: the document is compared when the authority answers again.
func TestComparisonWaitsForTheAuthority(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(c *compareEnv, down bool){
		"maintenance": func(c *compareEnv, down bool) {
			c.Must(c.Sim.Configure(func(s *simulator.Config) { s.Maintenance = down }))
		},
		"the look-up fails": func(c *compareEnv, down bool) {
			c.Sim.ClearRules()
			if down {
				c.Rule(0, simulator.StateLookup, simulator.Action{Fault: "F05"})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.EachAddress(t, func(t *testing.T, address string) {
				c := newCompareEnv(t, address)
				c.Must(c.Compare(t.Context()))
				inv := c.Create(fiscal.FiscalCredit, 1000)
				c.Drive(time.Hour)
				before := c.rows()
				set(c, true)
				c.rounds(1, 25*time.Hour)
				c.rounds(5, 3*time.Minute)
				state, err := c.Store().Comparison(t.Context(), c.Options.Env)
				if err != nil || state.Turn != 0 || c.alarms() > 0 || len(c.differences()) > 0 {
					t.Errorf("%+v, %v; %d alarms", state, err, c.alarms())
				}
				set(c, false)
				asked := len(c.questions())
				c.rounds(10, 4*time.Minute)
				if got := c.questions(); len(got) != asked+1 || got[asked] != c.Read(inv).ENCF {
					t.Errorf("asked about %q after the outage", got[asked:])
				}
				if diff := cmp.Diff(before, c.rows()); diff != "" {
					t.Errorf("the comparison changed rows:\n%s", diff)
				}
			})
		})
	}
}

// A question that the authority never answers is given up after a while, so that other
// documents are compared.
func TestComparisonSkipsADocumentThatIsNeverAnswered(t *testing.T) {
	t.Parallel()
	c := newCompareEnv(t, storetest.Address(t, "sqlite"))
	c.Must(c.Compare(t.Context()))
	bad, good := c.Create(fiscal.FiscalCredit, 1000), c.Create(fiscal.FiscalCredit, 1000)
	c.Drive(time.Hour)
	bad, good = c.Read(bad), c.Read(good)
	_, err := c.Sim.AddRule(simulator.Rule{Match: simulator.Match{Service: simulator.StateLookup, ENCF: bad.ENCF}, Action: simulator.Action{Fault: "F05"}})
	c.Must(err)
	c.Clock.Advance(25 * time.Hour)
	for range 20 {
		c.Must(c.Client.Probe(t.Context())) // other services answer
		c.rounds(1, 5*time.Minute)
	}
	if got := c.questions(); !slices.Contains(got, good.ENCF) || c.alarms() > 0 {
		t.Errorf("asked about %q; %d alarms", got, c.alarms())
	}
}

// Nothing is asked while a contingency lasts, while another node does not reach the
// authority, and while documents wait for a worker.
func TestComparisonLeavesTheAuthorityToRealWork(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		c := newCompareEnv(t, address)
		c.Must(c.Compare(t.Context()))
		c.Create(fiscal.FiscalCredit, 1000)
		c.Drive(time.Hour)
		c.Clock.Advance(25 * time.Hour)
		quiet := func(when string) {
			t.Helper()
			c.rounds(5, time.Minute)
			if got := c.questions(); len(got) > 0 {
				t.Fatalf("%s: asked about %q", when, got)
			}
		}
		update := func(fn func(ctx context.Context, tx *store.Tx) error) {
			t.Helper()
			c.Must(c.Store().Update(t.Context(), func(tx *store.Tx) error { return fn(t.Context(), tx) }))
		}
		env := c.Options.Env
		update(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.StartContingency(ctx, env, c.Now())
			return err
		})
		quiet("contingency")
		update(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.EndContingency(ctx, env, c.Now())
			return err
		})
		update(func(ctx context.Context, tx *store.Tx) error { return tx.ReportFailure(ctx, env, c.Now()) })
		quiet("another node fails")
		c.Clock.Advance(time.Second)
		c.Create(fiscal.FiscalCredit, 1000)
		jobs, err := c.Claim(t.Context(), 1)
		if err != nil || len(jobs) != 1 {
			t.Fatalf("claimed %v, %v", jobs, err)
		}
		c.Must(c.Store().Commit(t.Context(), new(store.Batch).SuspendJob(jobs[0], c.Now(), c.Now(), "no answer")))
		update(func(ctx context.Context, tx *store.Tx) error { return tx.ReportAnswer(ctx, env, c.Now()) })
		quiet("a suspended document waits for a worker")
		c.Drive(time.Hour)
		c.Create(fiscal.FiscalCredit, 1000)
		quiet("a document waits for a worker")
		c.Drive(time.Hour)
		c.rounds(1, time.Minute)
		if got := c.questions(); len(got) != 1 {
			t.Errorf("asked about %q, want one document", got)
		}
	})
}

// Two nodes share one budget: together they ask no more often than one.
func TestNodesShareTheBudgetOfTheComparison(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		c := newCompareEnv(t, address)
		c.Must(c.Compare(t.Context()))
		const documents = 12
		for range documents {
			c.Create(fiscal.Consumer, 1000)
		}
		c.Drive(time.Hour)
		other := *c
		other.restart(nil)
		c.Clock.Advance(25 * time.Hour)
		const seconds = 16
		for range 2 * seconds {
			c.Clock.Advance(500 * time.Millisecond)
			errs := make(chan error, 2)
			for _, node := range []*watch.Comparer{c.Comparer, other.Comparer} {
				go func() { errs <- node.Compare(t.Context()) }()
			}
			c.Must(errors.Join(<-errs, <-errs))
		}
		got := c.questions()
		if most := seconds*perMinute/60 + 1; len(got) > most || len(got) < most-2 {
			t.Errorf("%d questions in %d s, want about %d", len(got), seconds, most)
		}
		slices.Sort(got)
		if n := len(slices.Compact(slices.Clone(got))); n != len(got) {
			t.Errorf("asked twice: %q", got)
		}
	})
}

// New documents are found, older ones come again, and a restart continues where the
// comparison was, also when a node died in the middle.
func TestComparisonContinuesAfterARestart(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		c := newCompareEnv(t, address)
		old := []store.Invoice{c.Create(fiscal.FiscalCredit, 1000), c.Create(fiscal.FiscalCredit, 1000)}
		c.Drive(time.Hour)
		c.Clock.Advance(48 * time.Hour) // they were accepted before the first comparison
		fresh := c.Create(fiscal.FiscalCredit, 1000)
		c.Drive(time.Hour)
		first, second, third := c.Read(old[0]).ENCF, c.Read(old[1]).ENCF, c.Read(fresh).ENCF
		c.Must(c.Compare(t.Context()))
		c.restart(nil)
		c.rounds(3, 2*time.Second)
		if got, want := c.questions(), []string{first, second}; !slices.Equal(got, want) {
			t.Fatalf("older documents: asked about %q, want %q", got, want)
		}

		c.Clock.Advance(25 * time.Hour)
		c.dies()
		c.restart(nil)
		c.rounds(3, time.Minute) // the claim of the node that died is not over
		if got := c.questions(); len(got) != 2 {
			t.Fatalf("asked about %q while another node held the comparison", got)
		}
		c.rounds(3, 2*time.Minute)
		if got, want := c.questions(), []string{first, second, third}; !slices.Equal(got, want) {
			t.Fatalf("the new document: asked about %q, want %q", got, want)
		}
		c.rounds(3, 24*time.Hour)
		if got := c.questions(); len(got) != 3 {
			t.Fatalf("asked about %q within the month", got[3:])
		}
		c.rounds(1, 30*24*time.Hour)
		c.rounds(5, 2*time.Second)
		if got, want := c.questions()[3:], []string{first, second, third}; !slices.Equal(got, want) {
			t.Errorf("after a month: asked about %q, want %q", got, want)
		}
		if c.alarms() > 0 {
			t.Errorf("alarms:\n%s", c.logged)
		}
	})
}

// A taxpayer whose documents cannot be asked about does not delay the others.
func TestComparisonSkipsATaxpayerWithoutACertificate(t *testing.T) {
	t.Parallel()
	c := newCompareEnv(t, storetest.Address(t, "sqlite"))
	c.Must(c.Compare(t.Context()))
	for range 3 {
		c.Create(fiscal.FiscalCredit, 1000)
	}
	c.Drive(time.Hour)
	c.restart(noIdentities{})
	c.rounds(1, 25*time.Hour)
	c.rounds(10, 2*time.Second)
	state, err := c.Store().Comparison(t.Context(), c.Options.Env)
	if err != nil || state.Turn != 3 || len(c.questions()) > 0 || c.alarms() > 0 {
		t.Errorf("%+v, %v: want three documents skipped; %d alarms", state, err, c.alarms())
	}
	if n := strings.Count(c.logged.String(), "level=WARN"); n != 1 {
		t.Errorf("%d warnings, want one:\n%s", n, c.logged)
	}
}

// The authority shows a document as accepted that we call rejected, by its verdict or by
// the mistake of an operator. The comparison finds it, and the document becomes accepted,
// with an alarm. A rejected document that the authority rejected too, or does not have, or
// has another document for, stays as it is.
func TestComparisonFindsAnAcceptedDocumentThatIsRejected(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		c := newCompareEnv(t, address)
		c.Must(c.Compare(t.Context()))
		cases := []struct {
			kind  fiscal.Type
			net   int
			wrong wrong
			want  fiscal.Status
		}{
			{fiscal.FiscalCredit, 1000, judged(1), fiscal.Accepted},
			{fiscal.FiscalCredit, 1000, judged(4), fiscal.AcceptedConditional},
			{fiscal.Consumer, 1000, judged(1), fiscal.Accepted},
			{fiscal.Consumer, 1000, judged(4), fiscal.AcceptedConditional},
			{fiscal.Consumer, 300_000, judged(1), fiscal.Accepted},
			{fiscal.FiscalCredit, 1000, judged(2), fiscal.Rejected},
			{fiscal.FiscalCredit, 1000, shows([]simulator.Service{simulator.StateLookup}, simulator.Action{Fault: "F12"}), fiscal.Rejected},
			{fiscal.FiscalCredit, 1000, func(c *compareEnv, inv store.Invoice) {
				judged(1)(c, inv)
				shows([]simulator.Service{simulator.StateLookup}, simulator.Action{Fault: "F15", Variant: "other-code"})(c, inv)
			}, fiscal.Rejected},
		}
		for _, service := range []simulator.Service{simulator.Reception, simulator.RFCE} {
			c.Rule(0, service, livetest.Verdict(2, true, "no"))
		}
		made := make([]store.Invoice, len(cases))
		for i, tt := range cases {
			made[i] = c.Create(tt.kind, tt.net)
		}
		c.Drive(time.Hour)
		c.Sim.ClearRules()
		for i, tt := range cases {
			if made[i] = c.Read(made[i]); made[i].Status != fiscal.Rejected {
				t.Fatalf("%s is %s", made[i].ENCF, made[i].Status)
			}
			tt.wrong(c, made[i])
		}
		work := func() {
			c.rounds(1, 25*time.Hour)
			for range 4 * len(cases) {
				c.rounds(1, 10*time.Second)
				c.Drive(0)
			}
		}
		work()
		for i, tt := range cases {
			if got := c.Read(made[i]).Status; got != tt.want {
				t.Errorf("%s is %s, want %s: %s", made[i].ExternalID, got, tt.want, c.Story(made[i]))
			}
			if got := slices.ContainsFunc(c.differences(), func(d string) bool { return strings.HasPrefix(d, made[i].ExternalID+" state: accepted") }); got != (tt.want != fiscal.Rejected) {
				t.Errorf("%s: differences %q", made[i].ExternalID, c.differences())
			}
		}
		if n := strings.Count(c.logged.String(), "level=ERROR msg=\"The tax authority shows a rejected document as accepted."); n != 5 {
			t.Errorf("%d alarms, want 5:\n%s", n, c.logged)
		}
		work()
		work()
		if got := c.differences(); len(got) > 0 {
			t.Errorf("the differences did not end: %q", got)
		}
		c.Drive(time.Hour)
		if waiting, err := c.Store().WaitingDocuments(t.Context(), c.Scope); err != nil || len(waiting) > 0 {
			t.Errorf("still waiting: %+v, %v", waiting, err)
		}
	})
}

// An operator took an accepted document for a rejected one.
func TestComparisonCorrectsTheMistakeOfAnOperator(t *testing.T) {
	t.Parallel()
	for _, kind := range []fiscal.Type{fiscal.FiscalCredit, fiscal.Consumer} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			storetest.EachAddress(t, func(t *testing.T, address string) {
				c := newCompareEnv(t, address)
				c.Must(c.Compare(t.Context()))
				for _, service := range []simulator.Service{simulator.Reception, simulator.RFCE} {
					c.Rule(1, service, simulator.Action{Fault: "F02"})
				}
				inv := c.Create(kind, 1000)
				c.Drive(0)
				_, err := c.Resolver().Resolve(t.Context(), c.Scope, live.Decision{DocumentID: inv.DocumentID, Verdict: fiscal.VerdictRejected, Note: "the portal does not show it"})
				c.Must(err)
				c.rounds(1, 25*time.Hour)
				c.rounds(5, 10*time.Second)
				c.Drive(time.Hour)
				c.Want(inv, "queued outcome_unknown rejected accepted")
				if issued, err := c.Store().IssuedDocument(t.Context(), c.Scope, inv.DocumentID); err != nil || issued.State != store.NumberUsed {
					t.Errorf("the number is %s, want used (%v)", issued.State, err)
				}
			})
		})
	}
}
