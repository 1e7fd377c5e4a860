package systemtest

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// A backup of a running service is restored after more documents were issued. The
// ranges must be fenced until the operator runs reconcile.
func TestRestoreIsFencedUntilReconciled(t *testing.T) {
	t.Parallel()
	w := newEnv(t, "sqlite:"+filepath.Join(t.TempDir(), "live.db"), "happy")
	issue := func(from, to int) {
		t.Helper()
		for n := from; n < to; n++ {
			w.createInvoice(t, n)
		}
		w.settle(t)
	}
	server := w.serve(t)
	issue(0, 10)
	restore := w.backup(t)
	issue(10, 20)
	server.Kill()
	restore()
	w.serve(t)
	for n := 20; n < 22; n++ { // one of each type
		got, err := w.postInvoice(t.Context(), *w.base.Load(), n)
		if err != nil || got.Status != http.StatusConflict || !strings.Contains(got.Body, "operational_readiness_failed") || !strings.Contains(got.Body, "sequence.fenced") {
			t.Errorf("invoice %d: %d %s, %v", n, got.Status, got.Body, err)
		}
	}

	code, said := w.reconcile(t, w.args)
	if code != 0 || strings.Count(said, "6–10 are skipped: the authority has 5 of them, does not have 0, and did not say for 0; the next number is 11") != 2 {
		t.Fatalf("reconcile: exit code %d\n%s", code, said)
	}
	issue(20, 30)
	if l := w.checkLedger(t, 30, nil); l.found != 10 {
		t.Errorf("the authority has %d abandoned numbers, want 10", l.found)
	}
}
