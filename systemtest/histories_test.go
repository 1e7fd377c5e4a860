package systemtest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

// Clients create, repeat, read and list invoices while nodes are killed and connections
// are cut. Each history must be linearizable: all answers are those of a service that
// does one request after the other. HISTORY_RUNS makes the test longer.
func TestHistoriesAreLinearizable(t *testing.T) {
	t.Parallel()
	runs := setting(t, "HISTORY_RUNS", 3)
	harness.Program(t) // before the clients begin
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
				for _, v := range h.check() {
					t.Error(v)
				}
				for name, count := range h.counts {
					counts[name] += count
				}
				if (n+1)%50 == 0 {
					t.Logf("%d histories in %s", n+1, seconds(time.Since(begun)))
				}
			}
			if counts["undecided groups"]*100 > counts["groups"] {
				t.Errorf("the checker could not decide about %d of %d groups", counts["undecided groups"], counts["groups"])
			}
			var figures []string
			for _, name := range slices.Sorted(maps.Keys(counts)) {
				figures = append(figures, fmt.Sprintf("%s %d", name, counts[name]))
			}
			t.Logf("%d histories of %d clients on %d nodes in %s: %s", runs, historyClients, len(nodes), seconds(time.Since(begun)), strings.Join(figures, ", "))
		})
	}
}

// The checker must notice a service that forgets keys: here a part of the creations
// reaches it with another key.
func TestHistoriesFindForgottenKeys(t *testing.T) {
	t.Parallel()
	client, nodes := startRelayedNodes(t, "sqlite")
	h := newHistory("h", client)
	h.spoil = func(r *http.Request) {
		if rand.IntN(2) == 0 {
			r.Header.Set("Idempotency-Key", harness.RequestID())
		}
	}
	h.start(t, nodes).Wait()
	if violations := h.check(); len(violations) == 0 {
		t.Errorf("the checker found nothing: %v", h.counts)
	}
}

// start starts the clients of a history.
func (h *history) start(t *testing.T, nodes []*relayedNode) *sync.WaitGroup {
	var clients sync.WaitGroup
	for number := range historyClients {
		clients.Go(func() { h.run(t.Context(), t, number, nodes[number%len(nodes)].relay.base()) })
	}
	return &clients
}

// disturb runs the clients of a history. Meanwhile it cuts connections and kills a node
// at random moments.
func (h *history) disturb(t *testing.T, nodes []*relayedNode) {
	t.Helper()
	clients := h.start(t, nodes)
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

// check checks every group of a history, and returns what is not linearizable.
func (h *history) check() (violations []string) {
	for group, operations := range h.groups {
		h.counts["groups"]++
		h.counts["operations"] += len(operations)
		switch checkHistory(operations, time.Minute) {
		case porcupine.Illegal:
			violations = append(violations, fmt.Sprintf("%s: group %d is not linearizable:\n%s", h.name, group, describeHistory(operations)))
		case porcupine.Unknown:
			h.counts["undecided groups"]++
		case porcupine.Ok:
		}
	}
	return violations
}

// A relayedNode is a node of the service behind a relay.
type relayedNode struct {
	args    []string // of a restart
	process *harness.Server
	relay   *relay
}

// startRelayedNodes starts the nodes of an engine on an empty database: two on
// PostgreSQL, one on SQLite.
func startRelayedNodes(t *testing.T, engine string) (*harness.Client, []*relayedNode) {
	t.Helper()
	count, address := 1, storetest.Address(t, "sqlite")
	if engine == "postgres" {
		count, address = 2, storetest.Postgres(t).Empty(t)
	}
	args := []string{"--data", t.TempDir(), "--database", address, "--rate-limit", "0", "--log-level", "error"}
	restart := append(slices.Clone(args), "--no-bootstrap", "--no-migrate")
	var nodes []*relayedNode
	for i := range count {
		n := &relayedNode{args: restart, relay: newRelay(t, "tcp", "", carryToNode)}
		if i == 0 {
			n.process = harness.Serve(t, args...)
		} else {
			n.process = harness.Serve(t, restart...)
		}
		n.relay.pointAt(strings.TrimPrefix(n.process.Base, "http://"))
		nodes = append(nodes, n)
	}
	return nodes[0].process.Client(t), nodes
}

// killAndRestart ends a node with SIGKILL and starts it again. Meanwhile its clients wait.
func (n *relayedNode) killAndRestart(t *testing.T) {
	t.Helper()
	n.relay.pointAt("")
	n.process.Kill()
	n.process = harness.Serve(t, n.args...)
	n.relay.pointAt(strings.TrimPrefix(n.process.Base, "http://"))
}
