package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/client"
)

// A cutter forwards connections to a server and cuts each after a random number of bytes,
// in the middle of a request or of an answer.
type cutter struct {
	listener net.Listener
	server   string
	running  sync.WaitGroup
	cuts     atomic.Int64

	mu   sync.Mutex
	rand *rand.Rand
}

// cutAfter is the most bytes that a connection transports. A creation and its answer have
// about 2,300.
const cutAfter = 7000

func newCutter(t *testing.T, server string, seed uint64) *cutter {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{listener: listener, server: server, rand: rand.New(rand.NewPCG(seed, seed))}
	c.running.Go(c.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		c.running.Wait()
	})
	return c
}

func (c *cutter) accept() {
	for {
		conn, err := c.listener.Accept()
		if err != nil {
			return // the test has ended
		}
		c.mu.Lock()
		budget := new(atomic.Int64)
		budget.Store(c.rand.Int64N(cutAfter))
		c.mu.Unlock()
		c.running.Go(func() { c.forward(conn, budget) })
	}
}

// forward copies in both directions until the budget is used up, and then resets both
// connections.
func (c *cutter) forward(conn net.Conn, budget *atomic.Int64) {
	server, err := net.Dial("tcp", c.server) //nolint:noctx // ends with the client
	if err != nil {
		_ = conn.Close()
		return
	}
	end := sync.OnceFunc(func() {
		for _, one := range []net.Conn{conn, server} {
			if tcp, ok := one.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0)
			}
			_ = one.Close()
		}
	})
	var both sync.WaitGroup
	for from, to := range map[net.Conn]net.Conn{conn: server, server: conn} {
		both.Go(func() {
			defer end()
			for buffer := make([]byte, 512); ; {
				n, err := from.Read(buffer)
				left := budget.Add(-int64(n))
				if left < 0 {
					n = int(max(0, int64(n)+left)) // a part of what was read still arrives
				}
				if _, writeErr := to.Write(buffer[:n]); err == nil {
					err = writeErr
				}
				if left < 0 {
					c.cuts.Add(1)
					return
				}
				if err != nil {
					return
				}
			}
		})
	}
	both.Wait()
}

// Connections are cut at random moments while the Go client creates invoices. Each creation
// must end with one invoice. CLIENT_INVOICES and CLIENT_SEED change the test.
func TestGoClientCreatesEachInvoiceOnce(t *testing.T) {
	t.Parallel()
	count, seed := setting(t, "CLIENT_INVOICES", 100), setting(t, "CLIENT_SEED", 1)
	server := serve(t, "--data", t.TempDir(), "--rate-limit", "0", "--log-level", "error")
	proxy := newCutter(t, server.base[len("http://"):], uint64(seed))
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := client.New("http://"+proxy.listener.Addr().String(), server.key, server.taxpayer, client.WithAttempts(40),
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
				made, err := c.CreateInvoice(ctx, "", sampleSale(n), client.WithNewKey(func(string) error { return nil }))
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
	t.Logf("%d creations, %d connections cut, %d answers lost and repeated", count, proxy.cuts.Load(), replayed.Load())
	if proxy.cuts.Load() < int64(count)/10 || replayed.Load() == 0 {
		t.Error("the proxy has cut too little for this test to mean something")
	}
	direct, err := client.New(server.base, server.key, server.taxpayer)
	if err != nil {
		t.Fatal(err)
	}
	stored := 0
	for invoice, err := range direct.AllInvoices(ctx, client.ListOptions{Limit: 100}) {
		if err != nil {
			t.Fatal(err)
		}
		if stored++; acknowledged[invoice.ExternalID] != invoice.ID {
			t.Errorf("%s was acknowledged as %q and is stored as %s", invoice.ExternalID, acknowledged[invoice.ExternalID], invoice.ID)
		}
	}
	if stored != count || len(acknowledged) != count {
		t.Errorf("%d creations made %d invoices, and %d were acknowledged", count, stored, len(acknowledged))
	}
}

// sampleSale returns the request of sale number n.
func sampleSale(n int) client.InvoiceRequest {
	return client.InvoiceRequest{
		ExternalID: "sale-" + strconv.Itoa(n), ECFType: "32", IssueDate: "2026-11-14", Currency: "DOP", PaymentType: client.Cash,
		Buyer: client.Buyer{LegalName: fmt.Sprintf("Consumidor %d", n)},
		Lines: []client.Line{{
			LineID: "1", Description: "Café molido 1 lb", ItemKind: client.Product, Quantity: "2", UnitPrice: "100.00",
			Taxes: []client.Tax{{Code: "ITBIS", Label: "ITBIS 18%", RatePercent: "18"}},
		}},
		DeclaredTotals: client.Totals{Subtotal: "200.00", DiscountTotal: "0.00", TaxTotal: "36.00", Total: "236.00"},
	}
}
