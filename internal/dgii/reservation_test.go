package dgii

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

func TestReserveThenSend(t *testing.T) {
	t.Parallel()
	var posts atomic.Int64
	s := newEnv(t, func(w http.ResponseWriter, r *http.Request) {
		posts.Add(1)
		answer(200, `{"trackId":"t"}`)(w, r)
	})
	c := s.client(t)
	send, release, err := c.Reserve(testContext(t), signer(t), shipment().RNC, false)
	if err != nil {
		t.Fatal(err)
	}
	if posts.Load() != 0 || len(c.reception.slots) != 1 || s.tokenRequests.Load() != 1 {
		t.Errorf("%d posts, %d slots, %d tokens", posts.Load(), len(c.reception.slots), s.tokenRequests.Load())
	}
	other := shipment()
	other.RNC = "131256433"
	_, err = send(testContext(t), other)
	wantError(t, err, fiscal.ErrNotReceived)
	if a, err := send(testContext(t), shipment()); err != nil || a.TrackID != "t" {
		t.Errorf("%+v, %v", a, err)
	}
	_, err = send(testContext(t), shipment())
	wantError(t, err, fiscal.ErrNotReceived)
	release()
	release()
	if posts.Load() != 1 || len(c.reception.slots) != 0 {
		t.Errorf("%d posts, %d slots", posts.Load(), len(c.reception.slots))
	}
}

func TestReleaseWithoutSendingGivesTheSlotBack(t *testing.T) {
	t.Parallel()
	s := newEnv(t, answer(200, `{"trackId":"t"}`))
	c := s.client(t, func(o *Options) { o.MaxInFlight = 1 })
	id := signer(t)
	for range 3 {
		send, release, err := c.Reserve(testContext(t), id, shipment().RNC, true)
		if err != nil {
			t.Fatal(err)
		}
		release()
		_, err = send(testContext(t), shipment())
		wantError(t, err, fiscal.ErrNotReceived)
	}
	if _, err := c.Submit(testContext(t), id, shipment()); err != nil {
		t.Error(err)
	}
}

// Without permission nothing is reserved: the circuit is open, the authority cannot
// be reached, the signer is not delegated, or ctx ends before a slot is free.
func TestReserveFailsWithoutPermission(t *testing.T) {
	t.Parallel()
	s := newEnv(t, answer(400, `{"mensaje":"El RNC no está delegado"}`))
	c := s.client(t, func(o *Options) { o.MaxInFlight = 1 })
	id := signer(t)
	reserve := func(ctx context.Context, rnc string) error {
		_, _, err := c.Reserve(ctx, id, rnc, false)
		return err
	}
	wantRetry := func(err, want error) {
		t.Helper()
		wantError(t, err, want)
		if wait, ok := errors.AsType[*RetryAfterError](err); !ok || wait.Delay <= 0 {
			t.Errorf("no time to wait: %v", err)
		}
	}
	_, err := c.Submit(testContext(t), id, shipment())
	wantError(t, err, fiscal.ErrNotDelegated)
	wantRetry(reserve(testContext(t), shipment().RNC), fiscal.ErrNotDelegated)

	const other = "131256433"
	_, release, err := c.Reserve(testContext(t), id, other, false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantError(t, reserve(ctx, other), fiscal.ErrNotReceived)
	release()

	for range failureThreshold {
		c.reception.breaker.record(failed, false)
	}
	seeds := s.seedRequests.Load()
	wantRetry(reserve(testContext(t), other), fiscal.ErrNotReceived)
	if s.seedRequests.Load() != seeds {
		t.Error("an open circuit allowed a request")
	}
	s.clock.advance(probeInterval)
	handler := s.Config.Handler
	s.Config.Handler = answer(503, htmlPage)
	wantRetry(reserve(testContext(t), other), fiscal.ErrNotReceived) // the probe fails before anything is sent
	s.Config.Handler = handler
	s.clock.advance(probeInterval)
	_, release, err = c.Reserve(testContext(t), id, other, false)
	if err != nil {
		t.Fatal(err)
	}
	wantRetry(reserve(testContext(t), other), fiscal.ErrNotReceived) // there is one probe
	release()
	if len(c.reception.slots) != 0 {
		t.Error("a slot is still taken")
	}
}

// A call that waits for a slot longer than its exchange may take is sent all the
// same: its time starts with the exchange.
func TestWaitingForASlotTakesNoTimeFromTheExchange(t *testing.T) {
	t.Parallel()
	const calls = 12
	arrived, next := make(chan struct{}, calls), make(chan struct{})
	s := newEnv(t, func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-next
		answer(200, `{"trackId":"t"}`)(w, r)
	})
	const timeout = 2 * time.Second
	c := s.client(t, func(o *Options) {
		o.MaxInFlight = 1
		o.Timeouts.FirstByte, o.Timeouts.Total = timeout, timeout
	})
	id := signer(t)
	if _, err := c.token(testContext(t), id); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for n := range calls {
		wg.Go(func() {
			if _, err := c.Submit(testContext(t), id, shipmentOf(n)); err != nil {
				t.Error(err)
			}
		})
	}
	for range calls { // the last call waits for a slot for longer than the timeout
		<-arrived
		<-time.After(timeout / 10)
		next <- struct{}{}
	}
	wg.Wait()
}
