package systemtest

import (
	"math/rand/v2"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

// The service is killed at random moments while it issues documents to an authority
// that loses answers. Each document must end with one number and one content.
// LIVE_KILLS and LIVE_DOCUMENTS make the test longer.
func TestKilledServiceIssuesEachDocumentOnce(t *testing.T) {
	t.Parallel()
	kills, documents := setting(t, "LIVE_KILLS", 2), setting(t, "LIVE_DOCUMENTS", 40)
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, "flaky")
		server := harness.Serve(t, w.args...)
		var base atomic.Pointer[string]
		base.Store(&server.Base)
		created := make(chan struct{})
		go func() {
			defer close(created)
			for n := range documents {
				w.createInvoice(t.Context(), t, &base, n)
			}
		}()
		for range kills {
			time.Sleep(200*time.Millisecond + rand.N(800*time.Millisecond))
			server.Signal(t, syscall.SIGKILL)
			server.Ended(t)
			server = harness.Serve(t, w.args...)
			base.Store(&server.Base)
		}
		<-created
		harness.Eventually(t, verdictLimit, "every document has its final status", func() bool { return w.isSettled(t, server.Base) })
		w.checkDocuments(t, documents)
	})
}

// setting reads a count from an environment variable.
func setting(t *testing.T, name string, byDefault int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return byDefault
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Two nodes share a PostgreSQL database. One is killed, and the other must finish
// all documents.
func TestSurvivingNodeFinishesAllDocuments(t *testing.T) {
	t.Parallel()
	documents := setting(t, "LIVE_DOCUMENTS", 40)
	w := newEnv(t, storetest.Address(t, "postgres"), "flaky")
	first, second := harness.Serve(t, w.args...), harness.Serve(t, w.args...)
	var base atomic.Pointer[string]
	base.Store(&second.Base)
	for n := range documents {
		if n == documents/2 {
			first.Signal(t, syscall.SIGKILL)
		}
		w.createInvoice(t.Context(), t, &base, n)
	}
	first.Ended(t)
	harness.Eventually(t, verdictLimit, "every document has its final status", func() bool { return w.isSettled(t, second.Base) })
	w.checkDocuments(t, documents)
}
