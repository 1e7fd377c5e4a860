package systemtest

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

// shopFigures are the columns of the proofs with a shop.
func shopFigures(columns ...string) *figureTable {
	return newFigureTable(append(append([]string{"run"}, columns...), "sales", "lost in the copy", "pages", "with the legend", "at the authority", "numbers", "sights", "time", "violations")...)
}

// figures checks that no number has two sales or two contents, and returns the cells of a
// run.
func (s *shop) figures(t *testing.T, begun time.Time) []string {
	t.Helper()
	received := s.readAuthority(t)
	sold, _, gone, pages := s.counts()
	violations := s.check(t)
	return []string{strconv.Itoa(sold), strconv.Itoa(gone), strconv.Itoa(pages), strconv.Itoa(s.legends[0] + s.legends[1]), strconv.Itoa(received),
		strconv.Itoa(len(s.sales)), strconv.Itoa(s.sights), seconds(time.Since(begun)), strconv.Itoa(violations)}
}

// A backup is restored after a contingency in which buyers got pages with numbers that were
// not sent. No other sale may get a number of these pages: neither with the witnesses, nor, when one or all of them are lost too, with the last numbers that the
// operator states. RESTORE_RUNS makes the test longer; `make restores` does.
func TestRestoresInAContingency(t *testing.T) {
	t.Parallel()
	runs := setting(t, "RESTORE_RUNS", 1)
	harness.Program(t) // before the time counts
	figures := shopFigures("engine", "nodes", "witness folder", "witnesses lost")
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
			figures.row(append([]string{strconv.Itoa(run + 1), r.engine, strconv.Itoa(r.nodes), folder, strconv.Itoa(r.lost)}, s.figures(t, begun)...)...)
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
	restore := s.backup(t, r.engine)
	s.awaitMore(t, rand.IntN(6))

	s.maintain(t, true)
	s.awaitLegends(t, 2+rand.IntN(5))
	if rand.IntN(3) == 0 {
		s.maintain(t, false) // some of the documents that wait are sent
	}
	time.Sleep(rand.N(500 * time.Millisecond)) // the kill meets any point of the work
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

// backup copies the database of the running service, and returns a function that replaces
// the database with the copy.
func (s *shop) backup(t *testing.T, engine string) (restore func()) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "backup")
	if engine == "postgres" {
		server := storetest.Postgres(t)
		server.Dump(t, s.address, file)
		return func() { s.moveTo(server.Load(t, file)) }
	}
	command(t, "file", "backup", file, "--database", s.address)
	return func() {
		database := strings.TrimPrefix(s.address, "sqlite:")
		for _, end := range []string{"-wal", "-shm"} {
			_ = os.Remove(database + end) // files of the replaced database
		}
		writeFile(t, database, readFile(t, file))
	}
}

// moveTo changes the address of the database.
func (e *env) moveTo(address string) {
	e.address = address
	for _, args := range [][]string{e.shared, e.args} {
		args[slices.Index(args, "--database")+1] = address
	}
}
