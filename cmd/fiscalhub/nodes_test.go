package main

import (
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// nodes starts two servers with one database and one master key.
func nodes(t *testing.T, args ...string) (*integrator, [2]*serverProcess, []string) {
	t.Helper()
	shared := []string{"--data", t.TempDir(), "--database", storetest.Postgres(t).Empty(t)}
	args = append(shared, args...)
	first := serve(t, args...)
	second := serve(t, append(args, "--no-bootstrap")...)
	return newIntegrator(t, first), [2]*serverProcess{first, second}, shared
}

func TestTwoNodesShareIdempotencyAndExternalIDs(t *testing.T) {
	t.Parallel()
	c, node, _ := nodes(t, "--rate-limit", "0")

	first, err := c.create(t.Context(), node[0].base, "key", "ext")
	if err != nil || first.status != http.StatusAccepted {
		t.Fatalf("the first node: %d %s, %v", first.status, first.body, err)
	}
	replay, err := c.create(t.Context(), node[1].base, "key", "ext")
	if err != nil || replay.body != first.body || replay.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("the same key through the other node: %d %s, %v", replay.status, replay.body, err)
	}
	mismatch, err := c.create(t.Context(), node[1].base, "key", "other")
	if err != nil || mismatch.status != http.StatusConflict || !strings.Contains(mismatch.body, "idempotency_mismatch") {
		t.Errorf("the same key with another body: %d %s, %v", mismatch.status, mismatch.body, err)
	}
	conflict, err := c.create(t.Context(), node[1].base, "another key", "ext")
	if err != nil || conflict.status != http.StatusConflict || !strings.Contains(conflict.body, "external_id_conflict") {
		t.Errorf("the same external id: %d %s, %v", conflict.status, conflict.body, err)
	}

	// The same request through both nodes at the same time creates one invoice.
	for i := range 20 {
		id := "race-" + string(rune('a'+i))
		var ids [8]string
		var all sync.WaitGroup
		for j := range ids {
			all.Go(func() {
				got, err := c.create(t.Context(), node[j%2].base, id, id)
				if err != nil || got.status != http.StatusAccepted {
					t.Errorf("%s: %d %s, %v", id, got.status, got.body, err)
				}
				ids[j] = got.id()
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
	for external, ids := range c.invoices(t, node[1].base) {
		if len(ids) != 1 {
			t.Errorf("external id %s has %v", external, ids)
		}
	}
}

func TestRevocationReachesEveryNode(t *testing.T) {
	t.Parallel()
	c, node, shared := nodes(t, "--rate-limit", "0")
	for _, n := range node { // both cache the credential
		if got, err := c.create(t.Context(), n.base, "key", "ext"); err != nil || got.status != http.StatusAccepted {
			t.Fatalf("%d %s, %v", got.status, got.body, err)
		}
	}
	operate := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program(t), append(args, shared...)...)
		cmd.Env = environment()
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return string(out)
	}
	id := submatch(operate("credential", "list", "--json"), `"id": "([^"]+)"`)
	operate("credential", "revoke", id)
	revoked := time.Now()
	for i, n := range node {
		eventually(t, 20*time.Second-time.Since(revoked), "the node refuses the revoked credential", func() bool {
			got, err := c.create(t.Context(), n.base, "key", "ext")
			return err == nil && got.status == http.StatusUnauthorized
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
				got, err := c.create(t.Context(), node[worker%2].base, requestID(), requestID())
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				switch got.status {
				case http.StatusAccepted:
					accepted[got.header.Get("RateLimit-Reset")]++
				case http.StatusTooManyRequests:
					refused++
				default:
					t.Errorf("%d %s", got.status, got.body)
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
	if len(accepted) == 1 && (refused != 160-limit || accepted[only(accepted)] != limit) {
		t.Errorf("accepted %v and refused %d of 160, want %d accepted", accepted, refused, limit)
	}
}

func only(m map[string]int) (key string) {
	for key = range m {
	}
	return key
}
