package simulator_test

import (
	"bytes"
	"context"
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

// A fakeClock stands still until it is told.
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

// A rig is a simulator that listens, and a reference client of it.
type rig struct {
	*simulator.Simulator
	t     testing.TB
	clock *fakeClock
	base  string
	id    *xmlsig.Identity
	token string
	http  *http.Client
}

// newRig starts a simulator without delays, with an issuer who may issue and a
// buyer who receives.
func newRig(t testing.TB, configure ...func(*simulator.Options)) *rig {
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
	r := &rig{Simulator: s, t: t, clock: clock, base: server.URL, http: server.Client()}
	must(t, s.AddTaxpayer(simulator.Baseline(issuer, person, "2027-12-31")))
	must(t, s.AddTaxpayer(simulator.Taxpayer{RNC: buyer, Name: "Comprador", Delegates: []simulator.Delegate{{ID: "22400022111"}}, Receiver: &simulator.Receiver{}}))
	if r.id, err = s.Identity(person); err != nil {
		t.Fatal(err)
	}
	return r
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A reading is an answer of the simulator.
type reading struct {
	status int
	body   string
	header http.Header
	err    error
}

func (a reading) json(t testing.TB) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		t.Fatalf("%d %q: %v", a.status, a.body, err)
	}
	return v
}

func (r *rig) do(q *http.Request) reading {
	answer, err := r.http.Do(q)
	if err != nil {
		return reading{err: err}
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return reading{answer.StatusCode, string(body), answer.Header, err}
}

func (r *rig) request(ctx context.Context, method, path, token string, body io.Reader) *http.Request {
	r.t.Helper()
	q, err := http.NewRequestWithContext(ctx, method, r.base+path, body)
	must(r.t, err)
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	return q
}

func (r *rig) get(path string, query ...string) reading {
	r.t.Helper()
	values := url.Values{}
	for i := 0; i < len(query); i += 2 {
		values.Set(query[i], query[i+1])
	}
	if len(values) > 0 {
		path += "?" + values.Encode()
	}
	return r.do(r.request(r.t.Context(), http.MethodGet, path, r.token, nil))
}

// file makes the body of an upload.
func file(name string, raw []byte) (body *bytes.Buffer, kind string) {
	body = &bytes.Buffer{}
	m := multipart.NewWriter(body)
	part, _ := m.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {fmt.Sprintf(`form-data; name="xml"; filename=%q`, name)}, "Content-Type": {"text/xml"},
	})
	_, _ = part.Write(raw)
	_ = m.Close()
	return body, m.FormDataContentType()
}

func (r *rig) upload(path, name string, raw []byte) reading {
	r.t.Helper()
	return r.uploadContext(r.t.Context(), path, name, raw)
}

