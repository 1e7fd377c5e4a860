package deploy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	yaml "github.com/oasdiff/yaml3"

	"github.com/fiscalhub/fiscalhub/internal/metric"
)

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// rule is a rule of Prometheus.
type rule struct {
	Alert, Record, Expr string
	Labels, Annotations map[string]string
}

func rules(t *testing.T) []rule {
	t.Helper()
	var file struct {
		Groups []struct{ Rules []rule }
	}
	if err := yaml.Unmarshal(read(t, "prometheus/rules.yml"), &file); err != nil {
		t.Fatal(err)
	}
	var all []rule
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) < 20 {
		t.Fatalf("only %d rules", len(all))
	}
	return all
}

// Each alert says what happens and what to do, and has a test and a page.
func TestEveryAlertHasARunbookAndATest(t *testing.T) {
	t.Parallel()
	tests, index := string(read(t, "prometheus/rules_test.yml")), string(read(t, "../docs/runbooks/README.md"))
	used := map[string]bool{"README.md": true}
	for _, r := range rules(t) {
		if r.Alert == "" {
			continue
		}
		if s := r.Labels["severity"]; s != "page" && s != "ticket" {
			t.Errorf("%s has the severity %q", r.Alert, s)
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s has no summary or description", r.Alert)
		}
		url := r.Annotations["runbook_url"]
		used[filepath.Base(url)] = true
		page := string(read(t, "../"+url))
		for _, want := range []string{"`" + r.Alert + "`", "\n## What it means\n", "\n## Look\n", "\n## Do\n"} {
			if !strings.Contains(page, want) {
				t.Errorf("%s lacks %q", url, want)
			}
		}
		if !strings.Contains(index, "| `"+r.Alert+"` | "+r.Labels["severity"]+" |") {
			t.Errorf("the list of runbooks lacks %s", r.Alert)
		}
		// A test with an expected alert, not only with none.
		if !regexp.MustCompile(`alertname: ` + r.Alert + `\n\s+exp_alerts:\n`).MatchString(tests) {
			t.Errorf("no test lets %s fire", r.Alert)
		}
	}
	pages, err := filepath.Glob("../docs/runbooks/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		if !used[filepath.Base(page)] {
			t.Errorf("no alert links to %s", page)
		}
		for _, m := range regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`).FindAllStringSubmatch(string(read(t, page)), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
}

// checkExpression checks that an expression names only metrics, labels and values that exist.
func checkExpression(t *testing.T, where, expr string) {
	t.Helper()
	found := false
	for _, m := range regexp.MustCompile(`(fiscalhub_[a-z_]+)(\{[^}]*\})?`).FindAllStringSubmatch(expr, -1) {
		found = true
		d, ok := definition(m[1])
		if !ok {
			t.Errorf("%s: the catalogue has no metric %s", where, m[1])
			continue
		}
		for _, matcher := range regexp.MustCompile(`(\w+)(=~?)"([^"]*)"`).FindAllStringSubmatch(m[2], -1) {
			checkMatcher(t, where, d, matcher[1], strings.Split(matcher[3], "|"))
		}
	}
	if !found && !strings.Contains(expr, "fiscalhub") {
		t.Errorf("%s asks for no metric of ours: %s", where, expr)
	}
}

func checkMatcher(t *testing.T, where string, d metric.Definition, label string, values []string) {
	t.Helper()
	i := slices.IndexFunc(d.Labels, func(l metric.Label) bool { return l.Name == label })
	if i < 0 {
		t.Errorf("%s: %s has no label %s", where, d.Name, label)
		return
	}
	for _, v := range values {
		l := d.Labels[i]
		described := strings.Count(l.Of, "`") >= 4 // the text lists the values
		if len(l.Values) > 0 && !slices.Contains(l.Values, v) || len(l.Values) == 0 && described && !strings.Contains(l.Of, "`"+v+"`") {
			t.Errorf("%s: the label %s of %s is never %q", where, label, d.Name, v)
		}
	}
}

// definition returns the metric of a series: histograms have series with three endings.
func definition(series string) (metric.Definition, bool) {
	for _, d := range metric.All() {
		name := series
		if d.Type == metric.Histogram {
			name = regexp.MustCompile(`_(bucket|count|sum)$`).ReplaceAllString(series, "")
		}
		if d.Name == name && (d.Type != metric.Histogram || name != series) {
			return d, true
		}
	}
	return metric.Definition{}, false
}

func TestAlertsUseMetricsThatExist(t *testing.T) {
	t.Parallel()
	for _, r := range rules(t) {
		checkExpression(t, r.Alert+r.Record, r.Expr)
	}
}

func TestDashboardsUseMetricsThatExist(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("grafana/dashboards/*.json")
	if err != nil || len(files) != 5 {
		t.Fatalf("dashboards: %q, %v", files, err)
	}
	shown := map[string]bool{}
	for _, file := range files {
		var board struct {
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
		}
		if err := json.Unmarshal(read(t, file), &board); err != nil {
			t.Fatal(err)
		}
		for _, p := range board.Panels {
			for _, target := range p.Targets {
				if !strings.Contains(target.Expr, `{job="fiscalhub"}`) {
					checkExpression(t, file+" "+p.Title, target.Expr)
				}
				for _, name := range regexp.MustCompile(`fiscalhub_[a-z_]+`).FindAllString(target.Expr, -1) {
					if d, ok := definition(name); ok {
						shown[d.Name] = true
					}
				}
			}
		}
	}
	for _, d := range metric.All() {
		if !shown[d.Name] {
			t.Errorf("no dashboard shows %s", d.Name)
		}
	}
}
