package dgii

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig/xmlsigtest"
)

const seedValue = "c2VlZC10aGF0LW5vYm9keS1zZWVz"

// A fakeClock is a clock that the test moves.
type fakeClock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *fakeClock { return &fakeClock{at: time.Now()} }

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *fakeClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// An env is a server in the place of the authority. It gives tokens, and answers all
// other requests with the handler of the test.
type env struct {
	*httptest.Server
	clock *fakeClock
	// handler answers all requests except those for seeds and tokens.
	handler       atomic.Pointer[http.HandlerFunc]
	tokenHandler  atomic.Pointer[http.HandlerFunc] // if set, answers the requests for tokens
	seedRequests  atomic.Int64
	tokenRequests atomic.Int64
	currentToken  atomic.Pointer[string]
}

func newEnv(t testing.TB, answer http.HandlerFunc) *env {
	t.Helper()
	s := &env{clock: newClock()}
	s.handler.Store(&answer)
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *env) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := strings.ToLower(r.URL.Path); {
	case strings.HasSuffix(path, "/autenticacion/semilla"):
		s.seedRequests.Add(1)
		_, _ = fmt.Fprintf(w, "\ufeff<?xml version=\"1.0\" encoding=\"utf-8\"?>\r\n<SemillaModel xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xmlns:xsd=\"http://www.w3.org/2001/XMLSchema\">\r\n  <valor>%s</valor>\r\n  <fecha>2026-10-08T10:50:14.9682218-04:00</fecha>\r\n</SemillaModel>", seedValue)
	case strings.HasSuffix(path, "/autenticacion/validarsemilla"):
		n := s.tokenRequests.Add(1)
		if refuse := s.tokenHandler.Load(); refuse != nil {
			(*refuse)(w, r)
			return
		}
		body, _ := readUpload(r)
		if v, err := xmlsig.Verify(body, xmlsig.SmallLimits()); err != nil || v.Root().Child("valor").Text() != seedValue {
			http.Error(w, `"bad seed"`, 400)
			return
		}
		token := fmt.Sprintf("secret-token-%d", n)
		s.currentToken.Store(&token)
		now := s.clock.Now().UTC()
		_, _ = fmt.Fprintf(w, `{"token":%q,"expira":%q,"expedido":%q}`, token, now.Add(time.Hour).Format(time.RFC3339), now.Format(time.RFC3339))
	default:
		(*s.handler.Load())(w, r)
	}
}

func (s *env) respond(answer http.HandlerFunc) { s.handler.Store(&answer) }

func (s *env) answerTokens(answer http.HandlerFunc) {
	if answer == nil {
		s.tokenHandler.Store(nil)
		return
	}
	s.tokenHandler.Store(&answer)
}

// authorised reports whether a request has the current token.
func (s *env) authorised(r *http.Request) bool {
	token := s.currentToken.Load()
	return token != nil && r.Header.Get("Authorization") == "Bearer "+*token
}

// readUpload returns the document that a request uploads.
func readUpload(r *http.Request) ([]byte, error) {
	parts, err := r.MultipartReader()
	if err != nil {
		return nil, err
	}
	part, err := parts.NextPart()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(part)
}

// answer returns a handler that reads the body and answers every request alike.
func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func (s *env) options(t testing.TB) Options {
	t.Helper()
	hosts, err := SimulatorHosts(s.URL, "testecf")
	if err != nil {
		t.Fatal(err)
	}
	return Options{
		Hosts: hosts, Now: s.clock.Now, AllowOrigin: s.URL,
		Timeouts: Timeouts{Connect: 2 * time.Second, TLS: 2 * time.Second, FirstByte: 5 * time.Second, Total: 5 * time.Second, Delivery: 5 * time.Second},
	}
}

func (s *env) client(t testing.TB, change ...func(*Options)) *Client {
	t.Helper()
	o := s.options(t)
	for _, f := range change {
		f(&o)
	}
	return newClient(t, o)
}

func newClient(t testing.TB, o Options) *Client {
	t.Helper()
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func signer(t testing.TB) *xmlsig.Identity {
	t.Helper()
	return xmlsigtest.Must(t, xmlsigtest.Options{}).Identity
}

func shipment() fiscal.Shipment {
	return fiscal.Shipment{RNC: "131256432", ENCF: "E310000000058", XML: []byte("<ECF>stored bytes</ECF>")}
}

func shipmentOf(n int) fiscal.Shipment {
	s := shipment()
	s.ENCF = fmt.Sprintf("E31%010d", n)
	return s
}

// testContext returns a context with a deadline, so that a test cannot hang.
func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func discard() *log.Logger { return log.New(io.Discard, "", 0) }

func portOf(address string) string { return address[strings.LastIndex(address, ":")+1:] }

// sentinels are the errors that callers distinguish. An error wraps exactly one.
var sentinels = []error{
	fiscal.ErrNotReceived, fiscal.ErrInconclusive, fiscal.ErrAbsent, fiscal.ErrNotDelegated, fiscal.ErrUnavailable,
}

func wantError(t *testing.T, err, want error) {
	t.Helper()
	for _, s := range sentinels {
		if got := errors.Is(err, s); got != errors.Is(want, s) {
			t.Fatalf("error %v: errors.Is(%q) = %v", err, s, got)
		}
	}
	if err != nil && (strings.Contains(err.Error(), "secret-token") || strings.Contains(err.Error(), seedValue)) {
		t.Fatalf("the error contains a secret: %v", err)
	}
}

const htmlPage = "<!DOCTYPE html><html><body>El servicio no está delegado</body></html>"

// Submit sends an e-CF with a reservation of its own.
func (c *Client) Submit(ctx context.Context, id *xmlsig.Identity, s fiscal.Shipment) (fiscal.AuthorityAnswer, error) {
	return c.submit(ctx, id, s, false)
}

// SubmitSummary sends the summary (RFCE) of a small consumer invoice, as Submit does.
func (c *Client) SubmitSummary(ctx context.Context, id *xmlsig.Identity, s fiscal.Shipment) (fiscal.AuthorityAnswer, error) {
	return c.submit(ctx, id, s, true)
}

func (c *Client) submit(ctx context.Context, id *xmlsig.Identity, s fiscal.Shipment, summary bool) (fiscal.AuthorityAnswer, error) {
	if err := checkShipment(c.reception, s); err != nil {
		return fiscal.AuthorityAnswer{}, err
	}
	send, release, err := c.Reserve(ctx, id, s.RNC, summary)
	if err != nil {
		return fiscal.AuthorityAnswer{}, err
	}
	defer release()
	return send(ctx, s)
}
