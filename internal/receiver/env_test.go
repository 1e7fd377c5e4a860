package receiver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/capacity"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/receiver"
	"github.com/fiscalhub/fiscalhub/internal/reply"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig/xmlsigtest"
)

// httpClient has a transport of its own. A test server that ends closes the idle
// connections of the default transport, and then a request of another test may fail.
var httpClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

const (
	supplier = "131880681"
	ours     = "199000013" // a taxpayer of the service
	buyer    = "199000021"
	encf     = "E310000000058"

	seedPath      = "/fe/autenticacion/api/semilla"
	tokenPath     = "/fe/autenticacion/api/validacioncertificado"
	receptionPath = "/fe/recepcion/api/ecf"
	approvalPath  = "/fe/aprobacioncomercial/api/ecf"
)

const invoiceXML = `<ECF><Encabezado><Version>1.0</Version><IdDoc><TipoeCF>31</TipoeCF><eNCF>` + encf + `</eNCF></IdDoc><Emisor><RNCEmisor>` + supplier +
	`</RNCEmisor></Emisor><Comprador><RNCComprador>` + ours + `</RNCComprador></Comprador></Encabezado></ECF>`

const responseXML = `<ACECF><DetalleAprobacionComercial><Version>1.0</Version><RNCEmisor>` + ours + `</RNCEmisor><eNCF>` + encf +
	`</eNCF><FechaEmision>01-06-2026</FechaEmision><MontoTotal>4425.00</MontoTotal><RNCComprador>` + buyer +
	`</RNCComprador><Estado>1</Estado><FechaHoraAprobacionComercial>02-06-2026 10:00:00</FechaHoraAprobacionComercial></DetalleAprobacionComercial></ACECF>`

// peer is the certificate of the caller, of the only trusted authority. own signs for our
// taxpayer, and is of another authority.
var (
	peer = sync.OnceValue(func() *xmlsigtest.Leaf { return mustLeaf(xmlsigtest.Options{}) })
	own  = sync.OnceValue(func() *xmlsigtest.Leaf {
		ca, err := xmlsigtest.NewCA("Otra Autoridad") // all authorities have the same key and differ by name
		if err != nil {
			panic(err)
		}
		return mustLeaf(xmlsigtest.Options{Subject: "Nuestra", SerialNumber: "IDCDO-00200000001", CA: ca})
	})
)

func mustLeaf(o xmlsigtest.Options) *xmlsigtest.Leaf {
	leaf, err := xmlsigtest.New(o)
	if err != nil {
		panic(err)
	}
	return leaf
}

var _ receiver.Seeds = (*store.Store)(nil)

// env is a receiver behind an HTTP server, and the fake services that it calls.
type env struct {
	*receiver.Receiver
	options receiver.Options
	t       testing.TB
	url     string
	log     bytes.Buffer

	mu        sync.Mutex
	at        time.Time
	used      map[string]time.Time
	responses []reply.Response
	// refused tokens and signed seeds
	wrongTokens, wrongSeeds atomic.Int32
	calls                   int // of ByRNC and Identity
	// The errors that the services return.
	seedErr, taxpayerErr, identityErr, responseErr error
}

func newEnv(t testing.TB, configure ...func(*receiver.Options)) *env {
	t.Helper()
	e := &env{t: t, at: time.Now(), used: map[string]time.Time{}}
	o := receiver.Options{
		Environment: fiscal.Production, Roots: peer().CA.Pool(), Keys: keys(7),
		Seeds: e, Taxpayers: e, Identities: e, Responses: e,
		Capacity: capacity.New(capacity.DefaultLimits(1<<30, 2)), Clients: capacity.NewClientFinder(nil, e.now, slog.New(slog.DiscardHandler)),
		OnWrongToken: func(*http.Request) { e.wrongTokens.Add(1) }, OnWrongSeed: func(*http.Request) { e.wrongSeeds.Add(1) },
		Now: e.now, Log: slog.New(slog.NewTextHandler(&e.log, nil)),
	}
	for _, f := range configure {
		f(&o)
	}
	e.options = o
	var err error
	if e.Receiver, err = receiver.New(o); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(e.Receiver)
	t.Cleanup(server.Close)
	e.url = server.URL
	return e
}

func (e *env) now() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.at
}

func (e *env) advance(d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.at = e.at.Add(d)
}

func (e *env) UseSeed(_ context.Context, digest []byte, expires, _ time.Time) (bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.seedErr != nil {
		return false, e.seedErr
	}
	_, used := e.used[string(digest)]
	e.used[string(digest)] = expires
	return !used, nil
}

func (e *env) ByRNC(_ context.Context, rnc string) (store.Scope, bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls++
	return store.Scope{Environment: fiscal.Production, TaxpayerID: "t-" + rnc}, rnc == ours, e.taxpayerErr
}

