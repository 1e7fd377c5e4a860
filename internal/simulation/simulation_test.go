package simulation

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/simulation/oracle"
)

// A result is what came of a run.
type result struct {
	seed       uint64
	steps      int
	documents  int
	virtual    time.Duration
	trace      []string
	violations []oracle.Violation
}

// TestMain runs the tests on one processor. The goroutines of a run then take turns in the
// same order each time. That is also faster, because seldom more than one has work.
func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// simulate does the run of a seed.
func simulate(t *testing.T, seed uint64) (r result) {
	t.Helper()
	tp, dir := newTemplate(t), folder(t)
	cryptotest.SetGlobalRandom(t, seed)
	defer func() { _ = os.RemoveAll(dir) }() // what remains ends with the machine
	t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, tp, seed, dir)
			w.tell()
			steps := w.schedule()
			r = result{seed: seed, steps: steps, virtual: w.now().Sub(noon())}
			run := w.collect()
			r.documents = len(run.Invoices)
			r.violations = oracle.Check(run)
			w.traceUnknown()
			for _, p := range w.problems {
				r.violations = append(r.violations, oracle.Violation{Rule: "no unexpected error", Subject: "world", Text: p})
			}
			if steps >= maxSteps {
				r.violations = append(r.violations, oracle.Violation{Rule: "every run comes to an end", Subject: "world", Text: fmt.Sprintf("%d steps", steps)})
			}
			w.tracef("world", "%d steps, %d documents", steps, r.documents)
			r.trace = w.trace
			slices.Sort(r.trace) // several goroutines may say something at the same instant
			w.quiet = true
			w.stop()
		})
	})
	return r
}

// stop ends every node.
func (w *world) stop() {
	for _, n := range w.nodes {
		n.crash()
	}
	for _, n := range w.nodes {
		if n.ended != nil {
			<-n.ended
		}
	}
	w.close()
}

// folder is a folder in memory where there is one. A run loses nothing with it.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "fiscalhub-simulation-")
	if err != nil {
		return t.TempDir()
	}
	return dir
}

// report says what is wrong with a run, and how to repeat it.
func (r result) report(t *testing.T) bool {
	t.Helper()
	if len(r.violations) == 0 {
		return true
	}
	var text strings.Builder
	fmt.Fprintf(&text, "seed %d: %d violations\n", r.seed, len(r.violations))
	for _, v := range r.violations[:min(len(r.violations), 10)] {
		fmt.Fprintf(&text, "  %s\n", v)
	}
	fmt.Fprintf(&text, "repeat: make simulate SEEDS=1 FIRST=%d TRACE=1\n", r.seed)
	for _, line := range shorten(r.trace) {
		fmt.Fprintf(&text, "  %s\n", line)
	}
	t.Error(text.String())
	return false
}

// maxTrace is how many lines of a trace a report has.
const maxTrace = 60

// shorten leaves out the lines that follow a plan: what remains are the faults and the
// answers, and the last lines.
func shorten(trace []string) []string {
	if len(trace) <= maxTrace || os.Getenv("SIMULATE_TRACE") != "" {
		return trace
	}
	var kept []string
	for _, line := range trace[1:] {
		for _, word := range []string{"crash", "lost", "refuse", "twice", "page", "takes", "fails", "paused", "reach", "clock", "standby", "over", "release", "cannot", "evidence"} {
			if strings.Contains(line, word) {
				kept = append(kept, line)
				break
			}
		}
	}
	if len(kept) > maxTrace {
		kept = append(slices.Clone(kept[:maxTrace/2]), append([]string{"…"}, kept[len(kept)-maxTrace/2:]...)...)
	}
	return append([]string{trace[0]}, kept...)
}

func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// failedSeeds are the seeds that ever failed.
func failedSeeds(t *testing.T) []uint64 {
	t.Helper()
	text, err := os.ReadFile("testdata/failed-seeds.txt")
	if err != nil {
		t.Fatal(err)
	}
	var seeds []uint64
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		seed, err := strconv.ParseUint(line, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seeds = append(seeds, seed)
	}
	return seeds
}

// Nothing that clients, the authority, buyers and receivers of webhooks see breaks a
// promise, whatever fails when. The test runs the seeds that ever failed, and as many new
// ones as SIMULATE_NEW says. A run uses one processor, so each processor of the machine
// gets a process with a part of the new seeds.
func TestSimulationFindsNoViolation(t *testing.T) {
	first, count := rand.Uint64N(1<<40), number(t, "SIMULATE_NEW", 200)
	processes := min(uint64(runtime.NumCPU()), count)
	var all sync.WaitGroup
	for i := range processes {
		begin, end := count*i/processes, count*(i+1)/processes
		all.Go(func() {
			if out, err := simulateInProcess(t, first+begin, end-begin, ""); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	for _, seed := range failedSeeds(t) {
		if !simulate(t, seed).report(t) {
			break
		}
	}
	all.Wait()
}

// One seed is one run: everything happens at the same instant in the same order, also in
// another process. Sometimes two timers of the service end at the same instant, and Go
// decides which goroutine is first; so the test asks for two equal traces among a few.
func TestOneSeedGivesOneTrace(t *testing.T) {
	const attempts = 4
	for _, seed := range []uint64{1, 3, 1000} {
		var traces []string
		for len(traces) < attempts {
			trace := traceOfProcess(t, seed)
			if slices.Contains(traces, trace) {
				break
			}
			traces = append(traces, trace)
		}
		if len(traces) == attempts {
			t.Errorf("seed %d has given %d traces, and no two are the same", seed, attempts)
		}
	}
}

// traceOfProcess returns the trace of a seed that another process runs.
func traceOfProcess(t *testing.T, seed uint64) string {
	t.Helper()
	out, err := simulateInProcess(t, seed, 1, "1")
	trace, _, found := strings.Cut(out, "\n1 of 1 seeds")
	if err != nil || !found {
		t.Fatalf("%v: %s", err, out)
	}
	return trace
}

// simulateInProcess runs seeds in another process, and returns what it prints.
func simulateInProcess(t *testing.T, first, seeds uint64, trace string) (string, error) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(t.Context(), program, "-test.run=^TestSimulate$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("SIMULATE_SEEDS=%d", seeds), fmt.Sprintf("SIMULATE_FIRST=%d", first), "SIMULATE_TRACE="+trace)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestSimulate runs as many seeds as SIMULATE_SEEDS says, from SIMULATE_FIRST on or from a
// new one. See make simulate.
func TestSimulate(t *testing.T) {
	seeds := number(t, "SIMULATE_SEEDS", 0)
	if seeds == 0 {
		t.Skip("`make simulate` runs this test")
	}
	first, began := number(t, "SIMULATE_FIRST", rand.Uint64N(1<<40)), time.Now()
	failed, documents, steps := 0, 0, 0
	shown := began
	for i := range seeds {
		r := simulate(t, first+i)
		documents, steps = documents+r.documents, steps+r.steps
		if os.Getenv("SIMULATE_TRACE") != "" {
			fmt.Println(strings.Join(r.trace, "\n"))
		}
		if !r.report(t) {
			failed++
			if os.Getenv("SIMULATE_ALL") == "" {
				break
			}
		}
		if time.Since(shown) > 5*time.Second || i+1 == seeds {
			shown = time.Now()
			fmt.Printf("%d of %d seeds, %d documents, %d steps, %d violations, %s, now seed %d\n", i+1, seeds, documents, steps, failed, time.Since(began).Round(time.Second), first+i)
		}
	}
}
