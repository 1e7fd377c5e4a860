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
	// The throw-away server runs as long as the process does.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("os/exec.(*Cmd).writerDescriptor.func1"),
		goleak.IgnoreAnyFunction("os/exec.(*Cmd).Start.func2"))
}

// office is a store with a taxpayer, a clock that tests set, and all that sends.
type office struct {
	t       *testing.T
	address string
	micros  *atomic.Int64
	keys    *seal.Keys
	store   *store.Store
	scope   store.Scope
	poster  *webhook.Sender
	secrets access.Secrets
	Endpoints
}

func newOffice(t *testing.T, address string) *office {
	t.Helper()
	o := &office{t: t, address: address, micros: new(atomic.Int64), keys: seal.NewKeys(filepath.Join(t.TempDir(), "master.key"))}
	o.micros.Store(time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC).UnixMicro())
	o.store = storetest.Open(t, address, o.now)
	_, err := access.LoadKeyring(t.Context(), o.store, o.keys)
	o.must(err)
	o.poster, err = webhook.New(webhook.Options{Now: o.now, Guard: netguard.Guard{Private: true}})
	o.must(err)
	t.Cleanup(o.poster.Close)
	o.secrets = access.Secrets{Store: o.store, Keys: o.keys}
	o.Endpoints = Endpoints{Store: o.store, Secrets: o.secrets, Poster: o.poster, Guard: netguard.Guard{Private: true}, Now: o.now}
	o.scope = o.taxpayer()
	return o
}

func eachOffice(t *testing.T, test func(t *testing.T, o *office)) {
	t.Helper()
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) { test(t, newOffice(t, address)) })
}

func (o *office) must(err error) {
	o.t.Helper()
	if err != nil {
		o.t.Fatal(err)
	}
}

func (o *office) now() time.Time          { return time.UnixMicro(o.micros.Load()).UTC() }
func (o *office) advance(d time.Duration) { o.micros.Add(d.Microseconds()) }
func (o *office) set(at time.Time)        { o.micros.Store(at.UnixMicro()) }

func (o *office) taxpayer() store.Scope {
	o.t.Helper()
	made := store.Taxpayer{ID: store.NewID(), RNC: "199000013", LegalName: "Prueba, SRL", Phones: []string{}, CreatedAt: o.now(), UpdatedAt: o.now()}
	o.must(o.store.Update(o.t.Context(), func(tx *store.Tx) error { return tx.CreateTaxpayer(o.t.Context(), made) }))
	return store.Scope{Environment: fiscal.Production, TaxpayerID: made.ID}
}

// endpoint makes an endpoint of the office's taxpayer.
func (o *office) endpoint(url string, kinds ...string) (store.Endpoint, webhook.Secret) {
	o.t.Helper()
	made, err := o.Create(o.t.Context(), NewEndpoint{Scope: o.scope, URL: url, Kinds: kinds}, Intent{})
	o.must(err)
	return made.Endpoint, made.Secret
}

// tell writes an event.
func (o *office) tell(scope store.Scope, kind string) store.Event {
	o.t.Helper()
	n := store.Event{Scope: scope, ID: event.NewID(), Kind: kind, At: o.now(), Body: []byte(`{"type":"` + kind + `"}`)}
	o.must(o.store.Update(o.t.Context(), func(tx *store.Tx) error { return tx.AddEvent(o.t.Context(), n) }))
	return n
}

// node is a sender as a process that starts has it.
func (o *office) node() *Sender {
	o.t.Helper()
	s, err := NewSender(Options{
		Store: o.store, Secrets: o.secrets, Poster: o.poster, Env: fiscal.Production, Now: o.now, Log: slog.New(slog.DiscardHandler),
	})
	o.must(err)
	return s
}

// round does what is due now, one after the other, and tells how much it was.
func (o *office) round(s *Sender) int {
	o.t.Helper()
	claimed, err := s.claim(o.t.Context())
	o.must(err)
	for _, d := range claimed {
		s.deliver(o.t.Context(), d)
	}
	return len(claimed)
}

// next is when the next delivery comes due.
func (o *office) next() time.Time {
	o.t.Helper()
	at, err := o.store.NextDelivery(o.t.Context(), fiscal.Production, o.now())
	o.must(err)
	return at
}

func (o *office) read(e store.Endpoint) store.Endpoint {
	o.t.Helper()
	got, err := o.store.Endpoint(o.t.Context(), e.Scope, e.ID)
	o.must(err)
	return got
}

func (o *office) log(e store.Endpoint) []store.DeliveryAttempt {
	o.t.Helper()
	got, err := o.Log(o.t.Context(), e.Scope, e.ID, "", 100)
	o.must(err)
	return got
}

// letter is a request that a receiver got.
type letter struct {
	header http.Header
	body   []byte
}

func (l letter) id() string { return l.header.Get(webhook.HeaderID) }

// receiver is somebody's server. It keeps what it gets and answers as it is told.
type receiver struct {
	*httptest.Server
	mu  sync.Mutex
	got []letter
}

func newReceiver(t *testing.T, answer func(w http.ResponseWriter, n int)) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Errorf("read: %v", err)
		}
		r.mu.Lock()
		r.got = append(r.got, letter{req.Header.Clone(), body})
		n := len(r.got)
		r.mu.Unlock()
		answer(w, n)
	}))
	r.Config.ErrorLog = log.New(io.Discard, "", 0)
	r.Start()
	t.Cleanup(r.Close)
	return r
}

// status answers always the same.
func status(code int) func(http.ResponseWriter, int) {
	return func(w http.ResponseWriter, _ int) { w.WriteHeader(code) }
}

func (r *receiver) letters() []letter {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]letter(nil), r.got...)
}

// run runs a sender until the test ends or the returned function is called.
func (o *office) run(s *Sender) (stop func()) {
	ctx, cancel := context.WithCancel(o.t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	o.t.Cleanup(stop)
	return stop
}

// soon waits for a condition of another goroutine.
func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// Post makes the attempt.
func (f posterFunc) Post(_ context.Context, m webhook.Message) webhook.Result { return f(m) }
