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

// A backup of a running service is restored after more documents were issued. The
// ranges must be fenced until the operator runs reconcile.
func TestRestoreIsFencedUntilReconciled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	database := filepath.Join(dir, "live.db")
	w := newEnv(t, "sqlite:"+database, "happy")
	var base atomic.Pointer[string]
	start := func() *serverProcess {
		s := serve(t, w.args...)
		base.Store(&s.base)
		return s
	}
	issue := func(from, to int) {
		t.Helper()
		for n := from; n < to; n++ {
			w.createInvoice(t.Context(), t, &base, n)
		}
		eventually(t, 60*time.Second, "every document has its final status", func() bool { return w.isSettled(t, *base.Load()) })
	}
	server := start()
	issue(0, 10)
	file := filepath.Join(dir, "backup.db")
	if got := command(t, "file", "backup", file, "--database", w.address); got != file {
		t.Errorf("backup: %s", got)
	}
	issue(10, 20)
	_ = server.cmd.Process.Kill()
	<-server.done

	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, end := range []string{"-wal", "-shm"} {
		_ = os.Remove(database + end) // files of the replaced database
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
	if err != nil || strings.Count(string(out), "6–10 are skipped: the authority has 5 of them, does not have 0, and did not say for 0; the next number is 11") != 2 {
		t.Fatalf("reconcile: %v\n%s%s", err, out, &stderr)
	}
	issue(20, 30)
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
		if v.Kind != simulator.TokenAgain { // each process asks for a token of its own
			t.Errorf("violation: %+v", v)
		}
	}
}
