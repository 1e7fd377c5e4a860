package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// Clients create, repeat, read and list invoices while nodes are killed and connections
// are cut. Each history must be linearizable: all answers are those of a service that
// does one request after the other. HISTORY_RUNS makes the test longer.
func TestHistoriesAreLinearizable(t *testing.T) {
	t.Parallel()
	runs := setting(t, "HISTORY_RUNS", 3)
	program(t) // before the clients begin
	for _, engine := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			if runs <= 3 {
				t.Parallel() // a long run has the machine for one engine
			}
			begun := time.Now()
			client, nodes := startRelayedNodes(t, engine)
			counts := map[string]int{}
			for n := 0; n < runs && !t.Failed(); n++ {
				h := newHistory("h"+strconv.Itoa(n), client)
				h.disturb(t, nodes)
				h.check(t)
				for name, count := range h.counts {
					counts[name] += count
				}
				if (n+1)%50 == 0 {
					t.Logf("%d histories in %s", n+1, seconds(time.Since(begun)))
				}
			}
			var figures []string
			for _, name := range slices.Sorted(maps.Keys(counts)) {
				figures = append(figures, fmt.Sprintf("%s %d", name, counts[name]))
			}
			t.Logf("%d histories of %d clients on %d nodes in %s: %s", runs, historyClients, len(nodes), seconds(time.Since(begun)), strings.Join(figures, ", "))
		})
	}
}

// disturb runs the clients of a history. Meanwhile it cuts connections and kills a node
// at random moments.
func (h *history) disturb(t *testing.T, nodes []*relayedNode) {
	t.Helper()
	var clients sync.WaitGroup
	for number := range historyClients {
		clients.Go(func() { h.run(t.Context(), t, number, nodes[number%len(nodes)].relay.base()) })
	}
	pause := func() { time.Sleep(rand.N(100 * time.Millisecond)) }
	pause()
	nodes[rand.IntN(len(nodes))].relay.cut(1 + rand.IntN(4))
	pause()
	nodes[rand.IntN(len(nodes))].killAndRestart(t)
	pause()
	nodes[rand.IntN(len(nodes))].relay.cut(1 + rand.IntN(4))
	clients.Wait()
	h.counts["kills"]++
	h.counts["cuts"] += 2
}

// check checks every group of a history.
func (h *history) check(t *testing.T) {
	t.Helper()
	for group, operations := range h.groups {
		h.counts["operations"] += len(operations)
		if got := checkHistory(operations, time.Minute); got != porcupine.Ok {
			t.Errorf("%s: the checker says %s about group %d:\n%s", h.name, got, group, describeHistory(operations))
		}
	}
}
