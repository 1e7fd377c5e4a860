package api_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fiscalhub/fiscalhub/internal/api"
	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// withService starts another API on the store and the pipeline of the environment,
// with changed options.
func (e *env) withService(t *testing.T, change func(*api.Options, *http.Server)) *env {
	t.Helper()
	other := *e
	other.registry = prometheus.NewRegistry()
	opt := e.apiOptions(other.registry)
	server := api.NewServer(http.NotFoundHandler(), e.log)
	change(&opt, server)
	var err error
	other.capacity = opt.Capacity
	other.api, err = api.New(opt)
	e.must(err)
	server.Handler = api.NewServer(other.api.Handler(other.registry), e.log).Handler
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	e.must(err)
	other.base = "http://" + listener.Addr().String()
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(opt.Capacity.Listen(listener, opt.Clients)) })
	t.Cleanup(func() {
		_ = server.Close()
		running.Wait()
	})
	return &other
}

// breakableStore opens another store on the database. After cut, PostgreSQL can
// no longer be reached and the SQLite file is closed.
func (e *env) breakableStore(t *testing.T) (s *store.Store, cut func()) {
	t.Helper()
	address, cut := e.address, func() { _ = s.Close() } // no other test uses this store
	if e.store.Engine() == "postgres" {
		address, cut = proxyPostgres(t, e.address, copyBothWays)
	}
	s, err := store.Open(t.Context(), address, store.Options{
		Now: e.opt.now, DatabaseNow: func(context.Context) (time.Time, error) { return e.opt.now(), nil }, Log: slog.New(slog.DiscardHandler)})
	e.must(err)
	t.Cleanup(func() { _ = s.Close() }) // cut may have closed it already
	return s, cut
}

// proxyPostgres starts a proxy in front of a PostgreSQL server and returns its
// address. The function carry copies the data of one connection until it ends.
// The function stop closes the proxy and its connections.
func proxyPostgres(t *testing.T, address string, carry func(client, server net.Conn)) (proxied string, stop func()) {
	t.Helper()
	u, err := url.Parse(address)
	must(t, err)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	socket := u.Query().Get("host") + "/.s.PGSQL.5432"
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
			if err != nil {
				_ = client.Close()
				continue
			}
			context.AfterFunc(ctx, func() { _, _ = client.Close(), server.Close() })
			running.Go(func() { carry(client, server) })
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		_ = listener.Close()
		running.Wait()
	})
	t.Cleanup(stop)
	return "postgres://" + u.Query().Get("user") + "@" + listener.Addr().String() + u.Path + "?sslmode=disable", stop
}

func copyBothWays(client, server net.Conn) {
	var directions sync.WaitGroup
	directions.Go(func() { _, _ = io.Copy(client, server) })
	directions.Go(func() { _, _ = io.Copy(server, client) })
	directions.Wait()
}

