package console

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/capacity"
	"github.com/fiscalhub/fiscalhub/internal/export"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/netguard"
	"github.com/fiscalhub/fiscalhub/internal/notify"
	"github.com/fiscalhub/fiscalhub/internal/people"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

const goodPassword = "una frase larga y propia"

// plainHasher stands for Argon2id in tests that are about something else.
type plainHasher struct{ computed atomic.Int64 }

func (h *plainHasher) Hash(_ context.Context, password string) (string, error) {
	h.computed.Add(1)
	return "plain " + password, nil
}

func (h *plainHasher) Matches(_ context.Context, hash, password string) (bool, error) {
	h.computed.Add(1)
	return hash == "plain "+password, nil
}

// poster stands for the network of webhooks. It answers with a result that the test sets.
type poster struct {
	result atomic.Pointer[webhook.Result]
}

func (p *poster) Post(_ context.Context, _ webhook.Message) webhook.Result {
	if r := p.result.Load(); r != nil {
		return *r
	}
	return webhook.Result{Status: 200, Answer: []byte("ok"), Took: 41 * time.Millisecond}
}

// env is a console with a taxpayer, and a clock that the test sets.
type env struct {
	*Console
	t        *testing.T
	address  string
	clock    *storetest.Clock
	keys     *seal.Keys
	hasher   *plainHasher
	poster   *poster
	taxpayer string
}

func newEnv(t *testing.T, change ...func(*Options)) *env {
	t.Helper()
	e := newNode(t, storetest.Address(t, "sqlite"), storetest.NewClock(), seal.NewKeys(filepath.Join(t.TempDir(), "master.key")), change...)
	e.taxpayer = e.addTaxpayer("199000013", "Palma Clara, SRL")
	return e
}

// newNode returns a console on a database, which may have other nodes.
func newNode(t *testing.T, address string, clock *storetest.Clock, keys *seal.Keys, change ...func(*Options)) *env {
	t.Helper()
	e := &env{t: t, address: address, clock: clock, keys: keys, hasher: &plainHasher{}, poster: &poster{}}
	s := storetest.Open(t, address, clock.Now)
	ring, err := access.LoadKeyring(t.Context(), s, keys)
	e.must(err)
	all, err := people.New(people.Options{Store: s, Secrets: access.NewSecrets(s, keys), Hasher: e.hasher, Now: clock.Now})
	e.must(err)
	run, err := pipeline.New(pipeline.Options{Store: s, Plan: pipeline.Sandbox{}, Env: fiscal.Sandbox, Now: clock.Now, Log: slog.New(slog.DiscardHandler)})
	e.must(err)
	exports, err := export.NewJobs(export.JobsOptions{
		Store: s, Pipeline: run, Environment: fiscal.Sandbox, Dir: filepath.Join(t.TempDir(), "exports"), Now: clock.Now, Log: slog.New(slog.DiscardHandler),
	})
	e.must(err)
	o := Options{
		Pipeline: run, Exports: exports,
		Store: s, People: all, Keyring: ring, Environment: fiscal.Sandbox, BaseURL: "http://console.example", Now: clock.Now,
		Capacity: capacity.New(capacity.DefaultLimits(1<<30, 2)),
		Log:      slog.New(slog.DiscardHandler), Clients: capacity.NewClientFinder(nil, clock.Now, slog.New(slog.DiscardHandler)),
	}
	o.Certificates = access.NewCertificates(s, keys, clock.Now)
	o.Endpoints, err = notify.NewEndpoints(notify.EndpointsOptions{Store: s, Secrets: access.NewSecrets(s, keys), Poster: e.poster, Guard: netguard.Guard{Private: true}, Now: clock.Now})
	e.must(err)
	for _, fn := range change {
		fn(&o)
	}
	if o.Pipeline == nil {
		o.Pipeline, err = pipeline.New(pipeline.Options{Store: s, Plan: pipeline.Sandbox{}, Env: o.Environment, Now: clock.Now, Log: o.Log})
		e.must(err)
	}
	e.Console, err = New(o)
	e.must(err)
	return e
}

func (e *env) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

func (e *env) addTaxpayer(rnc, name string) string {
	e.t.Helper()
	now := e.clock.Now()
	made := store.Taxpayer{ID: store.NewID(), RNC: rnc, LegalName: name, Phones: []string{}, CreatedAt: now, UpdatedAt: now}
	e.must(e.o.Store.Update(e.t.Context(), func(tx *store.Tx) error { return tx.CreateTaxpayer(e.t.Context(), made) }))
	return made.ID
}

// browser sends requests like a browser: it keeps cookies and follows no redirect.
type browser struct {
	e       *env
	handler http.Handler
	cookies map[string]string
	header  http.Header // of every request
	tls     bool
}

func (e *env) browser() *browser {
	return &browser{e: e, handler: e.Console, cookies: map[string]string{}, header: http.Header{"Sec-Fetch-Site": {"same-origin"}, "Accept": {"text/html"}}}
}

// answer is what a browser received.
type answer struct {
	*http.Response
	body string
}

func (b *browser) send(method, address string, form url.Values) answer {
	b.e.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r := httptest.NewRequestWithContext(b.e.t.Context(), method, address, body)
	r.Header = b.header.Clone()
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if b.tls {
		r.TLS = &tls.ConnectionState{}
	}
	for name, value := range b.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	got := w.Result()
	for _, cookie := range got.Cookies() {
		if cookie.MaxAge < 0 {
			delete(b.cookies, cookie.Name)
			continue
		}
		b.cookies[cookie.Name] = cookie.Value
	}
	return answer{got, w.Body.String()}
}

func (b *browser) get(address string) answer {
	b.e.t.Helper()
	return b.send(http.MethodGet, address, nil)
}

func (b *browser) post(address string, pairs ...string) answer {
	b.e.t.Helper()
	form := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	return b.send(http.MethodPost, address, form)
}

// invite creates a person who has not set a password.
func (e *env) invite(role store.Role, taxpayers ...string) (store.User, people.Token) {
	e.t.Helper()
	u, token, err := e.o.People.Create(e.t.Context(), people.Invitation{
		Name: "Persona " + string(role), Email: store.NewID() + "@example.com", Role: role, TaxpayerIDs: taxpayers,
	})
	e.must(err)
	return u, token
}

// signedIn returns the browser of a new person with a role.
func (e *env) signedIn(role store.Role, taxpayers ...string) (*browser, store.User) {
	e.t.Helper()
	u, token := e.invite(role, taxpayers...)
	b := e.browser()
	got := b.post("/console/welcome/"+token.Reveal(), "password", goodPassword, "password_again", goodPassword)
	if got.StatusCode != http.StatusSeeOther || len(b.cookies) != 1 {
		e.t.Fatalf("welcome answered %d with cookies %v: %s", got.StatusCode, b.cookies, got.body)
	}
	return b, u
}

// addLive adds a live fragment to the table of pages.
func (e *env) addLive(address string, handle func(*request) error) {
	p := live(address, everyone(), handle)
	p.parts = strings.Split(address[1:], "/")
	e.pages = append(e.pages, p)
}

// languageOf returns the language of a tag.
func (e *env) languageOf(tag string) lang.Language {
	language, ok := lang.Parse(tag)
	if !ok {
		e.t.Fatalf("%s is no language", tag)
	}
	return language
}
