package systemtest

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

// A backup of a running service is restored after more documents were issued. The
// ranges must be fenced until the operator runs reconcile.
func TestRestoreIsFencedUntilReconciled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	database := filepath.Join(dir, "live.db")
	w := newEnv(t, "sqlite:"+database, "happy")
	var base atomic.Pointer[string]
	start := func() *harness.Server {
		s := harness.Serve(t, w.args...)
		base.Store(&s.Base)
		return s
	}
	issue := func(from, to int) {
		t.Helper()
		for n := from; n < to; n++ {
			w.createInvoice(t.Context(), t, &base, n)
		}
		harness.Eventually(t, 60*time.Second, "every document has its final status", func() bool { return w.isSettled(t, *base.Load()) })
	}
	server := start()
	issue(0, 10)
	file := filepath.Join(dir, "backup.db")
	if got := command(t, "file", "backup", file, "--database", w.address); got != file {
		t.Errorf("backup: %s", got)
	}
	issue(10, 20)
	_ = server.Cmd.Process.Kill()
	<-server.Done

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
	for n := 20; n < 22; n++ { // one of each type
		got, err := w.postInvoice(t.Context(), *base.Load(), n)
		if err != nil || got.Status != http.StatusConflict || !strings.Contains(got.Body, "operational_readiness_failed") || !strings.Contains(got.Body, "sequence.fenced") {
			t.Errorf("invoice %d: %d %s, %v", n, got.Status, got.Body, err)
		}
	}

	args := append([]string{"reconcile", "--taxpayer", w.client.Taxpayer}, w.args[:slices.Index(w.args, "--rate-limit")]...)
	cmd := harness.Command(t.Context(), harness.Program(t), args...)
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