func (r *rig) uploadContext(ctx context.Context, path, name string, raw []byte) reading {
	body, kind := file(name, raw)
	q := r.request(ctx, http.MethodPost, path, r.token, body)
	q.Header.Set("Content-Type", kind)
	return r.do(q)
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
func (r *rig) login() *rig {
	r.t.Helper()
	a := r.authenticate(seedURL, tokenURL, r.id)
	if a.status != http.StatusOK {
		r.t.Fatalf("token: %d %s %v", a.status, a.body, a.err)
	}
	r.token, _ = a.json(r.t)["token"].(string)
	return r
}

func (r *rig) authenticate(seedPath, tokenPath string, id *xmlsig.Identity) reading {
	r.t.Helper()
	return r.upload(tokenPath, "semilla.xml", r.signSeed(r.get(seedPath), id))
}

func (r *rig) signSeed(seed reading, id *xmlsig.Identity) []byte {
	r.t.Helper()
	d, err := xmlsig.Parse([]byte(seed.body), xmlsig.SmallLimits())
	must(r.t, err)
	signed, err := id.SignDocument(d)
	must(r.t, err)
	return signed
}

// invoice is a type 31 of one line of 3 × 1250.00 at 18 %.
const invoice = `<ECF><Encabezado><Version>1.0</Version><IdDoc><TipoeCF>31</TipoeCF><eNCF>ENCF</eNCF><FechaVencimientoSecuencia>31-12-2027</FechaVencimientoSecuencia>` +
	`<IndicadorMontoGravado>0</IndicadorMontoGravado><TipoIngresos>01</TipoIngresos><TipoPago>1</TipoPago></IdDoc>` +
	`<Emisor><RNCEmisor>199000013</RNCEmisor><RazonSocialEmisor>Distribuidora Palma Clara, SRL</RazonSocialEmisor><DireccionEmisor>Calle Ficticia 12</DireccionEmisor><FechaEmision>01-06-2026</FechaEmision></Emisor>` +
	`<Comprador><RNCComprador>199000021</RNCComprador><RazonSocialComprador>Ferretería El Tornillo Azul, SRL</RazonSocialComprador></Comprador>` +
	`<Totales><MontoGravadoTotal>3750.00</MontoGravadoTotal><MontoGravadoI1>3750.00</MontoGravadoI1><ITBIS1>18</ITBIS1><TotalITBIS>675.00</TotalITBIS><TotalITBIS1>675.00</TotalITBIS1><MontoTotal>4425.00</MontoTotal></Totales></Encabezado>` +
	`<DetallesItems><Item><NumeroLinea>1</NumeroLinea><IndicadorFacturacion>1</IndicadorFacturacion><NombreItem>Taladro</NombreItem><IndicadorBienoServicio>1</IndicadorBienoServicio>` +
	`<CantidadItem>3.00</CantidadItem><PrecioUnitarioItem>1250.00</PrecioUnitarioItem><MontoItem>3750.00</MontoItem></Item></DetallesItems><FechaHoraFirma>01-06-2026 11:59:00</FechaHoraFirma></ECF>`

// summary is an RFCE of the same amounts.
const summary = `<RFCE><Encabezado><Version>1.0</Version><IdDoc><TipoeCF>32</TipoeCF><eNCF>ENCF</eNCF><TipoIngresos>01</TipoIngresos><TipoPago>1</TipoPago></IdDoc>` +
	`<Emisor><RNCEmisor>199000013</RNCEmisor><RazonSocialEmisor>Distribuidora Palma Clara, SRL</RazonSocialEmisor><FechaEmision>01-06-2026</FechaEmision></Emisor>` +
	`<Comprador><RazonSocialComprador>Consumidor</RazonSocialComprador></Comprador>` +
	`<Totales><MontoGravadoTotal>3750.00</MontoGravadoTotal><MontoGravadoI1>3750.00</MontoGravadoI1><TotalITBIS>675.00</TotalITBIS><TotalITBIS1>675.00</TotalITBIS1><MontoTotal>4425.00</MontoTotal></Totales>` +
	`<CodigoSeguridadeCF>k7Qx+2</CodigoSeguridadeCF></Encabezado></RFCE>`

// large is how an invoice becomes a type 32 of 250,000.00.
func large() []string {
	return []string{
		"<TipoeCF>31<", "<TipoeCF>32<", "<FechaVencimientoSecuencia>31-12-2027</FechaVencimientoSecuencia>", "",
		"3750.00", "211864.41", "675.00", "38135.59", "4425.00", "250000.00",
		"<CantidadItem>3.00", "<CantidadItem>1.00", "1250.00", "211864.41",
	}
}

// sign fills a template in, changes it by pairs of old and new, and signs it.
func (r *rig) sign(template, encf string, changes ...string) []byte {
	r.t.Helper()
	return signAs(r.t, r.id, template, encf, changes...)
}

func signAs(t testing.TB, id *xmlsig.Identity, template, encf string, changes ...string) []byte {
	t.Helper()
	text := strings.ReplaceAll(template, "ENCF</eNCF>", encf+"</eNCF>")
	for i := 0; i < len(changes); i += 2 {
		if !strings.Contains(text, changes[i]) {
			t.Fatalf("there is no %q to change", changes[i])
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
func (r *rig) send(encf string, raw []byte) string {
	r.t.Helper()
	a := r.upload(reception, issuer+encf+".xml", raw)
	if a.status != http.StatusOK {
		r.t.Fatalf("reception: %d %s %v", a.status, a.body, a.err)
	}
	id, _ := a.json(r.t)["trackId"].(string)
	if id == "" {
		r.t.Fatalf("no trackId in %s", a.body)
	}
	return id
}

// verdict asks for the result of a trackId, a little later.
func (r *rig) verdict(trackID string) map[string]any {
	r.t.Helper()
	r.clock.advance(2 * time.Second)
	return r.get(result, "trackid", trackID).json(r.t)
}

// until is a context of somebody who gives up once something has happened.
func (r *rig) until(happened func() bool) context.Context {
	ctx, cancel := context.WithCancel(r.t.Context())
	go func() {
		defer cancel()
		for ctx.Err() == nil && !happened() {
			time.Sleep(time.Millisecond)
		}
	}()
	return ctx
}

func (r *rig) fault(rule simulator.Rule) {
	r.t.Helper()
	if _, err := r.AddRule(rule); err != nil {
		r.t.Fatal(err)
	}
}

// kinds are the violations, without repeats.
func (r *rig) kinds() string {
	var kinds []string
	for _, v := range r.Violations() {
		if len(kinds) == 0 || kinds[len(kinds)-1] != string(v.Kind) {
			kinds = append(kinds, string(v.Kind))
		}
	}
	return strings.Join(kinds, " ")
}

func (r *rig) noViolations() {
	r.t.Helper()
	for _, v := range r.Violations() {
		r.t.Errorf("violation: %s", v)
	}
}

func encf31(n int) string { return fmt.Sprintf("E31%010d", n) }
func encf32(n int) string { return fmt.Sprintf("E32%010d", n) }
