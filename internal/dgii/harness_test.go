package dgii

import (
	"context"
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

// A fakeClock is set by tests.
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

// A scripted is a server that says what a test has it say, and gives tokens.
type scripted struct {
	*httptest.Server
	clock *fakeClock
	// answer serves everything but seeds and tokens.
	answer  atomic.Pointer[http.HandlerFunc]
	refuse  atomic.Pointer[http.HandlerFunc] // serves tokens instead
	seeds   atomic.Int64
	tokens  atomic.Int64
	current atomic.Pointer[string]
}

func serve(t testing.TB, answer http.HandlerFunc) *scripted {
	t.Helper()
	s := &scripted{clock: newClock()}
	s.answer.Store(&answer)
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := strings.ToLower(r.URL.Path); {
	case strings.HasSuffix(path, "/autenticacion/semilla"):
		s.seeds.Add(1)
		_, _ = fmt.Fprintf(w, "\ufeff<?xml version=\"1.0\" encoding=\"utf-8\"?>\r\n<SemillaModel xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xmlns:xsd=\"http://www.w3.org/2001/XMLSchema\">\r\n  <valor>%s</valor>\r\n  <fecha>2026-10-08T10:50:14.9682218-04:00</fecha>\r\n</SemillaModel>", seedValue)
	case strings.HasSuffix(path, "/autenticacion/validarsemilla"):
		n := s.tokens.Add(1)
		if refuse := s.refuse.Load(); refuse != nil {
			(*refuse)(w, r)
			return
		}
		body, _ := readUpload(r)
		if v, err := xmlsig.Verify(body, xmlsig.SmallLimits()); err != nil || v.Root().Child("valor").Text() != seedValue {
			http.Error(w, `"bad seed"`, 400)
			return
		}
		token := fmt.Sprintf("secret-token-%d", n)
		s.current.Store(&token)
		now := s.clock.Now().UTC()
		_, _ = fmt.Fprintf(w, `{"token":%q,"expira":%q,"expedido":%q}`, token, now.Add(time.Hour).Format(time.RFC3339), now.Format(time.RFC3339))
	default:
		(*s.answer.Load())(w, r)
	}
}

func (s *scripted) script(answer http.HandlerFunc) { s.answer.Store(&answer) }

func (s *scripted) refuseTokens(answer http.HandlerFunc) {
	if answer == nil {
		s.refuse.Store(nil)
		return
	}
	s.refuse.Store(&answer)
}

// authorised tells whether a request has the token that is good.
func (s *scripted) authorised(r *http.Request) bool {
	token := s.current.Load()
	return token != nil && r.Header.Get("Authorization") == "Bearer "+*token
}

// readUpload returns the document of a request.
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

// say answers everything alike, after the body has been read.
func say(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func (s *scripted) options(t testing.TB) Options {
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

func (s *scripted) client(t testing.TB, change ...func(*Options)) *Client {
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

// soon is a context that ends before the test does.
func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func discard() *log.Logger { return log.New(io.Discard, "", 0) }

func portOf(address string) string { return address[strings.LastIndex(address, ":")+1:] }
