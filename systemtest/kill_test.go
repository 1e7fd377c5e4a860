package systemtest

import (
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

// After many kills the server must have every invoice that it answered with 202,
// once, and replay each answer byte for byte.
func TestKilledServerKeepsAcknowledgedInvoices(t *testing.T) {
	t.Parallel()
	const kills, creations = 8, 600
	storetest.EachAddress(t, func(t *testing.T, address string) {
		args := []string{"--data", filepath.Join(t.TempDir(), "data"), "--database", address, "--rate-limit", "0", "--log-level", "error"}
		server := harness.Serve(t, args...)
		c := startClientsEvery(t, &env{client: server.Client(t)}, 0, server)
		args = append(args, "--no-bootstrap")
		for killed := 1; killed <= kills && !t.Failed(); killed++ {
			c.reach(t, killed*creations/kills+rand.IntN(creations/kills/2))
			time.Sleep(rand.N(15 * time.Millisecond)) // the kill meets any point of a commit
			server.Kill()
			server = harness.Serve(t, args...)
			c.pointAt(server)
		}
		c.reach(t, creations+50)
		c.stopAll()
		if c.failed > 0 {
			t.Errorf("%d requests were answered with 500", c.failed)
		}
		t.Logf("%d creations were acknowledged over %d kills", len(c.acks), kills)
		c.checkReplays(t)
	})
}
