package dgii

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig/xmlsigtest"
)

// A thousand callers at the same time fetch one token. It is renewed five minutes
// before its expiry.
func TestConcurrentCallersShareOneToken(t *testing.T) {
	t.Parallel()
	s := newEnv(t, answer(200, `{"trackId":"t"}`))
	c := s.client(t)
	id := signer(t)
	var wg sync.WaitGroup
	for n := range 1000 {
		wg.Go(func() {
			ctx := testContext(t)
			if n%10 == 1 { // some callers are cancelled at once, perhaps the one that started the fetch
				var cancel context.CancelFunc
				ctx, cancel = context.WithCancel(ctx)
				cancel()
			}
			_, err := c.token(ctx, id)
			if n%10 != 1 && err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := s.tokenRequests.Load(); n != 1 {
		t.Fatalf("%d tokens were fetched", n)
	}
	for _, step := range []struct {
		after time.Duration
		want  int64
	}{{54 * time.Minute, 1}, {2 * time.Minute, 2}, {time.Minute, 2}} {
		s.clock.advance(step.after)
		if _, err := c.Submit(testContext(t), id, shipment()); err != nil {
			t.Fatal(err)
		}
		if n := s.tokenRequests.Load(); n != step.want {
			t.Errorf("after %v: %d tokens, want %d", step.after, n, step.want)
		}
	}
	other := xmlsigtest.Must(t, xmlsigtest.Options{Subject: "Otra"}).Identity
	if _, err := c.Submit(testContext(t), other, shipment()); err != nil {
		t.Fatal(err)
	}
	if n := s.tokenRequests.Load(); n != 3 {
		t.Errorf("another signer: %d tokens", n)
	}
}

// A fetch goes on when the caller that started it is cancelled.
func TestTokenFetchOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	s := newEnv(t, answer(200, `{"trackId":"t"}`))
	asked, answer := make(chan struct{}), make(chan struct{})
	s.answerTokens(func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		<-answer
		_, _ = fmt.Fprintf(w, `{"token":"x","expira":%q}`, s.clock.Now().Add(time.Hour).Format(time.RFC3339))
	})
	c := s.client(t)
	id := signer(t)
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	go func() { _, err := c.token(ctx, id); left <- err }()
	<-asked
	cancel()
	wantError(t, <-left, fiscal.ErrNotReceived)
	close(answer)
	if _, err := c.token(testContext(t), id); err != nil {
		t.Fatal(err)
	}
	if n := s.tokenRequests.Load(); n != 1 {
		t.Errorf("%d tokens", n)
	}
}

// The token becomes invalid in the middle of a thousand submissions. One new token is
// fetched, and every document arrives once.
func TestTokenExpiresDuringSubmissions(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	taken := map[string]int{}
	refused := 0
	var s *env
	s = newEnv(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if len(taken) >= 500 && s.tokenRequests.Load() == 1 || !s.authorised(r) {
			refused++
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		doc, _ := readUpload(r)
		taken[string(doc)]++
		_, _ = io.WriteString(w, `{"trackId":"t"}`)
	})
	c := s.client(t)
	id := signer(t)
	var wg sync.WaitGroup
	for n := range 1000 {
		wg.Go(func() {
			ship := shipmentOf(n)
			ship.XML = []byte(ship.ENCF)
			if _, err := c.Submit(testContext(t), id, ship); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := s.tokenRequests.Load(); n != 2 {
		t.Errorf("%d tokens, want 2", n)
	}
	if len(taken) != 1000 || refused > 8 {
		t.Errorf("%d documents were accepted, %d calls refused", len(taken), refused)
	}
	for doc, n := range taken {
		if n != 1 {
			t.Errorf("%s was accepted %d times", doc, n)
		}
	}
}

func TestTokenLifeAndSecrecy(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 10, 8, 12, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		issued, expires time.Time
		until           time.Duration
	}{
		"an hour":                         {now, now.Add(time.Hour), 55 * time.Minute},
		"an hour, by a clock that is off": {now.Add(-3 * time.Hour), now.Add(-2 * time.Hour), 55 * time.Minute},
		"without the time of issue":       {time.Time{}, now.Add(time.Hour), 55 * time.Minute},
		"expires before it is issued":     {now, now.Add(-time.Minute), minTokenLife},
		"shorter than the renewal margin": {now, now.Add(2 * time.Minute), minTokenLife},
		"in 100 years":                    {now, now.AddDate(100, 0, 0), maxTokenLife - tokenRenewBefore},
	} {
		if got := newToken("x", tt.issued, tt.expires, now).renewAt.Sub(now); got != tt.until {
			t.Errorf("%s: %v, want %v", name, got, tt.until)
		}
	}
	if s := fmt.Sprintf("%v %+v %#v %s", token{value: "hidden"}, token{value: "hidden"}, token{value: "hidden"}, token{value: "hidden"}); strings.Contains(s, "hidden") {
		t.Error(s)
	}
}

// While a new token cannot be fetched, the old one is used until it expires.
func TestOldTokenIsUsedWhileRenewalFails(t *testing.T) {
	t.Parallel()
	s := newEnv(t, answer(200, `{"trackId":"t"}`))
	c := s.client(t)
	id := signer(t)
	if _, err := c.Submit(testContext(t), id, shipment()); err != nil {
		t.Fatal(err)
	}
	s.answerTokens(answer(503, ""))
	s.clock.advance(57 * time.Minute)
	if _, err := c.Submit(testContext(t), id, shipment()); err != nil {
		t.Fatal(err)
	}
	s.clock.advance(4 * time.Minute)
	_, err := c.Submit(testContext(t), id, shipment())
	wantError(t, err, fiscal.ErrNotReceived)
}
