package systemtest

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

// The service is killed between the delivery of an event and its record. It must
// send the same event again, so that every change of status arrives under one id.
// LIVE_KILLS and LIVE_DOCUMENTS make the test longer.
func TestKilledServiceDeliversEveryEvent(t *testing.T) {
	t.Parallel()
	kills, documents := setting(t, "LIVE_KILLS", 2), setting(t, "LIVE_DOCUMENTS", 8)
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, "happy")
		l := w.listen(t)
		w.args = append(w.args, "--pace", "1000") // the service soon asks about documents in doubt
		var server atomic.Pointer[harness.Server]
		start := func() { server.Store(w.serve(t)) }
		var unrecorded []string // events that were sent and cannot have been recorded
		var countdown atomic.Int64
		fired := make(chan struct{}, 1)
		var mu sync.Mutex
		l.before = func(a arrival) func() {
			if countdown.Add(-1) != 0 {
				return nil
			}
			kill := func() {
				server.Load().Signal(t, syscall.SIGKILL)
				fired <- struct{}{}
			}
			mu.Lock()
			defer mu.Unlock()
			if len(unrecorded) > 0 && rand.IntN(2) == 0 {
				return kill // after the answer: the event may have been recorded
			}
			unrecorded = append(unrecorded, a.ID)
			kill()
			return nil
		}
		start()
		created := make(chan struct{})
		go func() {
			defer close(created)
			for n := range documents {
				w.createInvoice(t, n)
			}
		}()
		for range kills {
			countdown.Store(1 + rand.Int64N(4))
			select {
			case <-fired:
			case <-time.After(time.Minute):
				t.Fatal("no event arrives")
			}
			server.Load().Ended(t)
			start()
		}
		<-created
		w.settle(t)
		w.checkDocuments(t, documents)
		s := storetest.Open(t, address, time.Now)
		invoices := w.storedInvoices(t, s, documents)
		l.awaitAll(s, invoices)
		for _, id := range unrecorded { // they arrive again when the lease of the killed process ends
			harness.Eventually(t, time.Minute, "event "+id+", which was not recorded, arrives again", func() bool {
				return len(slices.DeleteFunc(l.arrivals(""), func(a arrival) bool { return a.ID != id })) > 1
			})
		}
	})
}

// The sandbox emits no events and has no receiver.
func TestSandboxEmitsNoEvents(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		shared := []string{"--data", t.TempDir(), "--database", address}
		server := harness.Serve(t, append(shared, "--webhook-allow-private")...)
		c := server.Client(t)
		c.Created(t, server.Base, "key", "ext", "Sandbox-Scenario", "rejected")
		s := storetest.Open(t, address, time.Now)
		scope := store.Scope{Environment: fiscal.Sandbox, TaxpayerID: c.Taxpayer}
		harness.Eventually(t, 30*time.Second, "the scenario has reached its status", func() bool {
			inv, err := s.InvoiceByExternalID(t.Context(), scope, "ext")
			return err == nil && inv.Status == fiscal.Rejected
		})
		if feed, err := s.Feed(t.Context(), scope, 0, 10); err != nil || len(feed) > 0 {
			t.Errorf("%d events, %v", len(feed), err)
		}
		if status, err := harness.Status(t.Context(), server.Base+"/fe/autenticacion/api/semilla"); err != nil || status != http.StatusNotFound {
			t.Errorf("the seed of the receiver: %d, %v", status, err)
		}
	})
}
