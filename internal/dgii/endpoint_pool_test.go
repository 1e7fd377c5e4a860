package dgii

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/netguard"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig/xmlsigtest"
)

// Receivers that do not respond take no slots from another receiver, nor from the
// authority, which is at the same origin here.
func TestHangingReceiversDelayNoOthers(t *testing.T) {
	t.Parallel()
	ca, err := xmlsigtest.NewCA("Raíz")
	if err != nil {
		t.Fatal(err)
	}
	peer := xmlsigtest.Must(t, xmlsigtest.Options{CA: ca}).Identity
	ship := shipment()
	receipt := signed(t, peer, receiptXML(ship.RNC, buyer, ship.ENCF, "0", ""))
	const hanging = 20
	var arrived sync.WaitGroup
	arrived.Add(hanging * endpointSlots)
	end := make(chan struct{})
	s := newEnv(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/hangs/"):
			arrived.Done()
			<-end
		case strings.HasPrefix(r.URL.Path, "/works/"):
			answer(200, receipt)(w, r)
		default:
			answer(200, `{"trackId":"t"}`)(w, r)
		}
	})
	c := s.client(t, func(o *Options) { o.Roots = ca.Pool() })
	id := signer(t)
	var wg sync.WaitGroup
	for n := range hanging * endpointSlots {
		wg.Go(func() {
			to := fiscal.BuyerEndpoint{RNC: buyer, Reception: fmt.Sprintf("%s/hangs/%d", s.URL, n/endpointSlots)}
			_, err := c.Deliver(testContext(t), id, to, ship)
			wantError(t, err, fiscal.ErrUnavailable)
		})
	}
	arrived.Wait()
	if _, err := c.Deliver(testContext(t), id, fiscal.BuyerEndpoint{RNC: buyer, Reception: s.URL + "/works/"}, ship); err != nil {
		t.Error(err)
	}
	if _, err := c.Submit(testContext(t), id, ship); err != nil {
		t.Error(err)
	}
	// Both slots of a hanging receiver are taken: the caller does not wait long.
	_, err = c.Deliver(testContext(t), id, fiscal.BuyerEndpoint{RNC: buyer, Reception: s.URL + "/hangs/0"}, ship)
	wantError(t, err, fiscal.ErrUnavailable)
	if _, ok := errors.AsType[*RetryAfterError](err); !ok {
		t.Error(err)
	}
	close(end)
	wg.Wait()
}

func TestReceiverHasItsOwnCircuit(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	var broken atomic.Bool
	broken.Store(true)
	s := newEnv(t, func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		if broken.Load() && strings.HasPrefix(r.URL.Path, "/a/") {
			conn, _ := hijack(t, w)
			reset(conn)
			return
		}
		answer(500, "")(w, r) // an error of one document does not open the circuit
	})
	c := s.client(t)
	id := signer(t)
	deliver := func(name string) (waits bool) {
		t.Helper()
		_, err := c.Deliver(testContext(t), id, fiscal.BuyerEndpoint{RNC: buyer, Reception: s.URL + "/" + name}, shipment())
		wantError(t, err, fiscal.ErrUnavailable)
		_, waits = errors.AsType[*RetryAfterError](err)
		return waits
	}
	for n := range 3 * failureThreshold {
		if waits := deliver("a"); waits != (n >= failureThreshold) {
			t.Errorf("delivery %d to a: the circuit is open: %v", n, waits)
		}
		if deliver("b") {
			t.Errorf("delivery %d to b waits for a", n)
		}
	}
	if n := calls.Load(); n != 4*failureThreshold {
		t.Errorf("%d calls", n)
	}
	broken.Store(false)
	s.clock.advance(probeInterval)
	for range 2 {
		if deliver("a") {
			t.Error("the circuit is open although the receiver responds again")
		}
	}
	if since, down := c.Down(); down {
		t.Errorf("a receiver is not the authority: down since %v", since)
	}
}

func TestReceiverPoolForgetsTheReceiverCalledLongestAgo(t *testing.T) {
	t.Parallel()
	made := 0
	p := newEndpointPool(3, func(key string) *endpoint { made++; return &endpoint{key: key} })
	first, leaveFirst := p.join("first")
	for n := range 10 {
		_, leave := p.join(fmt.Sprint(n))
		leave()
	}
	if again, leave := p.join("first"); again != first {
		t.Error("a receiver with a caller was forgotten")
	} else {
		leave()
	}
	_, leave := p.join("9")
	leave()
	if made != 11 || p.order.Len() != 3 || len(p.entries) != 3 {
		t.Errorf("%d made, %d in the pool", made, p.order.Len())
	}
	leaveFirst()
	for n := range 3 {
		_, leave := p.join(fmt.Sprint("other ", n))
		leave()
	}
	if _, exists := p.entries["first"]; exists || p.order.Len() != 3 {
		t.Error("the receiver called longest ago is still in the pool")
	}
}

// Our own public addresses are not called as receivers.
func TestBlockedPrefixesAreNotCalled(t *testing.T) {
	t.Parallel()
	s := newEnv(t, nil)
	c := s.client(t, func(o *Options) {
		o.BlockedPrefixes = []netip.Prefix{netip.MustParsePrefix("198.41.0.0/24")}
		o.Timeouts.Connect = time.Second
	})
	_, err := c.endpointTransport.DialContext(testContext(t), "tcp", "198.41.0.4:443")
	if !errors.Is(err, netguard.ErrAddress) {
		t.Errorf("%v", err)
	}
}
