package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/fiscalhub/fiscalhub/internal/capacity"
	"github.com/fiscalhub/fiscalhub/internal/dgii"
	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/inbox"
	"github.com/fiscalhub/fiscalhub/internal/metric"
	"github.com/fiscalhub/fiscalhub/internal/needtest"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// checkMetrics checks a scrape after the demo: it has every metric that docs/metrics.md
// names and no other one of ours, and the parser and the linter of promtool accept it.
func checkMetrics(t *testing.T, scrape []byte) {
	t.Helper()
	page, err := os.ReadFile("../../docs/metrics.md")
	must(t, err)
	documented, scraped := map[string]string{}, map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^### `(\\w+)`\n\n(\\w+)").FindAllSubmatch(page, -1) {
		documented[string(m[1])] = string(m[2])
	}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (fiscalhub_\w+) (\w+)$`).FindAllSubmatch(scrape, -1) {
		scraped[string(m[1])] = string(m[2])
	}
	for name, kind := range documented {
		if scraped[name] != kind {
			t.Errorf("the page has the %s %s, and the scrape a %q", kind, name, scraped[name])
		}
	}
	for name := range scraped {
		if documented[name] == "" {
			t.Errorf("the page does not have %s", name)
		}
	}
	for _, want := range []string{
		`fiscalhub_verdict_seconds_count{status="rejected"} 1`, `fiscalhub_webhook_endpoints{status="enabled"} 1`,
		`fiscalhub_authority_circuit_open{service="reception"} 0`, `fiscalhub_database_figures_read 1`,
	} {
		if !bytes.Contains(scrape, []byte(want+"\n")) {
			t.Errorf("the scrape has no line %s", want)
		}
	}
	if bytes.Contains(scrape, []byte("199000102")) {
		t.Error("the scrape has the RNC of a taxpayer")
	}
	checkExposition(t, scrape)
}

// checkExposition checks a scrape with the code of promtool, and with promtool itself.
func checkExposition(t *testing.T, scrape []byte) {
	t.Helper()
	problems, err := promlint.New(bytes.NewReader(scrape)).Lint()
	must(t, err)
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	path, err := exec.CommandContext(t.Context(), "../../scripts/promtool").Output()
	if err != nil {
		needtest.Missing(t, "promtool", err)
	}
	check := exec.CommandContext(t.Context(), strings.TrimSpace(string(path)), "check", "metrics")
	check.Stdin = bytes.NewReader(scrape)
	if text, err := check.CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, text)
	}
}

// The catalogue lists the values of labels that the code uses.
func TestLabelValuesAreThoseOfTheCode(t *testing.T) {
	t.Parallel()
	texts := func(values any) []string { return strings.Fields(strings.Trim(fmt.Sprint(values), "[]")) }
	for name, want := range map[string][]string{
		metric.DifferentTotal: texts(store.DifferenceKinds()),
		metric.ResponseTotal:  texts(inbox.ResponseOutcomes()),
		metric.PeerTotal:      texts([]dgii.PeerOutcome{dgii.PeerToken, dgii.PeerNoToken, dgii.PeerNotSigned}),
		metric.OverdueTotal:   {event.NoVerdictFor15Minutes, event.OutcomeUnknownFor24Hours},
		metric.ShedTotal:      texts([]capacity.Kind{capacity.Service, capacity.Strangers, capacity.Address, capacity.Credential, capacity.Taxpayer}),
		metric.JobLag:         texts(store.Queues()),
	} {
		all := metric.All()
		d := all[slices.IndexFunc(all, func(d metric.Definition) bool { return d.Name == name })]
		if diff := cmp.Diff(want, d.Labels[0].Values); diff != "" {
			t.Errorf("%s (-code +catalogue):\n%s", name, diff)
		}
	}
}
