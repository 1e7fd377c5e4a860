package metric

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// Every metric is described for a person who has never seen it, and its name follows the
// rules of Prometheus.
func TestEveryMetricIsDescribed(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, d := range All() {
		if seen[d.Name] || !strings.HasPrefix(d.Name, "fiscalhub_") {
			t.Errorf("%s is there twice, or has another prefix", d.Name)
		}
		seen[d.Name] = true
		if !regexp.MustCompile(`^[A-Z0-9].*\.$`).MatchString(d.Help) || !strings.HasSuffix(d.Bad, ".") {
			t.Errorf("%s: the help or the advice is no sentence: %q, %q", d.Name, d.Help, d.Bad)
		}
		if !slices.Contains(Groups(), d.Group) || (d.Type == Histogram) != (d.Buckets != nil) {
			t.Errorf("%s: group %q, type %s, buckets %v", d.Name, d.Group, d.Type, d.Buckets)
		}
		for _, l := range d.Labels {
			if (l.Values == nil) == (l.Of == "") {
				t.Errorf("%s: the label %s needs either values or an explanation", d.Name, l.Name)
			}
		}
	}
}

// The linter is the one of promtool.
func TestPrometheusAcceptsTheNames(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	for _, d := range All() {
		values := make([]string, len(d.Labels))
		switch d.Type {
		case Counter:
			made := NewCounters(d.Name)
			made.WithLabelValues(values...)
			registry.MustRegister(made)
		case Gauge:
			made := NewGauges(d.Name)
			made.WithLabelValues(values...)
			registry.MustRegister(made)
		case Histogram:
			made := NewHistograms(d.Name)
			made.WithLabelValues(values...)
			registry.MustRegister(made)
		}
	}
	gathered, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(gathered).Lint()
	if err != nil || len(gathered) != len(All()) {
		t.Fatalf("%d of %d metrics, %v", len(gathered), len(All()), err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestSeriesWithKnownLabelsExistFromTheStart(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	registry.MustRegister(NewCounters(ShedTotal), NewCounters(RequestTotal), NewHistograms(CommitTime))
	gathered, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, family := range gathered {
		got[family.GetName()] = len(family.GetMetric())
	}
	if got[ShedTotal] != 5 || got[CommitTime] != 3 || got[RequestTotal] != 0 {
		t.Errorf("series at the start: %v", got)
	}
}
