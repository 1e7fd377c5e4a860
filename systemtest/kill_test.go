package systemtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

// acknowledged are the answers 202 that clients have received, by invoice.
type acknowledged struct {
	mu sync.Mutex
	by map[string]harness.Answer
	n  atomic.Int64
}

func (a *acknowledged) add(key string, got harness.Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.by[key] = got
	a.n.Add(1)
}

// createInvoices creates invoices in eight goroutines until ctx ends. Each request
// is repeated until the service accepts it.
func createInvoices(ctx context.Context, t *testing.T, c *harness.Client, base *atomic.Pointer[string], acks *acknowledged) *sync.WaitGroup {
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				id := fmt.Sprintf("%d-%05d", worker, i)
				for {
					// The request ignores ctx, so that no result stays unknown.
					got, err := c.Create(t.Context(), *base.Load(), "key-"+id, "ext-"+id)
					if err == nil && got.Status == http.StatusAccepted {
						acks.add(id, got)
						break
					}
					if err == nil && got.Status != http.StatusServiceUnavailable {
						t.Errorf("invoice %s: %d %s", id, got.Status, got.Body)
						return
					}
					time.Sleep(5 * time.Millisecond) // the server is starting again
				}
			}
		})
	}
	return &all
}

// checkReplays checks that the server has every acknowledged invoice once, and no
// other, and replays every answer byte for byte.
func (a *acknowledged) checkReplays(t *testing.T, c *harness.Client, base string) {
	t.Helper()
	stored := c.Invoices(t, base)
	for external, ids := range stored {
		if len(ids) != 1 {
			t.Errorf("external id %s has the invoices %v", external, ids)
		}
	}
	if len(stored) != len(a.by) {
		t.Errorf("%d invoices are stored, and %d were acknowledged", len(stored), len(a.by))
	}
	for id, first := range a.by {
		got, err := c.Create(t.Context(), base, "key-"+id, "ext-"+id)
		switch {
		case err != nil:
			t.Fatal(err)
		case got.Status != http.StatusAccepted, got.Header.Get("Idempotency-Replayed") != "true":
			t.Errorf("invoice %s is answered with %d, replayed %q: %s", id, got.Status, got.Header.Get("Idempotency-Replayed"), got.Body)
		case got.Body != first.Body || got.Header.Get("Location") != first.Header.Get("Location"):
			t.Errorf("invoice %s was answered with\n%s\nand is replayed as\n%s", id, first.Body, got.Body)
		case len(stored["ext-"+id]) != 1 || stored["ext-"+id][0] != got.ID():
			t.Errorf("invoice %s is stored as %v and was acknowledged as %s", id, stored["ext-"+id], got.ID())
		}
	}
}

// After many kills the server must have every invoice that it answered with 202,
// once, and replay each answer byte for byte.
func TestKilledServerKeepsAcknowledgedInvoices(t *testing.T) {
	t.Parallel()
	const kills, creations = 8, 600
	storetest.EachAddress(t, func(t *testing.T, address string) {
		args := []string{"--data", filepath.Join(t.TempDir(), "data"), "--database", address, "--rate-limit", "0", "--log-level", "error"}
		server := harness.Serve(t, args...)
		c := server.Client(t)
		var base atomic.Pointer[string]
		base.Store(&server.Base)
		acks := &acknowledged{by: map[string]harness.Answer{}}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		working := createInvoices(ctx, t, c, &base, acks)

		args = append(args, "--no-bootstrap")
		for killed := 1; killed <= kills && !t.Failed(); killed++ {
			due := int64(killed*creations/kills) + rand.Int64N(creations/kills/2)
			harness.Eventually(t, 30*time.Second, "clients create invoices", func() bool { return acks.n.Load() >= due })
			time.Sleep(rand.N(15 * time.Millisecond)) // the kill meets any point of a commit
			server.Signal(t, syscall.SIGKILL)
			server.Ended(t)
			server = harness.Serve(t, args...)
			base.Store(&server.Base)
		}
		harness.Eventually(t, 30*time.Second, "clients create invoices after the last kill", func() bool { return acks.n.Load() >= creations+50 })
		stop()
		working.Wait()
		t.Logf("%d creations were acknowledged over %d kills", len(acks.by), kills)
		acks.checkReplays(t, c, server.Base)
	})
}