func (e *env) Identity(_ context.Context, scope store.Scope, _ time.Time) (*xmlsig.Identity, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls++
	if scope.TaxpayerID != "t-"+ours {
		e.t.Errorf("the receiver signs for %s", scope.TaxpayerID)
	}
	return own().Identity, e.identityErr
}

func (e *env) Commercial(_ context.Context, r reply.Response) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.responseErr == nil {
		e.responses = append(e.responses, r)
	}
	return e.responseErr
}

// A result is the answer to a request.
type result struct {
	status int
	body   string
	header http.Header
}

// message returns the text of a refusal.
func (a result) message(t testing.TB) string {
	t.Helper()
	var v struct{ Estado, Mensaje string }
	if err := json.Unmarshal([]byte(a.body), &v); err != nil || v.Estado != "Error" || v.Mensaje == "" {
		t.Fatalf("%d %q: %v", a.status, a.body, err)
	}
	return v.Mensaje
}

func (e *env) do(method, path string, body io.Reader, header ...string) result {
	e.t.Helper()
	r, err := http.NewRequestWithContext(e.t.Context(), method, e.url+path, body)
	if err != nil {
		e.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	res, err := httpClient.Do(r)
	if err != nil {
		e.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		e.t.Fatal(err)
	}
	return result{res.StatusCode, string(raw), res.Header}
}

// post sends a document as the part xml of a form.
func (e *env) post(path, document string, header ...string) result {
	e.t.Helper()
	body, kind := form(part{`form-data; name="xml"; filename="a.xml"`, "text/xml", document})
	return e.do(http.MethodPost, path, body, append([]string{"Content-Type", kind}, header...)...)
}

type part struct{ disposition, kind, content string }

func form(parts ...part) (body *bytes.Buffer, kind string) {
	body = &bytes.Buffer{}
	m := multipart.NewWriter(body)
	for _, p := range parts {
		h := textproto.MIMEHeader{}
		if p.disposition != "" {
			h.Set("Content-Disposition", p.disposition)
		}
		if p.kind != "" {
			h.Set("Content-Type", p.kind)
		}
		w, _ := m.CreatePart(h)
		_, _ = io.WriteString(w, p.content)
	}
	_ = m.Close()
	return body, m.FormDataContentType()
}

func sign(t testing.TB, id *xmlsig.Identity, document string) string {
	t.Helper()
	d, err := xmlsig.Parse([]byte(document), xmlsig.InvoiceLimits())
	if err != nil {
		t.Fatal(err)
	}
	signed, err := id.SignDocument(d)
	if err != nil {
		t.Fatal(err)
	}
	return string(signed)
}

// seed requests a seed.
func (e *env) seed() string {
	e.t.Helper()
	a := e.do(http.MethodGet, seedPath, nil)
	if a.status != http.StatusOK {
		e.t.Fatalf("seed: %d %s", a.status, a.body)
	}
	return a.body
}

// token requests a seed and a token.
func (e *env) token(id *xmlsig.Identity) string {
	e.t.Helper()
	a := e.post(tokenPath, sign(e.t, id, e.seed()))
	var v map[string]string
	if err := json.Unmarshal([]byte(a.body), &v); err != nil || a.status != http.StatusOK || v["token"] == "" {
		e.t.Fatalf("token: %d %s %v", a.status, a.body, err)
	}
	return v["token"]
}

func edit(t testing.TB, text string, changes ...string) string {
	t.Helper()
	for i := 0; i < len(changes); i += 2 {
		if !strings.Contains(text, changes[i]) {
			t.Fatalf("the text does not contain %q", changes[i])
		}
		text = strings.Replace(text, changes[i], changes[i+1], 1)
	}
	return text
}

// serve calls the handler without a network.
func (e *env) serve(r *http.Request, want int) *httptest.ResponseRecorder {
	recorder := httptest.NewRecorder()
	e.ServeHTTP(recorder, r)
	if recorder.Code != want {
		e.t.Errorf("%s %s: %d %.200s, want %d", r.Method, r.URL.Path, recorder.Code, recorder.Body, want)
	}
	return recorder
}

// slowBody closes started at the first read and then waits for send.
type slowBody struct {
	started, send chan struct{}
	rest          io.Reader
	once          sync.Once
}

func (s *slowBody) Read(b []byte) (int, error) {
	s.once.Do(func() {
		close(s.started)
		<-s.send
	})
	return s.rest.Read(b)
}

// keys returns keys that consist of one byte each, the one that makes tokens first.
func keys(all ...byte) func() [][]byte {
	var found [][]byte
	for _, b := range all {
		found = append(found, bytes.Repeat([]byte{b}, 32))
	}
	return func() [][]byte { return found }
}
