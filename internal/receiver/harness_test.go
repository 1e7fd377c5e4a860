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
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/receiver"
	"github.com/fiscalhub/fiscalhub/internal/reply"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig/xmlsigtest"
)

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

// peer is who calls, under the one authority that is trusted; own signs for our
// taxpayer, under another.
var (
	peer = sync.OnceValue(func() *xmlsigtest.Leaf { return mustLeaf(xmlsigtest.Options{}) })
	own  = sync.OnceValue(func() *xmlsigtest.Leaf {
		ca, err := xmlsigtest.NewCA("Otra Autoridad") // all have one key, and differ by name
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

// A world is a receiver that listens, and what stands behind it.
type world struct {
	*receiver.Receiver
	t   testing.TB
	url string
	log bytes.Buffer

	mu        sync.Mutex
	at        time.Time
	used      map[string]time.Time
	responses []reply.Response
	calls     int // of taxpayers and identities
	// What fails when it is set.
	seedErr, taxpayerErr, identityErr, responseErr error
}

func newWorld(t testing.TB, configure ...func(*receiver.Options)) *world {
	t.Helper()
	w := &world{t: t, at: time.Now(), used: map[string]time.Time{}}
	o := receiver.Options{
		Environment: fiscal.Production, Roots: peer().CA.Pool(), Key: bytes.Repeat([]byte{7}, 32),
		Seeds: w, Taxpayers: w, Identities: w, Responses: w,
		Now: w.now, Log: slog.New(slog.NewTextHandler(&w.log, nil)),
	}
	for _, f := range configure {
		f(&o)
	}
	var err error
	if w.Receiver, err = receiver.New(o); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(w.Receiver)
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = w.at.Add(d)
}

func (w *world) UseSeed(_ context.Context, digest []byte, expires, _ time.Time) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seedErr != nil {
		return false, w.seedErr
	}
	_, used := w.used[string(digest)]
	w.used[string(digest)] = expires
	return !used, nil
}

func (w *world) ByRNC(_ context.Context, rnc string) (store.Scope, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls++
	return store.Scope{Environment: fiscal.Production, TaxpayerID: "t-" + rnc}, rnc == ours, w.taxpayerErr
}

func (w *world) Identity(_ context.Context, scope store.Scope, _ time.Time) (*xmlsig.Identity, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls++
	if scope.TaxpayerID != "t-"+ours {
		w.t.Errorf("asked to sign for %s", scope.TaxpayerID)
	}
	return own().Identity, w.identityErr
}

func (w *world) Commercial(_ context.Context, r reply.Response) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.responseErr == nil {
		w.responses = append(w.responses, r)
	}
	return w.responseErr
}

// A reading is what came back.
type reading struct {
	status int
	body   string
	header http.Header
}

// message is what a refusal says.
func (a reading) message(t testing.TB) string {
	t.Helper()
	var v struct{ Estado, Mensaje string }
	if err := json.Unmarshal([]byte(a.body), &v); err != nil || v.Estado != "Error" || v.Mensaje == "" {
		t.Fatalf("%d %q: %v", a.status, a.body, err)
	}
	return v.Mensaje
}

func (w *world) do(method, path string, body io.Reader, header ...string) reading {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, body)
	if err != nil {
		w.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return reading{res.StatusCode, string(raw), res.Header}
}

// post sends a document as the part xml of a form.
func (w *world) post(path, document string, header ...string) reading {
	w.t.Helper()
	body, kind := form(part{`form-data; name="xml"; filename="a.xml"`, "text/xml", document})
	return w.do(http.MethodPost, path, body, append([]string{"Content-Type", kind}, header...)...)
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

// seed asks for a seed.
func (w *world) seed() string {
	w.t.Helper()
	a := w.do(http.MethodGet, seedPath, nil)
	if a.status != http.StatusOK {
		w.t.Fatalf("seed: %d %s", a.status, a.body)
	}
	return a.body
}

// token asks for a seed and a token.
func (w *world) token(id *xmlsig.Identity) string {
	w.t.Helper()
	a := w.post(tokenPath, sign(w.t, id, w.seed()))
	var v map[string]string
	if err := json.Unmarshal([]byte(a.body), &v); err != nil || a.status != http.StatusOK || v["token"] == "" {
		w.t.Fatalf("token: %d %s %v", a.status, a.body, err)
	}
	return v["token"]
}

func edit(t testing.TB, text string, changes ...string) string {
	t.Helper()
	for i := 0; i < len(changes); i += 2 {
		if !strings.Contains(text, changes[i]) {
			t.Fatalf("there is no %q to change", changes[i])
		}
		text = strings.Replace(text, changes[i], changes[i+1], 1)
	}
	return text
}

// serve asks without a network in between.
func (w *world) serve(r *http.Request, want int) *httptest.ResponseRecorder {
	recorder := httptest.NewRecorder()
	w.ServeHTTP(recorder, r)
	if recorder.Code != want {
		w.t.Errorf("%s %s: %d %.200s, want %d", r.Method, r.URL.Path, recorder.Code, recorder.Body, want)
	}
	return recorder
}

// A slow body tells when it is first read, and waits until it may go on.
type slow struct {
	started, send chan struct{}
	rest          io.Reader
	once          sync.Once
}

func (s *slow) Read(b []byte) (int, error) {
	s.once.Do(func() {
		close(s.started)
		<-s.send
	})
	return s.rest.Read(b)
}
