package main

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// outcome is what a client knows of one request.
type outcome struct {
	begun  time.Time
	status int // 0: no answer
	err    error
}

// load sends creations until nobody listens any more, and tells what became of
// each by its request id. Half of the clients use a new connection each time.
func load(t *testing.T, c *integrator, base, prefix string, acks *acknowledged) (wait func() map[string]outcome) {
	t.Helper()
	fresh := *c
	fresh.http = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}
	var mu sync.Mutex
	all := map[string]outcome{}
	var working sync.WaitGroup
	for worker, client := range []*integrator{c, &fresh, c, &fresh} {
		working.Go(func() {
			for {
				id, request := prefix+string(rune('a'+worker))+"-"+requestID(), requestID()
				begun := time.Now()
				got, err := client.create(t.Context(), base, "key-"+id, "ext-"+id, "X-Request-Id", request)
				mu.Lock()
				all[request] = outcome{begun, got.status, err}
				mu.Unlock()
				if err == nil && got.status == http.StatusAccepted {
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

// answered are the requests that a server says to have answered.
func (s *served) answered(t *testing.T) map[string]int {
	t.Helper()
	found := map[string]int{}
	for line := range strings.Lines(s.log.String()) {
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

// A stop under load: nobody is refused while the delay lasts, every request
// that the server took on is answered, and no acknowledgement is lost.
func TestAStopUnderLoadLosesNothing(t *testing.T) {
	t.Parallel()
	const cycles, delay = 5, 200 * time.Millisecond
	storetest.EachAddress(t, func(t *testing.T, address string) {
		args := []string{"--data", filepath.Join(t.TempDir(), "data"), "--database", address, "--rate-limit", "0", "--drain-delay", delay.String()}
		server := serve(t, args...)
		c := newIntegrator(t, server)
		acks := &acknowledged{by: map[string]answer{}}
		args = append(args, "--no-bootstrap")
		warned := 0
		for cycle := range cycles {
			wait := load(t, c, server.base, string(rune('A'+cycle)), acks)
			before := acks.n.Load()
			eventually(t, 30*time.Second, "load", func() bool { return acks.n.Load() > before+20 })
			server.signal(t, syscall.SIGTERM)
			stopped := time.Now()
			for {
				status, err := get(t.Context(), server.base+"/readyz")
				if err == nil && status == http.StatusServiceUnavailable {
					warned++
				}
				if err != nil || status != http.StatusOK {
					break
				}
			}
			if code := server.ended(t, 30*time.Second); code != 0 {
				t.Errorf("cycle %d: exit code %d\n%s", cycle, code, server.log)
			}
			if took := time.Since(stopped); took < delay || took > 10*time.Second {
				t.Errorf("cycle %d: it took %s to stop", cycle, took)
			}
			known := wait()
			for request, status := range server.answered(t) {
				if o, ours := known[request]; ours && (o.err != nil || o.status != status) {
					t.Errorf("cycle %d: the server answered %d, and the client got %d, %v", cycle, status, o.status, o.err)
				}
			}
			for _, o := range known {
				if o.status != http.StatusAccepted && o.begun.Before(stopped.Add(delay/4)) {
					t.Errorf("cycle %d: a request of %s after the signal got %d, %v", cycle, o.begun.Sub(stopped), o.status, o.err)
				}
				if o.status != 0 && o.status != http.StatusAccepted && o.status != http.StatusServiceUnavailable {
					t.Errorf("cycle %d: a request got %d", cycle, o.status)
				}
			}
			server = serve(t, args...)
		}
		if warned == 0 { // a busy machine may miss it at times, but not always
			t.Error("/readyz never said no while requests were still answered")
		}
		acks.stored(t, c, server.base)
	})
}

// stored asserts that every acknowledged creation is there, once.
func (a *acknowledged) stored(t *testing.T, c *integrator, base string) {
	t.Helper()
	stored := c.invoices(t, base)
	for id, first := range a.by {
		if ids := stored["ext-"+id]; len(ids) != 1 || ids[0] != first.id() {
			t.Errorf("invoice %s was acknowledged as %s and is stored as %v", id, first.id(), ids)
		}
	}
}

func TestASecondSignalEndsTheProcessAtOnce(t *testing.T) {
	t.Parallel()
	server := serve(t, "--data", t.TempDir(), "--drain-delay", "1m")
	server.signal(t, syscall.SIGTERM)
	eventually(t, 5*time.Second, "the first signal is seen", func() bool {
		status, err := get(t.Context(), server.base+"/readyz")
		return err == nil && status == http.StatusServiceUnavailable
	})
	if status, err := get(t.Context(), server.base+"/livez"); err != nil || status != http.StatusOK {
		t.Errorf("/livez while stopping: %d, %v", status, err)
	}
	server.signal(t, syscall.SIGTERM)
	if code := server.ended(t, 5*time.Second); code != -1 {
		t.Errorf("exit code %d, want the end by the signal", code)
	}
}

// A person at a terminal is not kept waiting for a load balancer.
func TestAnInterruptStopsWithoutDelay(t *testing.T) {
	t.Parallel()
	server := serve(t, "--data", t.TempDir(), "--drain-delay", "1m")
	server.signal(t, syscall.SIGINT)
	if code := server.ended(t, 10*time.Second); code != 0 {
		t.Errorf("exit code %d\n%s", code, server.log)
	}
}
