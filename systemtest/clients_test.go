package systemtest

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

const (
	clientCount = 8
	// clientPause is the time between two sales of a client.
	clientPause = 100 * time.Millisecond
	// settleLimit is how long a client repeats the request for one invoice.
	settleLimit = 2 * time.Minute
	// verdictLimit is how long the tests wait until every document has its final status.
	// A busy machine with thousands of documents needs minutes.
	verdictLimit = 20 * time.Minute
)

// clients are integrators that create live invoices at the same time, through two nodes.
// They follow docs/integration.md: after a lost connection, a 408, a 429, a 500 or a 503
// they send the same bytes with the same key again, after the time that the service asks
// for. They do the same after a 409 that asks for an operator.
type clients struct {
	env     *env
	nodes   [2]atomic.Pointer[string] // addresses
	stop    context.CancelFunc
	working sync.WaitGroup
	made    atomic.Int64
	count   atomic.Int64 // of acks
	gate    sync.RWMutex // who holds it keeps the clients from sending requests

	mu      sync.Mutex
	acks    map[int]harness.Answer
	retried int // invoices that were not acknowledged by the first request
	refused int // answers that ask for an operator
	failed  int // answers 500
	last    time.Time
	silence time.Duration // the longest time without an acknowledgement
}

// startClients starts the clients. They end with stopAll, or with the test.
func startClients(t *testing.T, e *env, nodes ...*harness.Server) *clients {
	t.Helper()
	return startClientsEvery(t, e, clientPause, nodes...)
}

// startClientsEvery is startClients with another time between two sales. A single node
// serves all clients.
func startClientsEvery(t *testing.T, e *env, pause time.Duration, nodes ...*harness.Server) *clients {
	t.Helper()
	c := &clients{env: e, acks: map[int]harness.Answer{}, last: time.Now()}
	c.pointAt(nodes...)
	var ctx context.Context
	ctx, c.stop = context.WithCancel(t.Context())
	for range clientCount {
		c.working.Go(func() {
			for ctx.Err() == nil {
				c.create(t, int(c.made.Add(1)-1)) // ignores ctx, so that no result stays unknown
				select {
				case <-time.After(pause):
				case <-ctx.Done():
				}
			}
		})
	}
	t.Cleanup(c.stopAll)
	return c
}

// pointAt tells the clients where the nodes are.
func (c *clients) pointAt(nodes ...*harness.Server) {
	for i := range c.nodes {
		c.nodes[i].Store(&nodes[i%len(nodes)].Base)
	}
}

// stopAll waits until every invoice that was begun is acknowledged.
func (c *clients) stopAll() {
	c.stop()
	c.working.Wait()
}

// create repeats the request for invoice n until it is acknowledged.
func (c *clients) create(t *testing.T, n int) {
	begun := time.Now()
	for attempt := 0; ; attempt++ {
		got, err := c.send(t, n, attempt)
		pause := 50 * time.Millisecond
		switch {
		case t.Context().Err() != nil, err == nil && got.Status == http.StatusAccepted:
			return
		case err != nil: // no answer: a node or its connection ended
		case isRefused(got):
			c.mu.Lock()
			c.refused++
			c.mu.Unlock()
			pause = 200 * time.Millisecond
		case mayRepeat(got):
			if seconds, err := strconv.Atoi(got.Header.Get("Retry-After")); err == nil {
				pause = time.Duration(seconds) * time.Second
			}
		default:
			t.Errorf("invoice %d: %d %s", n, got.Status, got.Body)
			return
		}
		if time.Since(begun) > settleLimit {
			t.Errorf("invoice %d is not acknowledged after %d requests within %s: %d %s, %v", n, attempt+1, settleLimit, got.Status, got.Body, err)
			return
		}
		time.Sleep(pause)
	}
}

// mayRepeat reports whether an answer says to send the same request again.
func mayRepeat(got harness.Answer) bool {
	return slices.Contains([]int{http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable}, got.Status)
}

// isRefused reports whether an answer asks for an operator.
func isRefused(got harness.Answer) bool {
	return got.Status == http.StatusConflict && strings.Contains(got.Body, "operational_readiness_failed")
}

