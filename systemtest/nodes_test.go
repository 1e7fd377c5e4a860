package systemtest

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

// nodes starts two servers with one database and one master key.
func nodes(t *testing.T, args ...string) (*harness.Client, [2]*harness.Server, []string) {
	t.Helper()
	shared := []string{"--data", t.TempDir(), "--database", storetest.Postgres(t).Empty(t)}
	args = append(shared, args...)
	first := harness.Serve(t, args...)
	second := harness.Serve(t, append(args, "--no-bootstrap")...)
	return first.Client(t), [2]*harness.Server{first, second}, shared
}

func TestTwoNodesShareIdempotencyAndExternalIDs(t *testing.T) {
	t.Parallel()
	c, node, _ := nodes(t, "--rate-limit", "0")

	first := c.Created(t, node[0].Base, "key", "ext")
	replay, err := c.Create(t.Context(), node[1].Base, "key", "ext")
	if err != nil || replay.Body != first.Body || replay.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("the same key through the other node: %d %s, %v", replay.Status, replay.Body, err)
	}
	mismatch, err := c.Create(t.Context(), node[1].Base, "key", "other")
	if err != nil || mismatch.Status != http.StatusConflict || !strings.Contains(mismatch.Body, "idempotency_mismatch") {
		t.Errorf("the same key with another body: %d %s, %v", mismatch.Status, mismatch.Body, err)
	}
	conflict, err := c.Create(t.Context(), node[1].Base, "another key", "ext")
	if err != nil || conflict.Status != http.StatusConflict || !strings.Contains(conflict.Body, "external_id_conflict") {
		t.Errorf("the same external id: %d %s, %v", conflict.Status, conflict.Body, err)
	}

	// The same request through both nodes at the same time creates one invoice.
	for i := range 20 {
		id := "race-" + string(rune('a'+i))
		var ids [8]string
		var all sync.WaitGroup
		for j := range ids {
			all.Go(func() {
				got, err := c.Create(t.Context(), node[j%2].Base, id, id)
				if err != nil || got.Status != http.StatusAccepted {
					t.Errorf("%s: %d %s, %v", id, got.Status, got.Body, err)
				}
				ids[j] = got.ID()
			})
		}
		all.Wait()
		for _, made := range ids {
			if made != ids[0] {
				t.Errorf("%s made %v", id, ids)
				break
			}
		}
	}
	for external, ids := range c.Invoices(t, node[1].Base) {
		if len(ids) != 1 {
			t.Errorf("external id %s has %v", external, ids)
		}
	}
}

func TestRevocationReachesEveryNode(t *testing.T) {
	t.Parallel()
	c, node, shared := nodes(t, "--rate-limit", "0")
	for _, n := range node { // both cache the credential
		c.Created(t, n.Base, "key", "ext")
	}
	var listed []struct{ ID string }
	harness.Run(t, harness.Program(t), &listed, append([]string{"credential", "list"}, shared...)...)
	harness.Ask(t, "id", append([]string{"credential", "revoke", listed[0].ID}, shared...)...)
	revoked := time.Now()
	for i, n := range node {
		harness.Eventually(t, 20*time.Second-time.Since(revoked), "the node refuses the revoked credential", func() bool {
			got, err := c.Create(t.Context(), n.Base, "key", "ext")
			return err == nil && got.Status == http.StatusUnauthorized
		})
		t.Logf("node %d refuses the credential after %s", i, time.Since(revoked))
	}
}

// The rate limit of a credential counts the requests of all nodes together. The
// test does not run in parallel: a node that waits for the database for more than
// a second counts alone, and would accept more.
func TestRateLimitHoldsOverAllNodes(t *testing.T) {
	const limit = 40
	c, node, _ := nodes(t, "--rate-limit", "40")
	var mu sync.Mutex
	accepted := map[string]int{} // by the end of their window
	refused := 0
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for range 20 {
				got, err := c.Create(t.Context(), node[worker%2].Base, harness.RequestID(), harness.RequestID())
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				switch got.Status {
				case http.StatusAccepted:
					accepted[got.Header.Get("RateLimit-Reset")]++
				case http.StatusTooManyRequests:
					refused++
				default:
					t.Errorf("%d %s", got.Status, got.Body)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	for window, n := range accepted {
		if n > limit {
			t.Errorf("%d requests were accepted in the window that ends at %s, the limit is %d", n, window, limit)
		}
	}
	if counts := slices.Collect(maps.Values(accepted)); len(counts) == 1 && (refused != 160-limit || counts[0] != limit) {
		t.Errorf("accepted %v and refused %d of 160, want %d accepted", accepted, refused, limit)
	}
}
