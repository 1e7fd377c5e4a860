package systemtest

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/client"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

// Connections are cut at random moments while the Go client creates invoices. Each creation
// must end with one invoice. CLIENT_INVOICES and CLIENT_SEED change the test.
func TestGoClientCreatesEachInvoiceOnce(t *testing.T) {
	t.Parallel()
	count, seed := setting(t, "CLIENT_INVOICES", 100), setting(t, "CLIENT_SEED", 1)
	server := harness.Serve(t, "--data", t.TempDir(), "--rate-limit", "0", "--log-level", "error")
	proxy, cuts := newCutter(t, server.Base, uint64(seed))
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := client.New(proxy, server.Key, server.Taxpayer, client.WithAttempts(40),
		client.WithHTTPClient(&http.Client{Transport: transport, Timeout: 20 * time.Second}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	var replayed atomic.Int64
	var mu sync.Mutex
	acknowledged := map[string]string{} // external id to invoice id
	var all sync.WaitGroup
	numbers := make(chan int)
	for range 16 {
		all.Go(func() {
			for n := range numbers {
				var sale client.InvoiceRequest
				decodeJSON(t, harness.Invoice("sale-"+strconv.Itoa(n)), &sale)
				made, err := c.CreateInvoice(ctx, "", sale, client.WithNewKey(func(string) error { return nil }))
				if err != nil {
					t.Errorf("invoice %d: %v", n, err)
					continue
				}
				if made.Meta.Replayed {
					replayed.Add(1)
				}
				mu.Lock()
				acknowledged[made.Data.ExternalID] = made.Data.ID
				mu.Unlock()
			}
		})
	}
	for n := range count {
		numbers <- n
	}
	close(numbers)
	all.Wait()
	transport.CloseIdleConnections()
	t.Logf("%d creations, %d connections cut, %d answers lost and repeated", count, cuts.Load(), replayed.Load())
	if cuts.Load() < int64(count)/10 || replayed.Load() == 0 {
		t.Error("the proxy has cut too little for this test to mean something")
	}
	checkCreations(t, server, count, acknowledged)
}