// send sends one request for invoice n, and keeps its answer when the invoice is accepted.
func (c *clients) send(t *testing.T, n, attempt int) (harness.Answer, error) {
	c.gate.RLock()
	defer c.gate.RUnlock()
	got, err := c.env.postInvoice(t.Context(), *c.nodes[(n+attempt)%len(c.nodes)].Load(), n)
	if err == nil && got.Status == http.StatusInternalServerError {
		c.mu.Lock()
		c.failed++
		c.mu.Unlock()
	}
	if err == nil && got.Status == http.StatusAccepted {
		c.acknowledge(n, got, attempt > 0)
	}
	return got, err
}

func (c *clients) acknowledge(n int, got harness.Answer, again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.silence, c.last = max(c.silence, now.Sub(c.last)), now
	c.acks[n] = got
	if again {
		c.retried++
	}
	c.count.Add(1)
}

// reachMore waits until so many more invoices are acknowledged.
func (c *clients) reachMore(t *testing.T, more int) {
	t.Helper()
	c.reach(t, int(c.count.Load())+more)
}

// reach waits until so many invoices are acknowledged.
func (c *clients) reach(t *testing.T, total int) {
	t.Helper()
	harness.Eventually(t, settleLimit, strconv.Itoa(total)+" invoices are acknowledged", func() bool { return c.count.Load() >= int64(total) || t.Failed() })
}

// checkReplays checks that the service has every acknowledged invoice once, and no other,
// and answers each again with the same bytes.
func (c *clients) checkReplays(t *testing.T) {
	t.Helper()
	stored := c.env.client.Invoices(t, *c.nodes[0].Load())
	if len(stored) != len(c.acks) {
		t.Errorf("%d invoices are stored, and %d were acknowledged", len(stored), len(c.acks))
	}
	for n, first := range c.acks {
		if ids := stored["ext-"+strconv.Itoa(n)]; len(ids) != 1 || ids[0] != first.ID() {
			t.Errorf("invoice %d is stored as %v and was acknowledged as %s", n, ids, first.ID())
		}
		got, err := c.env.postInvoice(t.Context(), *c.nodes[n%len(c.nodes)].Load(), n)
		if err != nil || got.Status != http.StatusAccepted || got.Header.Get("Idempotency-Replayed") != "true" ||
			got.Body != first.Body || got.Header.Get("Location") != first.Header.Get("Location") {
			t.Errorf("invoice %d was answered with\n%s\nand is answered again with %d %s, %v", n, first.Body, got.Status, got.Body, err)
		}
	}
}

// checkLedger compares the invoices of the clients with the authority.
func (c *clients) checkLedger(t *testing.T, allowed ...simulator.ViolationKind) ledger {
	t.Helper()
	return c.env.checkLedger(t, int(c.made.Load()), c.acks, allowed...)
}

// settle stops the clients and waits until every document has its final status. It returns
// how long that took.
func (c *clients) settle(t *testing.T) time.Duration {
	t.Helper()
	c.stopAll()
	return c.env.settle(t, *c.nodes[0].Load(), *c.nodes[1].Load())
}

// finish settles, and checks that nothing is lost: every acknowledged invoice is answered
// again with the same bytes, and the ledger has no difference.
func (c *clients) finish(t *testing.T, allowed ...simulator.ViolationKind) (ledger, time.Duration) {
	t.Helper()
	settled := c.settle(t)
	c.checkReplays(t)
	l := c.checkLedger(t, allowed...)
	if l.lost > 0 || l.abandoned > 0 {
		t.Errorf("%d acknowledged invoices are lost, and %d numbers were abandoned", l.lost, l.abandoned)
	}
	return l, settled
}

// checkNoFence checks that no node has fenced its ranges.
func checkNoFence(t *testing.T, nodes ...*harness.Server) {
	t.Helper()
	for i, n := range nodes {
		if strings.Contains(n.Log.String(), "fenced") {
			t.Errorf("node %d fenced its ranges:\n%s", i, n.Log)
		}
	}
}
