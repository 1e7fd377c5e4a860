package monitor

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/metric"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// scrape returns the series of a collector, as name{values of the labels} value.
func scrape(t *testing.T, m *Monitor) (all []string) {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	gathered, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range gathered {
		for _, one := range family.GetMetric() {
			var labels []string
			for _, l := range one.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			all = append(all, fmt.Sprintf("%s{%s} %g", family.GetName(), strings.Join(labels, ","), one.GetGauge().GetValue()))
		}
	}
	return all
}

func newMonitor(t *testing.T, s *store.Store, env fiscal.Environment, now func() time.Time, log *bytes.Buffer) *Monitor {
	t.Helper()
	m, err := New(Options{Store: s, Env: env, Now: now, Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Figures are read again after ten seconds, and are missing while the database does not
// answer.
func TestFiguresAreCachedAndMayBeMissing(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		clock, log := storetest.NewClock(), &bytes.Buffer{}
		storetest.Open(t, address, clock.Now) // migrates the database
		s, err := store.Open(t.Context(), address, store.Options{
			Now: clock.Now, Log: slog.New(slog.DiscardHandler), NoMigrate: true,
			DatabaseNow: func(context.Context) (time.Time, error) { return clock.Now(), nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		scope := store.Scope{Environment: fiscal.Production, TaxpayerID: store.NewID()}
		m := newMonitor(t, s, scope.Environment, clock.Now, log)
		suspended := func() string {
			t.Helper()
			for _, line := range scrape(t, m) {
				if found, ok := strings.CutPrefix(line, metric.Jobs+"{submit,suspended} "); ok {
					return found
				}
			}
			return "none"
		}
		wants := func(want string) {
			t.Helper()
			if got := suspended(); got != want {
				t.Errorf("%s suspended jobs, want %s", got, want)
			}
		}
		wants("0")
		if err := s.ImportJobs(t.Context(), scope, "submit", 1, 7, clock.Now().Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
		wants("0")
		clock.Advance(readEvery)
		wants("7")
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		wants("7")
		for range 2 {
			clock.Advance(readEvery)
			if got := scrape(t, m); !slices.Equal(got, []string{metric.FiguresRead + "{} 0"}) {
				t.Errorf("without a database: %v", got)
			}
		}
		if n := strings.Count(log.String(), "Cannot read the figures"); n != 1 {
			t.Errorf("%d lines in the log, want 1: %s", n, log)
		}
	})
}

func TestFiguresOfAllTaxpayersAreTheWorstOfThem(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	day := 24 * time.Hour
	f := figures{
		jobs: []store.JobFigure{
			{Queue: store.QueueMain, Stage: "poll", State: "waiting", Jobs: 3, Created: now.Add(-time.Minute), DueAt: now.Add(time.Second)},
			{Queue: store.QueueMain, Stage: "submit", State: "waiting", Jobs: 2, Created: now.Add(-time.Hour), DueAt: now.Add(-4 * time.Second)},
		},
		deliveries: []store.DeliveryFigure{{Status: "failing", Deliveries: 5, Created: now.Add(-day)}},
		endpoints:  map[string]int64{"enabled": 2, "failing": 1},
		ends:       []time.Time{now.Add(40 * day), now.Add(6 * day), now.Add(-day), now.Add(8 * day)},
		numbers:    []store.NumberFigure{{Type: fiscal.Consumer, Left: 500}, {Type: fiscal.Consumer, Left: 99, Fenced: 2}, {Type: fiscal.FiscalCredit, Left: 100}},
	}
	got := map[string]float64{}
	send := func(name string, value float64, labels ...string) { got[name+" "+strings.Join(labels, ",")] = value }
	f.sendJobs(send, true, now)
	f.sendWebhooks(send, now)
	f.sendPreparation(send, now)
	for series, want := range map[string]float64{
		metric.Jobs + " poll,waiting": 3, metric.Jobs + " issue,running": 0, metric.JobAge + " submit,waiting": 3600,
		metric.JobLag + " main": 4, metric.JobLag + " deliver": 0,
		metric.Deliveries + " failing": 5, metric.DeliveryAge + " failing": 86400, metric.DeliveryAge + " enabled": 0, metric.Endpoints + " disabled": 0,
		metric.CertificateRemaining + " ": -86400, metric.TaxpayersExpiring + " 0d": 1, metric.TaxpayersExpiring + " 7d": 2, metric.TaxpayersExpiring + " 30d": 3,
		metric.NumbersLeft + " 32": 99, metric.NumbersLeft + " 31": 100, metric.TaxpayersLow + " 32": 1, metric.TaxpayersLow + " 31": 0, metric.FencedRanges + " ": 2,
	} {
		if value, ok := got[series]; !ok || value != want {
			t.Errorf("%s is %g (%v), want %g", series, value, ok, want)
		}
	}
}

func TestTheSandboxHasOnlyFiguresOfJobs(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	m := newMonitor(t, storetest.Open(t, storetest.Address(t, "sqlite"), clock.Now), fiscal.Sandbox, clock.Now, &bytes.Buffer{})
	want := []string{metric.FiguresRead + "{} 1", metric.JobLag + "{deliver} 0", metric.JobLag + "{main} 0"}
	if got := scrape(t, m); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
