package systemtest

import (
	"slices"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

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
