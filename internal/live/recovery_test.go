package live_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live/livetest"
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
	w.T.Helper()
	w.Must(w.Sim.Configure(func(c *simulator.Config) { c.Maintenance = true }))
	const steps = 18
	for step := range steps {
		for len(made) < documents*(step+1)/steps {
			kind := fiscal.FiscalCredit
			if len(made)%2 == 1 {
				kind = fiscal.Consumer
			}
			made = append(made, w.Create(kind, 1000))
			w.Clock.Advance(time.Millisecond)
		}
		w.Drive(10 * time.Minute)
		w.Clock.Advance(10 * time.Minute)
		w.Must(w.Watcher.CheckOutage(w.T.Context(), w.Signals()))
	}
	w.Must(w.Sim.Configure(func(c *simulator.Config) { c.Maintenance = false }))
	return made
}

// recover works off the queue at the authority's pace for as long as told: eight calls
// at a time, each of which takes its latency. It returns when no job is left.
func (w *env) recover(most time.Duration) {
	w.T.Helper()
	check := w.Now()
	for end := w.Now().Add(most); w.Now().Before(end); {
		if !w.Now().Before(check) {
			w.Must(w.Watcher.CheckOutage(w.T.Context(), w.Signals()))
			check = check.Add(5 * time.Second)
		}
		jobs, err := w.Claim(w.T.Context(), authorityCalls)
		w.Must(err)
		var calls sync.WaitGroup
		for _, job := range jobs {
			calls.Go(func() { w.RunJob(w.T.Context(), job) })
		}
		calls.Wait()
		if len(jobs) > 0 {
			w.Clock.Advance(authorityLatency)
			continue
		}
		next, err := w.Store().NextJob(w.T.Context(), w.Options.Env, w.Now())
		if err != nil {
			return
		}
		if next.After(check) {
			next = check
		}
		w.Clock.Advance(max(next.Sub(w.Now()), time.Millisecond))
	}
}

// After three hours without the authority every document that waited is judged within
// 15 minutes of the first answer, at the pace of the simulator, oldest first.
// RECOVERY_DOCUMENTS says how many wait; `make soak` runs it for 10,000.
func TestRecoveryAfterAnOutage(t *testing.T) {
	t.Parallel()
	documents := livetest.Number(t, "RECOVERY_DOCUMENTS", 60)
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{Numbers: int64(documents) + 10})
		// The normal pace of verdicts; the test accounts for the latency itself.
		w.Must(w.Sim.Configure(func(c *simulator.Config) { c.ValidationDelay = nil }))
		before := w.Create(fiscal.Consumer, 1000)
		w.Drive(time.Minute)
		w.Want(before, "queued accepted")
		made := w.outage(documents)
		w.Want(made[len(made)-1], "queued")
		first := w.Now() // the watcher asks the authority and gets the first answer
		w.recover(recoveryTime)

		var last time.Time
		statuses := map[fiscal.Status]int{}
		for _, inv := range made {
			now := w.Read(inv)
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
		w.Clean()
	})
}

// overtaken returns the longest time by which a document reached the authority after a
// younger one of the same type. It leaves out the few documents that were under way when
// the outage began: the service asks about them before it sends them again.
func (w *env) overtaken(made []store.Invoice) (late time.Duration) {
	w.T.Helper()
	received := map[string]time.Time{}
	for _, d := range w.Sim.Documents(simulator.Filter{}) {
		received[d.ENCF] = d.Received
	}
	youngest := map[fiscal.Type]time.Time{}
	for i := len(made) - 1; i >= 0; i-- {
		inv := w.Read(made[i])
		if strings.Contains(w.Story(inv), string(fiscal.OutcomeUnknown)) {
			continue
		}
		at, ok := received[inv.ENCF]
		if !ok {
			w.T.Errorf("%s did not reach the authority", inv.ExternalID)
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
