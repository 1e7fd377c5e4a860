package overview

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/metric"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

func (e *env) overview(within store.Within) Overview {
	e.t.Helper()
	o, err := e.reporter.Overview(e.t.Context(), within)
	if err != nil {
		e.t.Fatal(err)
	}
	return o
}

// needs returns what needs a person, as kind, count and address.
func needs(o Overview) (all []string) {
	for _, a := range o.Attention {
		all = append(all, fmt.Sprintf("%s %d %s", a.Kind, a.Count, a.Address()))
	}
	return all
}

func TestTheOverviewShowsWhatNeedsAPerson(t *testing.T) {
	eachEngine(t, fiscal.Production, func(t *testing.T, e *env) {
		now := e.clock.Now()
		submitted := func(scope store.Scope, id string) store.Invoice {
			return e.become(e.invoice(scope, id, "x", "", "1.00", nil), fiscal.Submitted, "t-"+id)
		}
		e.become(submitted(e.a, "accepted"), fiscal.Accepted, "")
		e.become(submitted(e.a, "rejected"), fiscal.Rejected, "")
		e.become(submitted(e.b, "unknown"), fiscal.OutcomeUnknown, "")
		e.become(e.invoice(e.a, "failed", "x", "", "1.00", nil), fiscal.ValidationFailed, "")
		e.invoice(e.a, "old rejected", "x", "", "1.00", func(inv *store.Invoice) {
			inv.Status, inv.CreatedAt = fiscal.Rejected, now.Add(-8*24*time.Hour)
		})
		e.update(func(ctx context.Context, tx *store.Tx) error {
			return tx.AddNumberRange(ctx, store.NumberRange{Scope: e.a, ID: store.NewID(), Type: fiscal.FiscalCredit, First: 1, Last: 50, Next: 1, CreatedAt: now})
		})
		e.update(func(ctx context.Context, tx *store.Tx) error {
			n := store.NumberRange{Scope: e.b, ID: store.NewID(), Type: fiscal.FiscalCredit, First: 1, Last: 5000, Next: 1, CreatedAt: now}
			if err := tx.AddNumberRange(ctx, n); err != nil {
				return err
			}
			return tx.Do(ctx, new(store.Batch).FenceNumberRange(n, now))
		})
		e.index()
		from := fiscal.DateOf(now.Add(-6 * 24 * time.Hour)).String()
		all := e.overview(e.everything())
		want := []string{
			"outcome_unknown 1 /console/documents?status=outcome_unknown", "fence 1 /console/authority",
			"rejected 1 /console/documents?from=" + from + "&status=rejected", "validation_failed 1 /console/documents?from=" + from + "&status=validation_failed",
			"range_low 1 /console/taxpayers?needs=ranges",
		}
		if diff := cmp.Diff(want, needs(all)); diff != "" {
			t.Errorf("the operator (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(want[2:], needs(e.overview(only(e.a)))); diff != "" {
			t.Errorf("a taxpayer (-want +got):\n%s", diff)
		}
		today := map[fiscal.Status]int64{fiscal.Accepted: 1, fiscal.Rejected: 1, fiscal.OutcomeUnknown: 1, fiscal.ValidationFailed: 1}
		if diff := cmp.Diff(today, all.Today); diff != "" {
			t.Errorf("today (-want +got):\n%s", diff)
		}
		if n := len(all.Hours); n != hoursShown || all.Hours[n-1].Total() != 4 {
			t.Errorf("%d hours, the last has %d documents", n, all.Hours[len(all.Hours)-1].Total())
		}
		if n := len(all.Days); n != daysShown || all.Days[n-9].Documents[fiscal.Rejected] != 1 {
			t.Errorf("%d days: %+v", n, all.Days)
		}
		if v := all.Verdicts.Day; v.Documents != 3 || v.Median <= 0 || v.P99 < v.Median {
			t.Errorf("verdicts %+v", v)
		}
		fences, err := e.reporter.Fences(t.Context(), e.everything())
		if err != nil || len(fences) != 1 || fences[0].RNC != "199000021" {
			t.Errorf("fences %+v, %v", fences, err)
		}
	})
}

// A contingency that has ended leaves documents with a deadline.
func TestTheOverviewShowsDeadlines(t *testing.T) {
	eachEngine(t, fiscal.Production, func(t *testing.T, e *env) {
		started := e.clock.Now()
		e.update(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.StartContingency(ctx, fiscal.Production, started)
			return err
		})
		inv := e.invoice(e.a, "waits", "x", "", "1.00", nil)
		e.update(func(ctx context.Context, tx *store.Tx) error {
			return tx.TakeOverJob(ctx, store.Job{Scope: e.a, DocumentID: inv.DocumentID, Plan: "live", Stage: "submit", RunAt: started, CreatedAt: started})
		})
		if o := e.overview(e.everything()); !o.Authority.InContingency() || len(o.Attention) != 0 {
			t.Errorf("during the contingency: %+v", o.Attention)
		}
		e.clock.Advance(time.Hour)
		ended := e.clock.Now()
		e.update(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.EndContingency(ctx, fiscal.Production, ended)
			return err
		})
		o := e.overview(only(e.a))
		if diff := cmp.Diff([]string{"deadline 1 /console/work?deadline=1", "overdue 1 /console/work?age=15m"}, needs(o)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if got := o.Attention[0].Deadline; !got.Equal(ended.Truncate(time.Microsecond).Add(fiscal.ContingencyTime)) {
			t.Errorf("the deadline is %s", got)
		}
		if o := e.overview(only(e.b)); len(o.Attention) != 0 {
			t.Errorf("another taxpayer: %q", needs(o))
		}
	})
}

// Also the sandbox has API keys that end.
func TestTheOverviewOfTheSandboxShowsEndingKeys(t *testing.T) {
	eachEngine(t, fiscal.Sandbox, func(t *testing.T, e *env) {
		now := e.clock.Now()
		e.update(func(ctx context.Context, tx *store.Tx) error {
			return tx.CreateCredential(ctx, store.Credential{
				ID: store.NewID(), Prefix: "abcdefghijkl", Environment: fiscal.Sandbox, TaxpayerID: e.a.TaxpayerID, Digest: []byte{1}, CreatedAt: now, ExpiresAt: now.Add(24 * time.Hour),
			})
		})
		if diff := cmp.Diff([]string{"credential_ending 1 /console/keys"}, needs(e.overview(only(e.a)))); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

func TestFiguresOfTheServicesComeFromTheMetrics(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	took := metric.NewHistograms(metric.ExchangeTime)
	registry.MustRegister(took)
	for range 98 {
		took.WithLabelValues("reception", "ok").Observe(0.2)
	}
	took.WithLabelValues("reception", "lost").Observe(25)
	took.WithLabelValues("reception", "rate_limited").Observe(0.06)
	got, err := ServicesOf(registry)
	if err != nil || len(got) == 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, f := range got {
		if f.Service != "reception" {
			continue
		}
		if f.Calls != 100 || f.Failures != 1 || f.Median < 100*time.Millisecond || f.Median > 250*time.Millisecond || f.P99 > time.Second {
			t.Errorf("%+v", f)
		}
		return
	}
	t.Errorf("no reception in %+v", got)
}
