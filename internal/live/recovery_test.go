package live

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

const (
	authorityCalls   = 8                     // that one host receives at a time
	authorityLatency = 30 * time.Millisecond // the longest of the simulator's normal pace
	recoveryTime     = 15 * time.Minute
	// overtaking is by how much a document may reach the authority after a younger one.
	// The first documents after an outage find the circuits open, and try again when
	// the circuit allows a probe.
	overtaking = 15 * time.Second
)

// outage lets the authority be down for three hours while documents are created
// evenly, and returns them in the order of creation.
func (w *env) outage(documents int) (made []store.Invoice) {
	w.t.Helper()
	w.must(w.sim.Configure(func(c *simulator.Config) { c.Maintenance = true }))
	const steps = 18
	for step := range steps {
		for len(made) < documents*(step+1)/steps {
			kind := fiscal.FiscalCredit
			if len(made)%2 == 1 {
				kind = fiscal.Consumer
			}
			made = append(made, w.create(kind, 1000))
			w.clock.Advance(time.Millisecond)
		}
		w.drive(10 * time.Minute)
		w.clock.Advance(10 * time.Minute)
		w.must(w.watcher.CheckOutage(w.t.Context(), w.signals()))
	}
	w.must(w.sim.Configure(func(c *simulator.Config) { c.Maintenance = false }))
	return made
}

// recover works off the queue at the authority's pace for as long as told: eight calls
// at a time, each of which takes its latency. It returns when no job is left.
func (w *env) recover(most time.Duration) {
	w.t.Helper()
	check := w.now()
	for end := w.now().Add(most); w.now().Before(end); {
		if !w.now().Before(check) {
			w.must(w.watcher.CheckOutage(w.t.Context(), w.signals()))
			check = check.Add(5 * time.Second)
		}
		jobs, err := w.Claim(w.t.Context(), authorityCalls)
		w.must(err)
		var calls sync.WaitGroup
		for _, job := range jobs {
			calls.Go(func() { w.RunJob(w.t.Context(), job) })
		}
		calls.Wait()
		if len(jobs) > 0 {
			w.clock.Advance(authorityLatency)
			continue
		}
		next, err := w.store().NextJob(w.t.Context(), w.options.Env, w.now())
		if err != nil {
			return
		}
		if next.After(check) {
			next = check
		}
		w.clock.Advance(max(next.Sub(w.now()), time.Millisecond))
	}
}

// After three hours without the authority every document that waited is judged within
// 15 minutes of the first answer, at the pace of the simulator, oldest first.
// RECOVERY_DOCUMENTS says how many wait; `make soak` runs it for 10,000.
func TestRecoveryAfterAnOutage(t *testing.T) {
	t.Parallel()
	documents := number(t, "RECOVERY_DOCUMENTS", 60)
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{numbers: int64(documents) + 10})
		// The normal pace of verdicts; the test accounts for the latency itself.
		w.must(w.sim.Configure(func(c *simulator.Config) { c.ValidationDelay = nil }))
		before := w.create(fiscal.Consumer, 1000)
		w.drive(time.Minute)
		w.want(before, "queued accepted")
		made := w.outage(documents)
		w.want(made[len(made)-1], "queued")
		first := w.now() // the watcher asks the authority and gets the first answer
		w.recover(recoveryTime)

		var last time.Time
		statuses := map[fiscal.Status]int{}
		for _, inv := range made {
			now := w.read(inv)
			statuses[now.Status]++
			if now.UpdatedAt.After(last) {
				last = now.UpdatedAt
			}
		}
		if statuses[fiscal.Accepted] != documents {
			t.Errorf("%v after %s, want %d accepted", statuses, recoveryTime, documents)
		}
		late := w.overtaken(made)
		if late > overtaking {
			t.Errorf("a document reached the authority %s after a younger one", late)
		}
		t.Logf("%d documents: the last one judged %s after the first answer; overtaken by at most %s",
			documents, last.Sub(first).Round(time.Second), late.Round(time.Millisecond))
		w.clean()
	})
}

// overtaken returns the longest time by which a document reached the authority after a
// younger one of the same type. It leaves out the few documents that were under way when
// the outage began: the service asks about them before it sends them again.
func (w *env) overtaken(made []store.Invoice) (late time.Duration) {
	w.t.Helper()
	received := map[string]time.Time{}
	for _, d := range w.sim.Documents(simulator.Filter{}) {
		received[d.ENCF] = d.Received
	}
	youngest := map[fiscal.Type]time.Time{}
	for i := len(made) - 1; i >= 0; i-- {
		inv := w.read(made[i])
		if strings.Contains(w.story(inv), string(fiscal.OutcomeUnknown)) {
			continue
		}
		at, ok := received[inv.ENCF]
		if !ok {
			w.t.Errorf("%s did not reach the authority", inv.ExternalID)
			continue
		}
		if earliest, known := youngest[inv.Type]; known {
			late = max(late, at.Sub(earliest))
		}
		if earliest, known := youngest[inv.Type]; !known || at.Before(earliest) {
			youngest[inv.Type] = at
		}
	}
	return late
}
