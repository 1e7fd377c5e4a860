package live_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live/livetest"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/wake"
)

// TestSoak lets two nodes work off many documents against an authority that
// misbehaves in every way, on a virtual clock, with maxClaim that die now and
// then. `make soak` runs it for many seeds; a short run is part of every test.
func TestSoak(t *testing.T) {
	t.Parallel()
	seeds, documents := livetest.Number(t, "SOAK_SEEDS", 1), livetest.Number(t, "SOAK_DOCUMENTS", 40)
	for seed := range seeds {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			t.Parallel()
			soak(t, storetest.Address(t, "sqlite"), "chaos", uint64(seed)+uint64(livetest.Number(t, "SOAK_FIRST", 1)), documents)
		})
	}
}

// Many documents against an authority that loses answers. All of them come
// to an end, under numbers without a gap. `make soak` runs it for 10,000.
func TestSoakScenario(t *testing.T) {
	t.Parallel()
	documents := livetest.Number(t, "SOAK_DOCUMENTS", 20)
	storetest.EachAddress(t, func(t *testing.T, address string) { soak(t, address, "flaky", 1, documents) })
}

func soak(t *testing.T, address, profile string, seed uint64, documents int) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, seed))
	w := newEnv(t, address, envOptions{Receiver: true, Seed: seed, Numbers: int64(documents)})
	w.Must(w.Sim.SetProfile(profile))
	w.Must(w.Sim.Configure(func(c *simulator.Config) { c.Latency, c.ValidationDelay = simulator.Fixed(0), nil }))
	nodes := []*pipeline.Pipeline{w.Pipeline, w.otherNode().Pipeline}

	invoices := make([]store.Invoice, 0, documents)
	died, idle := 0, false
	for range 1000 * documents {
		for len(invoices) < documents && random.IntN(3) > 0 {
			kind, net := fiscal.FiscalCredit, 1000
			if random.IntN(2) == 0 {
				kind, net = fiscal.Consumer, []int{1000, 300_000}[random.IntN(2)]
			}
			invoices = append(invoices, w.Create(kind, net))
		}
		node := nodes[random.IntN(len(nodes))]
		jobs, err := node.Claim(t.Context(), 1+random.IntN(4))
		w.Must(err)
		for _, job := range jobs {
			if random.IntN(50) == 0 {
				died++ // with the job in its hands
				continue
			}
			node.RunJob(t.Context(), job)
		}
		if len(jobs) > 0 {
			w.Clock.Advance(time.Duration(random.IntN(200)) * time.Millisecond)
			continue
		}
		next, err := w.Store().NextJob(t.Context(), w.Options.Env, w.Now())
		switch {
		case err == nil:
			w.Clock.Advance(max(next.Sub(w.Now()), time.Millisecond))
			idle = false
		case idle && len(invoices) == documents:
			w.report(seed, invoices, died)
			return
		default:
			// What the dead held comes due when their leases end.
			w.Clock.Advance(wake.MaxLease + time.Second)
			idle = true
		}
	}
	t.Fatal("the queue does not come to an end")
}

// report asserts that every document came to an end, that the numbers of each
// type have no gap, and that the authority has nothing to complain about.
func (w *env) report(seed uint64, invoices []store.Invoice, died int) {
	t := w.T
	t.Helper()
	statuses, unresolved := map[fiscal.Status]int{}, 0
	numbers := map[fiscal.Type]map[string]bool{fiscal.FiscalCredit: {}, fiscal.Consumer: {}}
	for _, inv := range invoices {
		now := w.Read(inv)
		status := now.Status
		statuses[status]++
		numbers[now.Type][now.ENCF] = true
		if !status.Final() {
			unresolved++
			t.Errorf("%s ended %s: %s", inv.ExternalID, status, w.Story(inv))
		}
	}
	for kind, taken := range numbers {
		for n := range taken {
			if len(n) != 13 || n < fmt.Sprintf("E%s%010d", kind, 1) || n > fmt.Sprintf("E%s%010d", kind, len(taken)) {
				t.Errorf("%q is one of %d numbers of type %s", n, len(taken), kind)
			}
		}
		sequences, err := w.Store().NumberRangesOf(t.Context(), w.Scope, kind)
		if err != nil || len(sequences) != 1 || sequences[0].Next-sequences[0].First != int64(len(taken)) {
			t.Errorf("type %s: %d documents have numbers of %+v (%v)", kind, len(taken), sequences, err)
		}
	}
	if n := len(numbers[fiscal.FiscalCredit]) + len(numbers[fiscal.Consumer]); n != len(invoices) {
		t.Errorf("%d numbers for %d documents", n, len(invoices))
	}
	w.Clean()
	fired := 0
	for _, r := range w.Sim.Rules() {
		fired += r.Fired
	}
	t.Logf("seed %d: %d documents %v, %d faults met, %d maxClaim died, %d violations, %d unresolved",
		seed, len(invoices), statuses, fired, died, len(w.Sim.Violations()), unresolved)
}
