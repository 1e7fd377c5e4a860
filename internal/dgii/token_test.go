package dgii

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig/xmlsigtest"
)

// However many need a token, one is fetched, and it serves until five minutes
// before its end.
func TestOneTokenForAll(t *testing.T) {
	t.Parallel()
	s := serve(t, say(200, `{"trackId":"t"}`))
	c := s.client(t)
	id := signer(t)
	var wg sync.WaitGroup
	for n := range 1000 {
		wg.Go(func() {
			ctx := soon(t)
			if n%10 == 1 { // some leave at once, maybe the one that began it
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
	if n := s.tokens.Load(); n != 1 {
		t.Fatalf("%d tokens were fetched", n)
	}
	for _, step := range []struct {
		after time.Duration
		want  int64
	}{{54 * time.Minute, 1}, {2 * time.Minute, 2}, {time.Minute, 2}} {
		s.clock.advance(step.after)
		if _, err := c.Submit(soon(t), id, shipment()); err != nil {
			t.Fatal(err)
		}
		if n := s.tokens.Load(); n != step.want {
			t.Errorf("after %v: %d tokens, want %d", step.after, n, step.want)
		}
	}
	other := xmlsigtest.Must(t, xmlsigtest.Options{Subject: "Otra"}).Identity
	if _, err := c.Submit(soon(t), other, shipment()); err != nil {
		t.Fatal(err)
	}
	if n := s.tokens.Load(); n != 3 {
		t.Errorf("another signer: %d tokens", n)
	}
}

// A fetch goes on when the one that began it leaves.
func TestFetchOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	s := serve(t, say(200, `{"trackId":"t"}`))
	asked, answer := make(chan struct{}), make(chan struct{})
	s.refuseTokens(func(w http.ResponseWriter, _ *http.Request) {
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
	if _, err := c.token(soon(t), id); err != nil {
		t.Fatal(err)
	}
	if n := s.tokens.Load(); n != 1 {
		t.Errorf("%d tokens", n)
	}
}

// P-89: the token dies in the middle of a thousand submissions. One is fetched,
// and every document arrives once.
func TestP89TokenDiesMidway(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	taken := map[string]int{}
	refused := 0
	var s *scripted
	s = serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if len(taken) >= 500 && s.tokens.Load() == 1 || !s.authorised(r) {
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
			if _, err := c.Submit(soon(t), id, ship); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := s.tokens.Load(); n != 2 {
		t.Errorf("%d tokens, want 2", n)
	}
	if len(taken) != 1000 || refused > 8 {
		t.Errorf("%d documents were taken, %d calls refused", len(taken), refused)
	}
	for doc, n := range taken {
		if n != 1 {
			t.Errorf("%s was taken %d times", doc, n)
		}
	}
}

// A new token that is refused too means that it is not the token: sending waits.
func TestTokenRefusedForGood(t *testing.T) {
	t.Parallel()
	var posts atomic.Int64
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { posts.Add(1); say(401, "")(w, r) })
	c := s.client(t)
	id := signer(t)
	for range 20 {
		_, err := c.Submit(soon(t), id, shipment())
		wantError(t, err, fiscal.ErrNotReceived)
	}
	if posts.Load() != 2 || s.tokens.Load() != 2 {
		t.Errorf("%d posts, %d tokens", posts.Load(), s.tokens.Load())
	}
	if _, refused := c.Refused(id, "131256432"); !refused {
		t.Error("nobody can see it")
	}
	s.clock.advance(refusalWait)
	s.script(say(200, `{"trackId":"t"}`))
	if _, err := c.Submit(soon(t), id, shipment()); err != nil {
		t.Fatal(err)
	}
	if _, refused := c.Refused(id, "131256432"); refused {
		t.Error("the refusal stays")
	}
}

// Repeats are at most a tenth of all calls.
func TestBudget(t *testing.T) {
	t.Parallel()
	b := newBudget(10)
	spent := 0
	for range 1000 {
		b.earn()
		if b.spend() {
			spent++
		}
	}
	if spent > 110 {
		t.Errorf("%d repeats of 1000 calls", spent)
	}
}

func TestTokenLife(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 10, 8, 12, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		issued, expires time.Time
		until           time.Duration
	}{
		"an hour":                         {now, now.Add(time.Hour), 55 * time.Minute},
		"an hour, by a clock that is off": {now.Add(-3 * time.Hour), now.Add(-2 * time.Hour), 55 * time.Minute},
		"without the instant of issue":    {time.Time{}, now.Add(time.Hour), 55 * time.Minute},
		"ended before it began":           {now, now.Add(-time.Minute), tokenLeast},
		"shorter than the margin":         {now, now.Add(2 * time.Minute), tokenLeast},
		"for ever":                        {now, now.AddDate(100, 0, 0), tokenMost - tokenMargin},
	} {
		if got := newToken("x", tt.issued, tt.expires, now).until.Sub(now); got != tt.until {
			t.Errorf("%s: %v, want %v", name, got, tt.until)
		}
	}
	if s := fmt.Sprintf("%v %+v %#v %s", token{value: "hidden"}, token{value: "hidden"}, token{value: "hidden"}, token{value: "hidden"}); strings.Contains(s, "hidden") {
		t.Error(s)
	}
}

// The old token serves while a new one cannot be had, for as long as it lives.
func TestOldTokenServes(t *testing.T) {
	t.Parallel()
	s := serve(t, say(200, `{"trackId":"t"}`))
	c := s.client(t)
	id := signer(t)
	if _, err := c.Submit(soon(t), id, shipment()); err != nil {
		t.Fatal(err)
	}
	s.refuseTokens(say(503, ""))
	s.clock.advance(57 * time.Minute)
	if _, err := c.Submit(soon(t), id, shipment()); err != nil {
		t.Fatal(err)
	}
	s.clock.advance(4 * time.Minute)
	_, err := c.Submit(soon(t), id, shipment())
	wantError(t, err, fiscal.ErrNotReceived)
}

func TestAuthenticationFails(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer     http.HandlerFunc
		want       error
		remembered bool
	}{
		"delegation":              {say(400, `"El RNC 00112233445 del certificado no está delegado para realizar transaciones."`), fiscal.ErrNotDelegated, true},
		"delegation, plain":       {say(400, `El RNC 00112233445 del certificado no está Delegado`), fiscal.ErrNotDelegated, true},
		"another refusal":         {say(400, `"La semilla `+seedValue+` no es válida"`), fiscal.ErrNotReceived, true},
		"page":                    {say(400, page), fiscal.ErrNotReceived, false},
		"down":                    {say(503, ""), fiscal.ErrNotReceived, false},
		"no token":                {say(200, `{"token":"","expira":"2026-10-08T10:00:00Z"}`), fiscal.ErrNotReceived, false},
		"token with a line break": {say(200, `{"token":"a\nb","expira":"2026-10-08T10:00:00Z"}`), fiscal.ErrNotReceived, false},
		"token without an end":    {say(200, `{"token":"secret-token-x"}`), fiscal.ErrNotReceived, false},
		"told to wait":            {say(429, ""), fiscal.ErrNotReceived, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, say(200, `{"trackId":"t"}`))
			s.refuseTokens(tt.answer)
			c := s.client(t)
			id := signer(t)
			_, err := c.Submit(soon(t), id, shipment())
			wantError(t, err, tt.want)
			_, err = c.Result(soon(t), id, "t")
			wantError(t, err, fiscal.ErrUnavailable)
			refusal, refused := c.Refused(id, shipment().RNC)
			if refused != tt.remembered || refusal.Delegation != errors.Is(tt.want, fiscal.ErrNotDelegated) || strings.Contains(refusal.Reason, seedValue) {
				t.Errorf("%+v, %v", refusal, refused)
			}
			if tt.remembered && s.tokens.Load() != 1 {
				t.Errorf("asked %d times", s.tokens.Load())
			}
		})
	}
}

// What is signed is a seed and nothing that somebody would rather have signed.
func TestOnlySeedsAreSigned(t *testing.T) {
	t.Parallel()
	id := signer(t)
	for name, body := range map[string]string{
		"another document": `<ECF><Encabezado>x</Encabezado></ECF>`,
		"more than a seed": `<SemillaModel><valor>x</valor><fecha>y</fecha><Total>1</Total></SemillaModel>`,
		"nested":           `<SemillaModel><valor>x</valor><fecha><a>b</a></fecha></SemillaModel>`,
		"no value":         `<SemillaModel><fecha>y</fecha></SemillaModel>`,
		"page":             `<html><body>x</body></html>`,
		"entity":           `<!DOCTYPE a [<!ENTITY b "c">]><SemillaModel><valor>&b;</valor></SemillaModel>`,
		"signed":           `<SemillaModel><valor>x</valor><Signature></Signature></SemillaModel>`,
	} {
		if _, _, err := signSeed(id, &reply{status: 200, body: []byte(body)}); err == nil {
			t.Errorf("%s was signed", name)
		}
	}
}

// A refusal for want of delegation pauses the taxpayer, not the others whom the
// same person serves, and is tried again by one document at a time.
func TestDelegation(t *testing.T) {
	t.Parallel()
	var posts atomic.Int64
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		posts.Add(1)
		if doc, _ := readUpload(r); string(doc) == "other" {
			say(200, `{"trackId":"t"}`)(w, r)
			return
		}
		say(400, `{"mensaje":"El RNC no está delegado"}`)(w, r)
	})
	c := s.client(t, func(o *Options) { o.Pace = 2 })
	id := signer(t)
	for range 3 {
		_, err := c.Submit(soon(t), id, shipment())
		wantError(t, err, fiscal.ErrNotDelegated)
		if _, ok := errors.AsType[*RetryAfter](err); !ok {
			t.Errorf("nothing says when to try again: %v", err)
		}
	}
	if posts.Load() != 1 {
		t.Errorf("%d posts", posts.Load())
	}
	other := shipment()
	other.RNC, other.XML = "101010101", []byte("other")
	if _, err := c.Submit(soon(t), id, other); err != nil {
		t.Error(err)
	}
	if _, refused := c.Refused(id, other.RNC); refused {
		t.Error("the other taxpayer is refused")
	}
	s.clock.advance(refusalWait / 2)
	for range 3 {
		_, err := c.Submit(soon(t), id, shipment())
		wantError(t, err, fiscal.ErrNotDelegated)
	}
	if posts.Load() != 3 {
		t.Errorf("%d posts, want one more per wait", posts.Load())
	}
	s.clock.advance(refusalWait / 2)
	s.script(say(200, `{"trackId":"t"}`))
	for range 2 {
		if _, err := c.Submit(soon(t), id, shipment()); err != nil {
			t.Fatal(err)
		}
	}
}
