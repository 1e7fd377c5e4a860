package simulator_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

const (
	issuer = "199000013"
	buyer  = "199000021"
	person = "00113918205"
)

var zone = time.FixedZone("AST", -4*60*60)

// A fakeClock is a clock that the test moves.
type fakeClock struct {
	mu sync.Mutex
	at time.Time
}

func (c *fakeClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *fakeClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// An env is a simulator that listens, and a client of it.
type env struct {
	*simulator.Simulator
	t     testing.TB
	clock *fakeClock
	base  string
	id    *xmlsig.Identity
	token string
	http  *http.Client
}

// newEnv starts a simulator without delays, with an issuer and a buyer who receives
// documents.
func newEnv(t testing.TB, configure ...func(*simulator.Options)) *env {
	t.Helper()
	clock := &fakeClock{at: time.Date(2026, 6, 1, 12, 0, 0, 0, zone)}
	o := simulator.Options{Now: clock.now, Seed: 1, Config: simulator.Quick()}
	for _, f := range configure {
		f(&o)
	}
	s, err := simulator.New(o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		s.Close()
		server.Close()
	})
	e := &env{Simulator: s, t: t, clock: clock, base: server.URL, http: server.Client()}
	must(t, s.AddTaxpayer(simulator.Baseline(issuer, person, "2027-12-31")))
	must(t, s.AddTaxpayer(simulator.Taxpayer{RNC: buyer, Name: "Comprador", Delegates: []simulator.Delegate{{ID: "22400022111"}}, Receiver: &simulator.Receiver{}}))
	if e.id, err = s.Identity(person); err != nil {
		t.Fatal(err)
	}
	return e
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A response is a response of the simulator.
type response struct {
	status int
	body   string
	header http.Header
	err    error
}

func (a response) json(t testing.TB) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		t.Fatalf("%d %q: %v", a.status, a.body, err)
	}
	return v
}

func (e *env) do(q *http.Request) response {
	answer, err := e.http.Do(q)
	if err != nil {
		return response{err: err}
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return response{answer.StatusCode, string(body), answer.Header, err}
}

func (e *env) request(ctx context.Context, method, path, token string, body io.Reader) *http.Request {
	e.t.Helper()
	q, err := http.NewRequestWithContext(ctx, method, e.base+path, body)
	must(e.t, err)
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	return q
}

func (e *env) get(path string, query ...string) response {
	e.t.Helper()
	values := url.Values{}
	for i := 0; i < len(query); i += 2 {
		values.Set(query[i], query[i+1])
	}
	if len(values) > 0 {
		path += "?" + values.Encode()
	}
	return e.do(e.request(e.t.Context(), http.MethodGet, path, e.token, nil))
}

// newUpload returns the body of an upload and its content type.
func newUpload(name string, raw []byte) (body *bytes.Buffer, kind string) {
	body = &bytes.Buffer{}
	m := multipart.NewWriter(body)
	part, _ := m.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {fmt.Sprintf(`form-data; name="xml"; filename=%q`, name)}, "Content-Type": {"text/xml"},
	})
	_, _ = part.Write(raw)
	_ = m.Close()
	return body, m.FormDataContentType()
}

func (e *env) upload(path, name string, raw []byte) response {
	e.t.Helper()
	return e.uploadContext(e.t.Context(), path, name, raw)
}

func (e *env) uploadContext(ctx context.Context, path, name string, raw []byte) response {
	body, kind := newUpload(name, raw)
	q := e.request(ctx, http.MethodPost, path, e.token, body)
	q.Header.Set("Content-Type", kind)
	return e.do(q)
}

const (
	reception = "/ecf-host/ecf/recepcion/api/facturaselectronicas"
	fc        = "/fc-host/ecf/recepcionfc/api/recepcion/ecf"
	result    = "/ecf-host/ecf/consultaresultado/api/consultas/estado"
	stateURL  = "/ecf-host/ecf/consultaestado/api/consultas/estado"
	trackURL  = "/ecf-host/ecf/consultatrackids/api/trackids/consulta"
	fcLookup  = "/fc-host/ecf/consultarfce/api/Consultas/Consulta"
	seedURL   = "/ecf-host/ecf/autenticacion/api/autenticacion/semilla"
	tokenURL  = "/ecf-host/ecf/autenticacion/api/autenticacion/validarsemilla"
	directory = "/ecf-host/ecf/consultadirectorio/api/consultas/"
)

