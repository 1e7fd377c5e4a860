package systemtest

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
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

// shopColumns are the columns of the figures of a shop.
var shopColumns = []any{"sales", "lost in the copy", "pages", "with the legend", "at the authority", "numbers", "sights", "time", "violations"}

// figures checks that no number has two sales or two contents, and returns the cells of a
// run.
func (s *shop) figures(t *testing.T, begun time.Time) []any {
	t.Helper()
	received := s.readAuthority(t)
	sold, _, gone, pages := s.counts()
	violations := s.check(t)
	return []any{sold, gone, pages, s.legends[0] + s.legends[1], received, len(s.sales), s.sights, seconds(time.Since(begun)), violations}
}

// A backup is restored after a contingency in which buyers got pages with numbers that were
// not sent. No other sale may get a number of these pages: neither with the
// witnesses, nor, when one or all of them are lost too, with the last numbers that the
// operator states. RESTORE_RUNS makes the test longer; `make restores` does.
func TestRestoresInAContingency(t *testing.T) {
	t.Parallel()
	runs := setting(t, "RESTORE_RUNS", 1)
	harness.Program(t) // before the time counts
	figures := newFigureTable("run", "engine", "nodes", "witness folder", "witnesses lost", shopColumns)
	for run := range runs {
		r := restoreRun{engine: storetest.Engines()[run%2], nodes: 1 + run%2, elsewhere: run/2%2 == 0}
		r.lost = run / 4 % (r.nodes + 1)
		t.Run(strconv.Itoa(run+1), func(t *testing.T) {
			begun := time.Now()
			s := r.restore(t)
			folder := "of the data"
			if r.elsewhere {
				folder = "another"
			}
			figures.row(run+1, r.engine, r.nodes, folder, r.lost, s.figures(t, begun))
		})
		if t.Failed() {
			break
		}
	}
	t.Logf("%d restores in a contingency\n%s", runs, figures)
}

// A restoreRun is what happens in one restore.
type restoreRun struct {
	engine    string
	nodes     int
	elsewhere bool // the witness is not in the data folder
	lost      int  // so many nodes lose their witnesses; if another one keeps its own, they do not start again
}

// args returns the flags of a node, and the folder of its witness.
func (r restoreRun) args(s *shop, i int) (args []string, witness string) {
	args = s.nodeArgs(i)
	if !r.elsewhere {
		return args, s.nodeDir(i)
	}
	witness = s.nodeDir(i) + "-witness"
	return append(args, "--witness", witness), witness
}

// restore restores a backup that was taken under load after a contingency, and returns the
// shop with everything that is in the hands of anybody.
func (r restoreRun) restore(t *testing.T) *shop {
	t.Helper()
	s := newShop(t, storetest.Address(t, r.engine))
	start := func(count int) (nodes []*harness.Server) {
		for i := range count {
			args, _ := r.args(s, i)
			nodes = append(nodes, harness.Serve(t, args...))
		}
		return nodes
	}
	nodes := start(r.nodes)
	s.open(t, nodes...)
	s.awaitSettled(t, 4+rand.IntN(8))
	restore := s.backup(t)
	s.awaitMore(t, rand.IntN(6))

	s.meetContingency(t)
	for _, node := range nodes {
		node.Signal(t, syscall.SIGKILL)
	}
	for _, node := range nodes {
		node.Ended(t)
	}
	restore()
	for i := r.nodes - r.lost; i < r.nodes; i++ {
		_, witness := r.args(s, i)
		files, err := filepath.Glob(filepath.Join(witness, "witness-certification*"))
		for _, file := range files {
			err = errors.Join(err, os.Remove(file))
		}
		if err != nil || len(files) == 0 {
			t.Fatalf("the witness cannot be lost: %v, %v", files, err)
		}
	}
	if r.lost == r.nodes {
		nodes = start(r.nodes)
	} else {
		nodes = start(r.nodes - r.lost)
	}
	s.reach(nodes...)
	s.awaitFence(t)
	s.maintain(t, false)
	args, _ := r.args(s, 0)
	s.release(t, args, r.lost > 0)
	s.finish(t, 6)
	return s
}
