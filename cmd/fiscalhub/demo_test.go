package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

var demoStatuses = map[string]string{
	"DEMO-1": "E310000000001 delivered", "DEMO-2": "E320000000001 accepted", "DEMO-3": "E320000000002 accepted",
	"DEMO-4": "E310000000002 accepted_conditional", "DEMO-5": "E310000000003 rejected", "DEMO-6": "E310000000004 accepted",
}

func TestDemoPrintsJSON(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	dir := filepath.Join(t.TempDir(), "files")
	var out, errOut bytes.Buffer
	if code := run(ctx, []string{"demo", "--json", "--lang", "es", "--out", dir}, &out, &errOut); code != exitOK {
		t.Fatalf("exit code %d\n%s", code, errOut.String())
	}
	var v demoView
	if err := json.Unmarshal(out.Bytes(), &v); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	got := map[string]string{}
	for _, inv := range v.Invoices {
		got[inv.ExternalID] = inv.ENCF + " " + string(inv.Status)
		if inv.XML == nil || !holds(t, *inv.XML, "<eNCF>"+inv.ENCF) {
			t.Errorf("%s: the XML is not in %s", inv.ExternalID, textOf(inv.XML))
		}
		if len(inv.Events) < 2 || !slices.Contains(inv.Events, "fiscal_document."+string(inv.Status)) {
			t.Errorf("%s is %s and its events are %v", inv.ExternalID, inv.Status, inv.Events)
		}
		if valid := inv.Status != "rejected"; valid != (inv.PDF != nil) || valid && !holds(t, *inv.PDF, "%PDF-") {
			t.Errorf("%s is %s and its page is %s", inv.ExternalID, inv.Status, textOf(inv.PDF))
		}
	}
	if diff := cmp.Diff(demoStatuses, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !strings.Contains(errOut.String(), "DEMO-6  outcome_unknown") {
		t.Errorf("no answer of the authority was lost:\n%s", errOut.String())
	}
	if !strings.Contains(errOut.String(), "rechazada por la DGII") || strings.Contains(errOut.String(), "received by") {
		t.Errorf("the progress is not in Spanish:\n%s", errOut.String())
	}
}

func holds(t *testing.T, path, text string) bool {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	}
	return bytes.Contains(content, []byte(text))
}

// Without --exit the demo serves until it is stopped. Its links must open without an
// API key, its metrics must be those of the documentation, and it must remove its data
// folder.
func TestDemoServesUntilStopped(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, errOut, ended := &harness.Output{}, &harness.Output{}, make(chan int, 1)
	go func() { ended <- run(ctx, []string{"demo"}, out, errOut) }()
	harness.Eventually(t, 2*time.Minute, "the demo prints its result", func() bool {
		if len(ended) > 0 {
			t.Fatalf("the demo has ended:\n%s%s", out, errOut)
		}
		return strings.Contains(out.String(), "Ctrl-C")
	})
	page := harness.Submatch(out.String(), `links to open: +(\S+)`)
	body := string(harness.Fetch(t, page))
	for name, want := range demoStatuses {
		if encf, _, _ := strings.Cut(want, " "); !strings.Contains(body, name) || !strings.Contains(body, encf) {
			t.Errorf("%s is not on the page", name)
		}
	}
	links := regexp.MustCompile(`href="([^"]+)"`).FindAllStringSubmatch(body, -1)
	if len(links) != 11 { // 6 documents, one of them without a PDF
		t.Errorf("%d links in\n%s", len(links), body)
	}
	for _, m := range links {
		if want := map[string]string{".xml": "<?xml", ".pdf": "%PDF-"}[filepath.Ext(m[1])]; !bytes.HasPrefix(harness.Fetch(t, m[1]), []byte(want)) {
			t.Errorf("%s does not begin with %s", m[1], want)
		}
		if !strings.Contains(out.String(), m[1]) {
			t.Errorf("%s is not in the table", m[1])
		}
	}
	if feed := harness.Submatch(out.String(), `events +(\S+)/v1/taxpayers/\S+/events, and by webhook to http://127.0.0.1:\d+`); feed == "" {
		t.Errorf("the demo does not print the address of the events:\n%s", out)
	}
	checkMetrics(t, harness.Fetch(t, harness.Submatch(out.String(), `API +(\S+)/v1`)+"/metrics"))
	dir := harness.Submatch(out.String(), `--data (\S+)`)
	if _, err := os.Stat(filepath.Join(dir, "fiscalhub.db")); err != nil {
		t.Error(err)
	}
	stop()
	select {
	case code := <-ended:
		if code != exitOK {
			t.Errorf("exit code %d\n%s", code, errOut)
		}
	case <-time.After(time.Minute):
		t.Fatal("the demo does not stop")
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the data folder %s still exists: %v", dir, err)
	}
}