// login fetches a seed, signs it and gets a token.
func (e *env) login() *env {
	e.t.Helper()
	a := e.authenticate(seedURL, tokenURL, e.id)
	if a.status != http.StatusOK {
		e.t.Fatalf("token: %d %s %v", a.status, a.body, a.err)
	}
	e.token, _ = a.json(e.t)["token"].(string)
	return e
}

func (e *env) authenticate(seedPath, tokenPath string, id *xmlsig.Identity) response {
	e.t.Helper()
	return e.upload(tokenPath, "semilla.xml", e.signSeed(e.get(seedPath), id))
}

func (e *env) signSeed(seed response, id *xmlsig.Identity) []byte {
	e.t.Helper()
	d, err := xmlsig.Parse([]byte(seed.body), xmlsig.SmallLimits())
	must(e.t, err)
	signed, err := id.SignDocument(d)
	must(e.t, err)
	return signed
}

// invoice is a type 31 with one line of 3 × 1250.00 at 18 %.
const invoice = `<ECF><Encabezado><Version>1.0</Version><IdDoc><TipoeCF>31</TipoeCF><eNCF>ENCF</eNCF><FechaVencimientoSecuencia>31-12-2027</FechaVencimientoSecuencia>` +
	`<IndicadorMontoGravado>0</IndicadorMontoGravado><TipoIngresos>01</TipoIngresos><TipoPago>1</TipoPago></IdDoc>` +
	`<Emisor><RNCEmisor>199000013</RNCEmisor><RazonSocialEmisor>Distribuidora Palma Clara, SRL</RazonSocialEmisor><DireccionEmisor>Calle Ficticia 12</DireccionEmisor><FechaEmision>01-06-2026</FechaEmision></Emisor>` +
	`<Comprador><RNCComprador>199000021</RNCComprador><RazonSocialComprador>Ferretería El Tornillo Azul, SRL</RazonSocialComprador></Comprador>` +
	`<Totales><MontoGravadoTotal>3750.00</MontoGravadoTotal><MontoGravadoI1>3750.00</MontoGravadoI1><ITBIS1>18</ITBIS1><TotalITBIS>675.00</TotalITBIS><TotalITBIS1>675.00</TotalITBIS1><MontoTotal>4425.00</MontoTotal></Totales></Encabezado>` +
	`<DetallesItems><Item><NumeroLinea>1</NumeroLinea><IndicadorFacturacion>1</IndicadorFacturacion><NombreItem>Taladro</NombreItem><IndicadorBienoServicio>1</IndicadorBienoServicio>` +
	`<CantidadItem>3.00</CantidadItem><PrecioUnitarioItem>1250.00</PrecioUnitarioItem><MontoItem>3750.00</MontoItem></Item></DetallesItems><FechaHoraFirma>01-06-2026 11:59:00</FechaHoraFirma></ECF>`

// summary is an RFCE with the same amounts.
const summary = `<RFCE><Encabezado><Version>1.0</Version><IdDoc><TipoeCF>32</TipoeCF><eNCF>ENCF</eNCF><TipoIngresos>01</TipoIngresos><TipoPago>1</TipoPago></IdDoc>` +
	`<Emisor><RNCEmisor>199000013</RNCEmisor><RazonSocialEmisor>Distribuidora Palma Clara, SRL</RazonSocialEmisor><FechaEmision>01-06-2026</FechaEmision></Emisor>` +
	`<Comprador><RazonSocialComprador>Consumidor</RazonSocialComprador></Comprador>` +
	`<Totales><MontoGravadoTotal>3750.00</MontoGravadoTotal><MontoGravadoI1>3750.00</MontoGravadoI1><TotalITBIS>675.00</TotalITBIS><TotalITBIS1>675.00</TotalITBIS1><MontoTotal>4425.00</MontoTotal></Totales>` +
	`<CodigoSeguridadeCF>k7Qx+2</CodigoSeguridadeCF></Encabezado></RFCE>`

