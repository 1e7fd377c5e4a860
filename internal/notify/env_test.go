package notify

import (
	"context"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/netguard"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

func TestMain(m *testing.M) {
	// The PostgreSQL server of the tests runs until the process ends.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("os/exec.(*Cmd).writerDescriptor.func1"),
		goleak.IgnoreAnyFunction("os/exec.(*Cmd).Start.func2"))
}

// env is a store with a taxpayer, its endpoints, and a poster. Tests set its clock.
type env struct {
	t       *testing.T
	address string
	micros  *atomic.Int64
	keys    *seal.Keys
	store   *store.Store
	scope   store.Scope
	poster  *webhook.Sender
	secrets *access.Secrets
	*Endpoints
}

func newEnv(t *testing.T, address string) *env {
	t.Helper()
	e := &env{t: t, address: address, micros: new(atomic.Int64), keys: seal.NewKeys(filepath.Join(t.TempDir(), "master.key"))}
	e.micros.Store(time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC).UnixMicro())
	e.store = storetest.Open(t, address, e.now)
	_, err := access.LoadKeyring(t.Context(), e.store, e.keys)
	e.must(err)
	e.poster, err = webhook.New(webhook.Options{Now: e.now, Guard: netguard.Guard{Private: true}})
	e.must(err)
	t.Cleanup(e.poster.Close)
	e.secrets = access.NewSecrets(e.store, e.keys)
	e.Endpoints, err = NewEndpoints(EndpointsOptions{
		Store: e.store, Secrets: e.secrets, Poster: e.poster, Guard: netguard.Guard{Private: true}, Now: e.now,
	})
	e.must(err)
	e.scope = e.taxpayer()
	return e
}

// forEachEngine runs a test with an environment on every engine, in parallel with other
// tests.
func forEachEngine(t *testing.T, test func(t *testing.T, e *env)) {
	t.Helper()
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) { test(t, newEnv(t, address)) })
}

func (e *env) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

func (e *env) now() time.Time          { return time.UnixMicro(e.micros.Load()).UTC() }
func (e *env) advance(d time.Duration) { e.micros.Add(d.Microseconds()) }
func (e *env) set(at time.Time)        { e.micros.Store(at.UnixMicro()) }

func (e *env) taxpayer() store.Scope {
	e.t.Helper()
	made := store.Taxpayer{ID: store.NewID(), RNC: "199000013", LegalName: "Prueba, SRL", Phones: []string{}, CreatedAt: e.now(), UpdatedAt: e.now()}
	e.must(e.store.Update(e.t.Context(), func(tx *store.Tx) error { return tx.CreateTaxpayer(e.t.Context(), made) }))
	return store.Scope{Environment: fiscal.Production, TaxpayerID: made.ID}
}

// endpoint creates an endpoint of the taxpayer.
func (e *env) endpoint(url string, kinds ...string) (store.Endpoint, webhook.Secret) {
	e.t.Helper()
	made, err := e.Create(e.t.Context(), EndpointSpec{Scope: e.scope, URL: url, Kinds: kinds}, Intent{})
	e.must(err)
	return made.Endpoint, made.Secret
}

// addEvent stores an event.
func (e *env) addEvent(scope store.Scope, kind string) store.Event {
	e.t.Helper()
	n := store.Event{Scope: scope, ID: event.NewID(), Kind: kind, At: e.now(), Body: []byte(`{"type":"` + kind + `"}`)}
	e.must(e.store.Update(e.t.Context(), func(tx *store.Tx) error { return tx.AddEvent(e.t.Context(), n) }))
	return n
}

// newSender returns a sender, as a starting process has it.
func (e *env) newSender() *Sender {
	e.t.Helper()
	s, err := NewSender(SenderOptions{
		Store: e.store, Secrets: e.secrets, Poster: e.poster, Env: fiscal.Production, Now: e.now, Log: slog.New(slog.DiscardHandler),
	})
	e.must(err)
	return s
}

// sendDue works off the replays and makes the attempts that are due now, one after the
// other. It returns the number of attempts.
func (e *env) sendDue(s *Sender) int {
	e.t.Helper()
	for s.replayRound(e.t.Context()) {
		continue
	}
	claimed, err := s.claim(e.t.Context(), 0)
	e.must(err)
	for _, d := range claimed {
		s.deliver(e.t.Context(), d)
	}
	return len(claimed)
}

// next returns when the next delivery is due.
func (e *env) next() time.Time {
	e.t.Helper()
	at, err := e.store.NextDelivery(e.t.Context(), fiscal.Production, e.now())
	e.must(err)
	return at
}

func (e *env) read(hook store.Endpoint) store.Endpoint {
	e.t.Helper()
	got, err := e.store.Endpoint(e.t.Context(), hook.Scope, hook.ID)
	e.must(err)
	return got
}

func (e *env) log(hook store.Endpoint) []store.DeliveryAttempt {
	e.t.Helper()
	got, err := e.Log(e.t.Context(), hook.Scope, hook.ID, "", 100)
	e.must(err)
	return got
}

// request is a request that a receiver has got.
type request struct {
	header http.Header
	body   []byte
}

func (r request) id() string { return r.header.Get(webhook.HeaderID) }

// receiver is the server of an integrator. It records its requests.
type receiver struct {
	*httptest.Server
	mu  sync.Mutex
	got []request
}

// newReceiver starts a receiver. answer writes the answer to the nth request.
func newReceiver(t *testing.T, answer func(w http.ResponseWriter, n int)) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Errorf("read: %v", err)
		}
		r.mu.Lock()
		r.got = append(r.got, request{req.Header.Clone(), body})
		n := len(r.got)
		r.mu.Unlock()
		answer(w, n)
	}))
	r.Config.ErrorLog = log.New(io.Discard, "", 0)
	r.Start()
	t.Cleanup(r.Close)
	return r
}

// status returns a function that always answers with this status.
func status(code int) func(http.ResponseWriter, int) {
	return func(w http.ResponseWriter, _ int) { w.WriteHeader(code) }
}

func (r *receiver) requests() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]request(nil), r.got...)
}

// run runs a sender until the test ends or the returned function is called.
func (e *env) run(s *Sender) (stop func()) {
	ctx, cancel := context.WithCancel(e.t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	e.t.Cleanup(stop)
	return stop
}

// eventually waits until other goroutines have made a condition true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// Post makes the attempt.
func (f posterFunc) Post(_ context.Context, m webhook.Message) webhook.Result { return f(m) }
