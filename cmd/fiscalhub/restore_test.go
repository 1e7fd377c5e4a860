package main

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
)

// The operator's way back: a backup while the service runs, a restore of it, and
// the release of the ranges that are fenced by that.
func TestARestoreIsFencedUntilReconciled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	database := filepath.Join(dir, "live.db")
	w := newLiveTown(t, "sqlite:"+database, "happy")
	var base atomic.Pointer[string]
	start := func() *served {
		s := serve(t, w.args...)
		base.Store(&s.base)
		return s
	}
	sell := func(from, to int) {
		t.Helper()
		for n := from; n < to; n++ {
			w.sell(t.Context(), t, &base, n)
		}
		eventually(t, 60*time.Second, "every document is done", func() bool { return w.settled(t, *base.Load()) })
	}
	server := start()
	sell(0, 10)
	file := filepath.Join(dir, "backup.db")
	if got := command(t, "file", "backup", file, "--database", w.address); got != file {
		t.Errorf("backup: %s", got)
	}
	sell(10, 20)
	_ = server.cmd.Process.Kill()
	<-server.done

	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, end := range []string{"-wal", "-shm"} {
		_ = os.Remove(database + end) // of the database that was there before
	}
	if err := os.WriteFile(database, content, 0o600); err != nil {
		t.Fatal(err)
	}
	start()
	for _, kind := range []string{"31", "32"} {
		body := regexp.MustCompile(`"ecf_type": *"32"`).ReplaceAllString(strings.Replace(demonstrationRequest, "%s", "2026-11-14", 1), `"ecf_type": "`+kind+`"`)
		if kind == "31" {
			body = strings.Replace(body, `"legal_name"`, `"tax_id": "199000021", "legal_name"`, 1)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, *base.Load()+"/v1/taxpayers/"+w.client.taxpayer+"/invoices", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Idempotency-Key", "fenced-"+kind)
		r.Header.Set("Content-Type", "application/json")
		got, err := w.client.do(r)
		if err != nil || got.status != http.StatusConflict || !strings.Contains(got.body, "operational_readiness_failed") || !strings.Contains(got.body, "sequence.fenced") {
			t.Errorf("type %s: %d %s, %v", kind, got.status, got.body, err)
		}
	}

	args := append([]string{"reconcile", "--taxpayer", w.client.taxpayer}, w.args[:slices.Index(w.args, "--rate-limit")]...)
	cmd := exec.CommandContext(t.Context(), program(t), args...)
	cmd.Env = environment()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || strings.Count(string(out), "6–10 given up: 5 at the authority, 0 not, 0 unknown; it goes on with 11") != 2 {
		t.Fatalf("reconcile: %v\n%s%s", err, out, &stderr)
	}
	sell(20, 30)
	contents := map[string]string{}
	for _, d := range w.sim.Documents(simulator.Filter{}) {
		if other, seen := contents[d.ENCF]; seen && other != d.SHA256 {
			t.Errorf("two contents under %s", d.ENCF)
		}
		contents[d.ENCF] = d.SHA256
	}
	if len(contents) != 30 {
		t.Errorf("the authority has %d numbers, want 30", len(contents))
	}
	for _, v := range w.sim.Violations() {
		if v.Kind != simulator.TokenAgain { // three processes, each with a token of its own
			t.Errorf("violation: %+v", v)
		}
	}
}
