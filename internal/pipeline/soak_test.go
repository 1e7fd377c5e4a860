package pipeline

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// TestSoak lets two nodes work off many documents against an authority that
// misbehaves in every way, on a virtual clock, with workers that die now and
// then. `make soak` runs it for many seeds; a short run is part of every test.
func TestSoak(t *testing.T) {
	t.Parallel()
	seeds, documents := number(t, "SOAK_SEEDS", 1), number(t, "SOAK_DOCUMENTS", 40)
	for seed := range seeds {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			t.Parallel()
			soak(t, uint64(seed)+uint64(number(t, "SOAK_FIRST", 1)), documents)
		})
	}
}

func number(t *testing.T, name string, unlessTold int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return unlessTold
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

func soak(t *testing.T, seed uint64, documents int) int {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, seed))
	w := newTown(t, storetest.Address(t, "sqlite"), townOptions{receiver: true, seed: seed})
	w.must(w.sim.SetProfile("chaos"))
	w.must(w.sim.Configure(func(c *simulator.Config) { c.Latency, c.ValidationDelay = simulator.Fixed(0), nil }))
	nodes := []*Pipeline{w.Pipeline, w.beside()}

	invoices := make([]store.Invoice, 0, documents)
	died, idle := 0, false
	for range 200_000 {
		for len(invoices) < documents && random.IntN(3) > 0 {
			kind, net := fiscal.FiscalCredit, 1000
			if random.IntN(2) == 0 {
				kind, net = fiscal.Consumer, []int{1000, 300_000}[random.IntN(2)]
			}
			invoices = append(invoices, w.create(kind, net))
		}
		node := nodes[random.IntN(len(nodes))]
		jobs, err := node.claim(t.Context(), 1+random.IntN(4))
		w.must(err)
		for _, job := range jobs {
			if random.IntN(50) == 0 {
				died++ // with the job in its hands
				continue
			}
			node.run(t.Context(), job)
		}
		if len(jobs) > 0 {
			w.clock.advance(time.Duration(random.IntN(200)) * time.Millisecond)
			continue
		}
		next, err := w.Store.NextJob(t.Context(), w.Env, w.Now())
		switch {
		case err == nil:
			w.clock.advance(max(next.Sub(w.Now()), time.Millisecond))
			idle = false
		case idle && len(invoices) == documents:
			return w.report(seed, invoices, died)
		default:
			// What the dead held comes due when their leases end.
			w.clock.advance(leaseTime + time.Second)
			idle = true
		}
	}
	t.Fatal("the queue does not come to an end")
	return 0
}

// report asserts that every document came to an end and that the authority has
// nothing to complain about.
func (w *town) report(seed uint64, invoices []store.Invoice, died int) int {
	t := w.t
	t.Helper()
	statuses, unresolved := map[fiscal.Status]int{}, 0
	for _, inv := range invoices {
		status := w.read(inv).Status
		statuses[status]++
		if !status.Final() {
			unresolved++
			t.Errorf("%s ended %s: %s", inv.ExternalID, status, w.story(inv))
		}
	}
	w.clean()
	fired := 0
	for _, r := range w.sim.Rules() {
		fired += r.Fired
	}
	t.Logf("seed %d: %d documents %v, %d faults met, %d workers died, %d violations, %d unresolved",
		seed, len(invoices), statuses, fired, died, len(w.sim.Violations()), unresolved)
	return unresolved
}
