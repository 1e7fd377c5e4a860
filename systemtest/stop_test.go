package systemtest

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
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

// outcome is the result of one request for its client.
type outcome struct {
	begun  time.Time
	status int // 0 without an answer
	err    error
}

// load creates invoices until the server stops accepting. The returned function
// waits for the clients and returns the outcomes by request id. Half of the clients
// use a new connection for each request.
func load(t *testing.T, c *harness.Client, base, prefix string, acks *acknowledged) (wait func() map[string]outcome) {
	t.Helper()
	fresh := *c
	fresh.HTTP = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}
	var mu sync.Mutex
	all := map[string]outcome{}
	var working sync.WaitGroup
	for worker, client := range []*harness.Client{c, &fresh, c, &fresh} {
		working.Go(func() {
			for {
				id, request := prefix+string(rune('a'+worker))+"-"+harness.RequestID(), harness.RequestID()
				begun := time.Now()
				got, err := client.Create(t.Context(), base, "key-"+id, "ext-"+id, "X-Request-Id", request)
				mu.Lock()
				all[request] = outcome{begun, got.Status, err}
				mu.Unlock()
				if err == nil && got.Status == http.StatusAccepted {
					acks.add(id, got)
					continue
				}
				return
			}
		})
	}
	return func() map[string]outcome {
		working.Wait()
		return all
	}
}

// answered returns the status of each request by request id, from the server's log.
func answered(t *testing.T, s *harness.Server) map[string]int {
	t.Helper()
	found := map[string]int{}
	for line := range strings.Lines(s.Log.String()) {
		var entry struct {
			Message string `json:"msg"`
			ID      string `json:"request_id"`
			Status  int    `json:"status"`
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("the log holds %q: %v", line, err)
		}
		if entry.Message == "request" {
			found[entry.ID] = entry.Status
		}
	}
	return found
}

// A server that stops under load must accept requests during the drain delay,
// answer every request that it has read, and keep every acknowledged invoice.
func TestStopUnderLoadLosesNoRequest(t *testing.T) {
	t.Parallel()
	// The delay is long, because on a busy machine a client may send its request long
	// after it took the time.
	const cycles, delay = 3, 2 * time.Second
	storetest.EachAddress(t, func(t *testing.T, address string) {
		args := []string{"--data", filepath.Join(t.TempDir(), "data"), "--database", address, "--rate-limit", "0", "--drain-delay", delay.String()}
		server := harness.Serve(t, args...)
		c := server.Client(t)
		acks := &acknowledged{by: map[string]harness.Answer{}}
		args = append(args, "--no-bootstrap")
		notReady := 0
		for cycle := range cycles {
			wait := load(t, c, server.Base, string(rune('A'+cycle)), acks)
			before := acks.n.Load()
			harness.Eventually(t, time.Minute, "clients create invoices", func() bool { return acks.n.Load() > before+20 })
			server.Signal(t, syscall.SIGTERM)
			stopped := time.Now()
			for {
				status, err := harness.Status(t.Context(), server.Base+"/readyz")
				if err == nil && status == http.StatusServiceUnavailable {
					notReady++
				}
				if err != nil || status != http.StatusOK {
					break
				}
			}
			if code := server.Ended(t); code != 0 {
				t.Errorf("cycle %d: exit code %d\n%s", cycle, code, server.Log)
			}
			if took := time.Since(stopped); took < delay || took > 40*time.Second {
				t.Errorf("cycle %d: it took %s to stop", cycle, took)
			}
			known := wait()
			for request, status := range answered(t, server) {
				if o, ours := known[request]; ours && (o.err != nil || o.status != status) {
					t.Errorf("cycle %d: the server answered %d, and the client got %d, %v", cycle, status, o.status, o.err)
				}
			}
			for _, o := range known {
				if o.status != http.StatusAccepted && o.begun.Before(stopped.Add(delay/20)) {
					t.Errorf("cycle %d: a request of %s after the signal got %d, %v", cycle, o.begun.Sub(stopped), o.status, o.err)
				}
				if o.status != 0 && o.status != http.StatusAccepted && o.status != http.StatusServiceUnavailable {
					t.Errorf("cycle %d: a request got %d", cycle, o.status)
				}
			}
			server = harness.Serve(t, args...)
		}
		if notReady == 0 { // on a busy machine a cycle may miss it, but not all cycles
			t.Error("/readyz never failed while the server still answered requests")
		}
		acks.checkStored(t, c, server.Base)
	})
}

// checkStored checks that the server has every acknowledged invoice once.
func (a *acknowledged) checkStored(t *testing.T, c *harness.Client, base string) {
	t.Helper()
	stored := c.Invoices(t, base)
	for id, first := range a.by {
		if ids := stored["ext-"+id]; len(ids) != 1 || ids[0] != first.ID() {
			t.Errorf("invoice %s was acknowledged as %s and is stored as %v", id, first.ID(), ids)
		}
	}
}

func TestSecondSignalEndsTheProcess(t *testing.T) {
	t.Parallel()
	server := harness.Serve(t, "--data", t.TempDir(), "--drain-delay", "1m")
	server.Signal(t, syscall.SIGTERM)
	harness.Eventually(t, 60*time.Second, "/readyz fails after the first signal", func() bool {
		status, err := harness.Status(t.Context(), server.Base+"/readyz")
		return err == nil && status == http.StatusServiceUnavailable
	})
	if status, err := harness.Status(t.Context(), server.Base+"/livez"); err != nil || status != http.StatusOK {
		t.Errorf("/livez while stopping: %d, %v", status, err)
	}
	server.Signal(t, syscall.SIGTERM)
	if code := server.Ended(t); code != -1 {
		t.Errorf("exit code %d, want the end by the signal", code)
	}
}

// After Ctrl-C the server does not wait for load balancers.
func TestInterruptStopsWithoutDrainDelay(t *testing.T) {
	t.Parallel()
	server := harness.Serve(t, "--data", t.TempDir(), "--drain-delay", "1m")
	server.Stop(t)
}