// large returns the changes that turn the invoice into a type 32 of 250,000.00.
func large() []string {
	return []string{
		"<TipoeCF>31<", "<TipoeCF>32<", "<FechaVencimientoSecuencia>31-12-2027</FechaVencimientoSecuencia>", "",
		"3750.00", "211864.41", "675.00", "38135.59", "4425.00", "250000.00",
		"<CantidadItem>3.00", "<CantidadItem>1.00", "1250.00", "211864.41",
	}
}

// sign sets the number of a template, makes the changes (pairs of old and new text) and
// signs it.
func (e *env) sign(template, encf string, changes ...string) []byte {
	e.t.Helper()
	return signAs(e.t, e.id, template, encf, changes...)
}

func signAs(t testing.TB, id *xmlsig.Identity, template, encf string, changes ...string) []byte {
	t.Helper()
	text := strings.ReplaceAll(template, "ENCF</eNCF>", encf+"</eNCF>")
	for i := 0; i < len(changes); i += 2 {
		if !strings.Contains(text, changes[i]) {
			t.Fatalf("the template has no %q to change", changes[i])
		}
		text = strings.ReplaceAll(text, changes[i], changes[i+1])
	}
	d, err := xmlsig.Parse([]byte(text), xmlsig.InvoiceLimits())
	must(t, err)
	signed, err := id.SignDocument(d)
	must(t, err)
	return signed
}

// send posts an e-CF and returns its trackId.
func (e *env) send(encf string, raw []byte) string {
	e.t.Helper()
	a := e.upload(reception, issuer+encf+".xml", raw)
	if a.status != http.StatusOK {
		e.t.Fatalf("reception: %d %s %v", a.status, a.body, a.err)
	}
	id, _ := a.json(e.t)["trackId"].(string)
	if id == "" {
		e.t.Fatalf("no trackId in %s", a.body)
	}
	return id
}

// verdict advances the clock by two seconds and looks the result of a trackId up.
func (e *env) verdict(trackID string) map[string]any {
	e.t.Helper()
	e.clock.advance(2 * time.Second)
	return e.get(result, "trackid", trackID).json(e.t)
}

// cancelWhen returns a context that is cancelled when happened returns true.
func (e *env) cancelWhen(happened func() bool) context.Context {
	ctx, cancel := context.WithCancel(e.t.Context())
	go func() {
		defer cancel()
		for ctx.Err() == nil && !happened() {
			time.Sleep(time.Millisecond)
		}
	}()
	return ctx
}

func (e *env) addRule(rule simulator.Rule) {
	e.t.Helper()
	if _, err := e.AddRule(rule); err != nil {
		e.t.Fatal(err)
	}
}

// violationKinds returns the kinds of the violations, without repetitions.
func (e *env) violationKinds() string {
	var kinds []string
	for _, v := range e.Violations() {
		if len(kinds) == 0 || kinds[len(kinds)-1] != string(v.Kind) {
			kinds = append(kinds, string(v.Kind))
		}
	}
	return strings.Join(kinds, " ")
}

func (e *env) noViolations() {
	e.t.Helper()
	for _, v := range e.Violations() {
		e.t.Errorf("violation: %s", v)
	}
}

func encf31(n int) string { return fmt.Sprintf("E31%010d", n) }
func encf32(n int) string { return fmt.Sprintf("E32%010d", n) }

func rootPool(e *env) *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(e.CA())
	return p
}

// fileNameOf returns the file name that a document must have.
func fileNameOf(xml string) string {
	between := func(tag string) string {
		_, rest, _ := strings.Cut(xml, "<"+tag+">")
		text, _, _ := strings.Cut(rest, "<")
		return text
	}
	return between("RNCEmisor") + between("eNCF") + ".xml"
}
