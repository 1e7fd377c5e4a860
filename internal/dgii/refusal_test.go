package dgii

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// A missing delegation pauses the documents of that taxpayer, and not those of other
// taxpayers with the same signer. After each wait one document is tried again.
func TestMissingDelegationPausesOneTaxpayer(t *testing.T) {
	t.Parallel()
	var posts atomic.Int64
	s := newEnv(t, func(w http.ResponseWriter, r *http.Request) {
		posts.Add(1)
		if doc, _ := readUpload(r); string(doc) == "other" {
			answer(200, `{"trackId":"t"}`)(w, r)
			return
		}
		answer(400, `{"mensaje":"El RNC no está delegado"}`)(w, r)
	})
	c := s.client(t, func(o *Options) { o.Pace = 2 })
	id := signer(t)
	for range 3 {
		_, err := c.Submit(testContext(t), id, shipment())
		wantError(t, err, fiscal.ErrNotDelegated)
		if _, ok := errors.AsType[*RetryAfterError](err); !ok {
			t.Errorf("the error has no RetryAfterError: %v", err)
		}
	}
	if posts.Load() != 1 {
		t.Errorf("%d posts", posts.Load())
	}
	other := shipment()
	other.RNC, other.XML = "101010101", []byte("other")
	if _, err := c.Submit(testContext(t), id, other); err != nil {
		t.Error(err)
	}
	if _, refused := c.refusalOf(id, other.RNC); refused {
		t.Error("the other taxpayer is refused")
	}
	s.clock.advance(refusalWait / 2)
	for range 3 {
		_, err := c.Submit(testContext(t), id, shipment())
		wantError(t, err, fiscal.ErrNotDelegated)
	}
	if posts.Load() != 3 {
		t.Errorf("%d posts, want one more after each wait", posts.Load())
	}
	s.clock.advance(refusalWait / 2)
	s.respond(answer(200, `{"trackId":"t"}`))
	for range 2 {
		if _, err := c.Submit(testContext(t), id, shipment()); err != nil {
			t.Fatal(err)
		}
	}
}

// When a service refuses a new token too, calls wait instead of fetching more tokens.
func TestCallsWaitWhenANewTokenIsRefused(t *testing.T) {
	t.Parallel()
	var posts atomic.Int64
	s := newEnv(t, func(w http.ResponseWriter, r *http.Request) { posts.Add(1); answer(401, "")(w, r) })
	c := s.client(t)
	id := signer(t)
	for range 20 {
		_, err := c.Submit(testContext(t), id, shipment())
		wantError(t, err, fiscal.ErrNotReceived)
	}
	if posts.Load() != 2 || s.tokenRequests.Load() != 2 {
		t.Errorf("%d posts, %d tokens", posts.Load(), s.tokenRequests.Load())
	}
	if _, refused := c.refusalOf(id, "131256432"); !refused {
		t.Error("the refusal is not remembered")
	}
	s.clock.advance(refusalWait)
	s.respond(answer(200, `{"trackId":"t"}`))
	if _, err := c.Submit(testContext(t), id, shipment()); err != nil {
		t.Fatal(err)
	}
	if _, refused := c.refusalOf(id, "131256432"); refused {
		t.Error("the refusal stays after a successful call")
	}
}