// database opens the database of the environment as a superuser, without the store.
func (e *env) database(t *testing.T) *sql.DB {
	t.Helper()
	driver, source := "pgx", storetest.As(e.address, "postgres")
	if path, ok := strings.CutPrefix(e.address, "sqlite:"); ok {
		driver, source = "sqlite", path
	}
	db, err := sql.Open(driver, source)
	e.must(err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// stubPlan is the sandbox plan with checks of a test.
type stubPlan struct {
	pipeline.Sandbox
	check func(context.Context, *fiscal.Invoice) error
	ready func(fiscal.Type) fiscal.Problems
}

// Check calls the function of the test.
func (s stubPlan) Check(ctx context.Context, _ store.Scope, inv *fiscal.Invoice) error {
	if s.check == nil {
		return nil
	}
	return s.check(ctx, inv)
}

// Ready calls the function of the test.
func (s stubPlan) Ready(_ context.Context, _ store.Scope, t fiscal.Type) (fiscal.Problems, error) {
	if s.ready == nil {
		return nil, nil
	}
	return s.ready(t), nil
}

// blockingPlan is a plan that blocks creations whose external id starts with "slow"
// until release is closed.
type blockingPlan struct {
	entered chan struct{} // receives one value for each blocked creation
	release chan struct{}
}

func newBlockingPlan() *blockingPlan {
	return &blockingPlan{entered: make(chan struct{}, 10_000), release: make(chan struct{})}
}

func (h *blockingPlan) plan() pipeline.Plan {
	return stubPlan{check: func(ctx context.Context, inv *fiscal.Invoice) error {
		if !strings.HasPrefix(inv.ExternalID, "slow") {
			return nil
		}
		h.entered <- struct{}{}
		select {
		case <-h.release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
}

// await waits until n creations are blocked.
func (h *blockingPlan) await(t *testing.T, n int) {
	t.Helper()
	deadline := time.After(time.Minute)
	for i := range n {
		select {
		case <-h.entered:
		case <-deadline:
			t.Fatalf("%d of %d requests reached the plan", i, n)
		}
	}
}

// rawRequest returns the header of a request as text, for requests that no HTTP
// library sends.
func (e *env) rawRequest(method, target, key string, more ...string) string {
	lines := append([]string{method + " " + target + " HTTP/1.1", "Host: invoices.example"}, more...)
	if key != "" {
		lines = append(lines, "Authorization: Bearer "+key)
	}
	return strings.Join(lines, "\r\n") + "\r\n\r\n"
}

// rawConn is a connection to which a test writes bytes.
type rawConn struct {
	net.Conn
	r *bufio.Reader
}

func (e *env) dial(t *testing.T) *rawConn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(e.base, "http://"))
	e.must(err)
	t.Cleanup(func() { _ = conn.Close() })
	e.must(conn.SetDeadline(time.Now().Add(30 * time.Second)))
	return &rawConn{conn, bufio.NewReader(conn)}
}

// exchange writes a request and reads its answer.
func (c *rawConn) exchange(t *testing.T, method, text string) response {
	t.Helper()
	// A server that refuses early may close while a long request is still being written.
	_, _ = io.WriteString(c, text)
	a, err := c.answer(method)
	if err != nil {
		t.Fatalf("after %.80q: %v", text, err)
	}
	return a
}

func (c *rawConn) answer(method string) (response, error) {
	resp, err := http.ReadResponse(c.r, &http.Request{Method: method})
	if err != nil {
		return response{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if resp.Close {
		resp.Header.Set("Connection", "close")
	}
	return response{resp.StatusCode, resp.Header, text}, err
}

// closed waits for more bytes and reports whether the server has closed the
// connection.
func (c *rawConn) closed() bool {
	_, err := c.r.ReadByte()
	return err != nil
}

var requestIDForm = regexp.MustCompile(`^req_[0-9a-f]{32}$`)

// wantCommonHeaders checks the headers that every answer below /v1 and on unknown
// paths has.
func wantCommonHeaders(t *testing.T, now time.Time, a response) {
	t.Helper()
	id := a.header.Get("X-Request-Id")
	if !requestIDForm.MatchString(id) {
		t.Errorf("X-Request-Id %q in %s", id, a)
	}
	var body struct {
		Error struct {
			RequestID string `json:"request_id"`
		} `json:"error"`
	}
	if a.status >= 400 && len(a.body) > 0 {
		if err := json.Unmarshal(a.body, &body); err != nil || body.Error.RequestID != id {
			t.Errorf("the body has another request id than %s: %s", id, a)
		}
	}
	number := func(name string) int64 {
		n, err := strconv.ParseInt(a.header.Get(name), 10, 64)
		if err != nil {
			t.Errorf("%s: %v in %s", name, err, a)
		}
		return n
	}
	limit, remaining, reset := number("RateLimit-Limit"), number("RateLimit-Remaining"), number("RateLimit-Reset")
	if limit < 1 || remaining < 0 || remaining > limit || reset <= now.Unix() || reset > now.Unix()+60 {
		t.Errorf("RateLimit %d, %d, %d at %d in %s", limit, remaining, reset, now.Unix(), a)
	}
	if got := a.header.Get("X-Content-Type-Options"); got != "nosniff" {
		t.Errorf("X-Content-Type-Options %q", got)
	}
}

// forgeKey returns a well-formed key with the prefix of another key and a new
// secret.
func forgeKey(t *testing.T, key string) string {
	t.Helper()
	const alphabet = "0123456789abcdefghijklmnopqrstuvwxyz"
	var prefix []byte // without its first character, which names the environment
	for _, c := range []byte(key[len("fh_")+1 : len("fh_")+12]) {
		prefix = append(prefix, byte(strings.IndexByte(alphabet, c)))
	}
	env := map[byte]string{'s': "sandbox", 'p': "production", 'c': "certification"}[key[3]]
	forged, err := apikey.New(env, io.MultiReader(bytes.NewReader(prefix), rand.Reader))
	must(t, err)
	if forged.Reveal()[:16] != key[:16] || forged.Reveal() == key {
		t.Fatalf("%s does not have the prefix of %s, or is equal", forged.Reveal(), key)
	}
	return forged.Reveal()
}

// unknownKey returns a well-formed key that was never issued.
func unknownKey(t *testing.T, env fiscal.Environment) string {
	t.Helper()
	key, err := apikey.New(string(env), rand.Reader)
	must(t, err)
	return key.Reveal()
}

// storedCredential returns the stored credential of a key.
func (e *env) storedCredential(key string) store.Credential {
	e.t.Helper()
	c, err := e.store.CredentialByPrefix(e.t.Context(), key[3:15])
	e.must(err)
	return c
}

// endpointBody returns a valid body for the creation of an endpoint.
func endpointBody(url string, kinds ...string) []byte {
	if len(kinds) == 0 {
		kinds = []string{"*"}
	}
	b, err := json.Marshal(map[string]any{"url": url, "events": kinds})
	if err != nil {
		panic(err)
	}
	return b
}

// getPlain gets a page that is not in the OpenAPI document.
func (e *env) getPlain(t *testing.T, path string) (response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.base+path, nil)
	e.must(err)
	resp, err := e.client.Do(req)
	if err != nil {
		return response{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return response{resp.StatusCode, resp.Header, text}, err
}

func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}

// receive receives from a channel, and fails the test after 20 seconds.
func receive[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(time.Minute):
		t.Fatalf("%s: not within 20 seconds", what)
		panic("unreachable")
	}
}

// sendAsync sends a request in the background.
func (e *env) sendAsync(r request) <-chan response {
	c := make(chan response, 1)
	go func() {
		a, err := e.try(r)
		if err != nil {
			a.body = fmt.Append(nil, err)
		}
		c <- a
	}()
	return c
}

// must fails the test when err is not nil.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
