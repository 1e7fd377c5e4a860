package systemtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

// fiscalhub send is killed ten times, each time while requests wait for their answers, and
// must make each invoice once. SEND_INVOICES changes how many.
func TestKilledSendMakesEachInvoiceOnce(t *testing.T) {
	t.Parallel()
	const kills, parallel = 10, 8
	count := setting(t, "SEND_INVOICES", 300)
	dir := t.TempDir()
	server := harness.Serve(t, "--data", filepath.Join(dir, "data"), "--rate-limit", "0", "--log-level", "error")
	c := server.Client(t)
	proxy := newSilentProxy(t, server.Base, c.HTTP.Transport)
	file, journal, results := filepath.Join(dir, "invoices.ndjson"), filepath.Join(dir, "journal"), filepath.Join(dir, "results.ndjson")
	writeInvoices(t, file, count)
	send := func() *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), harness.Program(t), "send", file, "--base-url", proxy.base, "--taxpayer", c.Taxpayer,
			"--journal", journal, "--results", results, "--parallel", fmt.Sprint(parallel))
		cmd.Env = append(harness.Environment(), "FISCALHUB_KEY="+c.Key)
		return cmd
	}
	began := time.Now()
	for range kills {
		proxy.silentAfter(count / (kills + 5))
		cmd := send()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		harness.Eventually(t, 2*time.Minute, "send waits for an answer", func() bool { return proxy.silenced.Load() > 0 })
		_ = cmd.Process.Kill()
		if err := cmd.Wait(); err == nil {
			t.Fatal("send ended before it was killed")
		}
	}
	proxy.silentAfter(2 * count)
	if out, err := send().CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	took := time.Since(began)
	all := c.Invoices(t, server.Base)
	t.Logf("%d invoices sent in %.1f s, %d kills, %d answers lost and repeated: %d invoices", count, took.Seconds(), kills, proxy.replayed.Load(), len(all))
	checkResults(t, results, all, count)
	if proxy.replayed.Load() == 0 {
		t.Error("no kill has lost the answer to a creation, so this test means little")
	}
}

// writeInvoices writes a file for fiscalhub send.
func writeInvoices(t *testing.T, file string, count int) {
	t.Helper()
	var text bytes.Buffer
	for i := range count {
		one := harness.Invoice(fmt.Sprintf("SENT-%05d", i))
		if err := json.Compact(&text, []byte(one)); err != nil {
			t.Fatal(err)
		}
		text.WriteByte('\n')
	}
	writeFile(t, file, text.Bytes())
}

// checkResults checks that the service has one invoice for each line of the file, and that
// the results name it.
func checkResults(t *testing.T, results string, all map[string][]string, count int) {
	t.Helper()
	lines := json.NewDecoder(bytes.NewReader(readFile(t, results)))
	named := 0
	for lines.More() {
		var r struct {
			ExternalID string `json:"external_id"`
			InvoiceID  string `json:"invoice_id"`
			Status     string `json:"status"`
		}
		if err := lines.Decode(&r); err != nil {
			t.Fatal(err)
		}
		if made := all[r.ExternalID]; len(made) != 1 || made[0] != r.InvoiceID || r.Status != "accepted" {
			t.Errorf("the result is %+v, and the service has %v", r, made)
		}
		named++
	}
	if len(all) != count || named != count {
		t.Errorf("%d invoices and %d results, want %d", len(all), named, count)
	}
}

// A silentProxy forwards requests to a service. After a number of them it gives no answer
// any more; it still forwards every second request.
type silentProxy struct {
	base     string
	left     atomic.Int64 // requests that it still answers
	silenced atomic.Int64 // requests without an answer, since silentAfter
	replayed atomic.Int64 // answers to repeated requests
}

func newSilentProxy(t *testing.T, service string, transport http.RoundTripper) *silentProxy {
	t.Helper()
	target, err := url.Parse(service)
	if err != nil {
		t.Fatal(err)
	}
	p := &silentProxy{}
	forward := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: transport,
		ModifyResponse: func(r *http.Response) error {
			if r.Header.Get("Idempotency-Replayed") == "true" {
				p.replayed.Add(1)
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }, // logs nothing
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		left := p.left.Add(-1)
		if left >= 0 {
			forward.ServeHTTP(w, r)
			return
		}
		if left%2 == 0 {
			forward.ServeHTTP(httptest.NewRecorder(), r)
		} else {
			_, _ = io.Copy(io.Discard, r.Body) // only then the server sees the end of the connection
		}
		p.silenced.Add(1)
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	p.base = server.URL
	return p
}

// silentAfter lets the proxy answer so many requests from now on.
func (p *silentProxy) silentAfter(requests int) {
	p.left.Store(int64(requests))
	p.silenced.Store(0)
}
