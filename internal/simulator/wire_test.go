package simulator_test

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGoldenAnswers compares every answer, byte by byte, for both wires.
func TestGoldenAnswers(t *testing.T) {
	t.Parallel()
	for _, wire := range []simulator.Wire{simulator.Observed, simulator.Documented} {
		t.Run(string(wire), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(o *simulator.Options) { o.Config.Wire, o.Config.StatusKey = wire, "clave" }).login()
			got := answers(r)
			path := filepath.Join("testdata", "answers-"+string(wire)+".golden")
			if *update {
				must(t, os.MkdirAll("testdata", 0o755))
				must(t, os.WriteFile(path, []byte(got), 0o644))
			}
			want, err := os.ReadFile(path)
			must(t, err)
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// answers asks everything there is to ask.
func answers(r *rig) string {
	var b strings.Builder
	say := func(what string, a reading) {
		body := strings.ReplaceAll(a.body, r.base, "http://HOST")
		// Signatures and tokens depend on keys, which differ from run to run.
		body = regexp.MustCompile(`codigoSeguridad":"[^"]{6}`).ReplaceAllString(body, `codigoSeguridad":"CODIGO`)
		body = regexp.MustCompile(`"token":"[^"]*`).ReplaceAllString(body, `"token":"TOKEN`)
		_, _ = fmt.Fprintf(&b, "# %s\n%d %s\n%s\n\n", what, a.status, a.header.Get("Content-Type"), body)
	}
	amb := func(path, to string) string { return strings.Replace(path, "/ecf/", "/"+to+"/", 1) }
	raw := r.sign(invoice, encf31(1))
	say("seed", r.get(seedURL))
	say("token", r.authenticate(amb(seedURL, "testecf"), amb(tokenURL, "testecf"), r.id))
	say("reception", r.upload(reception, issuer+encf31(1)+".xml", raw))
	id := r.Documents(simulator.Filter{})[0].TrackID
	r.clock.advance(3 * time.Second)
	say("result accepted", r.get(result, "TrackId", id))
	say("result unknown", r.get(result, "trackid", "00000000-0000-4000-8000-000000000000"))
	must(r.t, r.Configure(func(c *simulator.Config) { c.ValidationDelay = simulator.Fixed(time.Hour) }))
	slow := r.send(encf31(2), r.sign(invoice, encf31(2), "<RNCComprador>199000021", "<RNCComprador>199000022"))
	say("result in process", r.get(result, "trackid", slow))
	r.Settle()
	r.clock.advance(3 * time.Second)
	say("result conditional", r.get(result, "trackid", slow))
	must(r.t, r.Configure(func(c *simulator.Config) { c.ValidationDelay = simulator.Fixed(0) }))
	say("result rejected", r.get(result, "trackid", r.send(encf31(3), r.sign(invoice, encf31(3), "31-12-2027", "31-12-2028"))))
	say("state accepted", r.get(stateURL, "rncemisor", issuer, "ncfelectronico", encf31(1), "rnccomprador", buyer))
	say("state conditional", r.get(stateURL, "rncemisor", issuer, "ncfelectronico", encf31(2)))
	say("state rejected", r.get(stateURL, "rncemisor", issuer, "ncfelectronico", encf31(3)))
	say("state unknown", r.get(stateURL, "rncemisor", issuer, "ncfelectronico", encf31(9)))
	say("state without parameters", r.get(stateURL))
	say("trackIds", r.get(trackURL, "rncemisor", issuer, "encf", encf31(1)))
	say("trackIds unknown", r.get(trackURL, "rncemisor", issuer, "encf", encf31(9)))
	for _, q := range [][2]string{{"", encf31(1)}, {issuer, ""}, {"1", encf31(1)}, {issuer, "E31"}, {issuer, "X310000000001"}, {buyer, encf31(1)}} {
		say("trackIds of "+q[0]+" "+q[1], r.get(trackURL, "rncemisor", q[0], "encf", q[1]))
	}
	say("RFCE accepted", r.upload(fc, issuer+encf32(1)+".xml", r.sign(summary, encf32(1))))
	say("RFCE conditional", r.upload(fc, issuer+encf32(2)+".xml", r.sign(summary, encf32(2), "4425.00", "4426.00")))
	say("RFCE rejected", r.upload(fc, issuer+encf32(1)+".xml", r.sign(summary, encf32(1))))
	for n, what := range map[int]string{1: "accepted"} {
		say("RFCE look-up "+what, r.get(fcLookup, "rnc_emisor", issuer, "encf", encf32(n), "cod_seguridad_ecf", "k7Qx+2"))
	}
	say("RFCE look-up unknown", r.get(fcLookup, "rnc_emisor", issuer, "encf", encf32(1), "cod_seguridad_ecf", "xxxxxx"))
	say("RFCE look-up without parameters", r.get(fcLookup))
	say("state of a conditional RFCE", r.get(stateURL, "rncemisor", issuer, "ncfelectronico", encf32(2)))
	say("directory", r.get(directory+"listado"))
	say("directory by RNC", r.get(directory+"ObtenerDirectorioPorRNC", "RNC", buyer))
	say("directory of nobody", r.get(directory+"obtenerdirectorioporrnc", "rnc", issuer))
	say("wrong file name", r.upload(reception, "ecf.xml", raw))
	say("wrong root", r.upload(fc, issuer+encf31(1)+".xml", raw))
	say("annulment", r.annul(encf31(5), encf31(6)))
	say("approval", r.approval(buyer, encf31(1), "4425"))
	say("approval of nothing", r.approval(buyer, encf31(9), "4425.00"))
	for _, what := range []string{"obtenerestatus", "obtenerventanasmantenimiento", "verificarestado?ambiente=2", "verificarestado?ambiente=9"} {
		q := r.request(r.t.Context(), http.MethodGet, "/status-host/api/estatusservicios/"+what, "", nil)
		q.Header.Set("Authorization", "ApiKey clave")
		say(what, r.do(q))
	}
	say("status without a key", r.get("/status-host/api/estatusservicios/obtenerestatus"))
	r.token = ""
	say("no token", r.get(result, "trackid", id))
	return b.String()
}

// approval sends the copy of a commercial approval of the issuer's document.
func (r *rig) approval(rnc, encf, total string) reading {
	r.t.Helper()
	signer, err := r.Identity("22400022111")
	must(r.t, err)
	raw := signAs(r.t, signer, `<ACECF xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><DetalleAprobacionComercial><Version>1.0</Version><RNCEmisor>`+issuer+`</RNCEmisor><eNCF>ENCF</eNCF><FechaEmision>01-06-2026</FechaEmision><MontoTotal>`+total+`</MontoTotal><RNCComprador>`+rnc+`</RNCComprador><Estado>1</Estado><FechaHoraAprobacionComercial>01-06-2026 12:00:00</FechaHoraAprobacionComercial></DetalleAprobacionComercial></ACECF>`, encf)
	return r.upload("/ecf-host/ecf/aprobacioncomercial/api/aprobacioncomercial", rnc+encf+".xml", raw)
}

func TestApprovalIsJudged(t *testing.T) {
	t.Parallel()
	r := newRig(t).login()
	r.send(encf31(1), r.sign(invoice, encf31(1)))
	r.send(encf31(2), r.sign(invoice, encf31(2), "31-12-2027", "31-12-2028"))
	r.send(encf32(3), r.sign(invoice, encf32(3), large()...))
	for _, c := range []struct{ rnc, encf, total, want string }{
		{buyer, encf31(1), "4425.00", `"01"`}, {buyer, encf31(1), "4425.01", "Los datos"}, {buyer, encf31(2), "4425.00", "no es válido"},
		{buyer, encf32(3), "250000.00", "no requiere"}, {issuer, encf31(1), "4425.00", "no está delegado"},
	} {
		if a := r.approval(c.rnc, c.encf, c.total); a.status != http.StatusOK || !strings.Contains(a.body, c.want) {
			t.Errorf("%v: %d %s", c, a.status, a.body)
		}
	}
	if a := r.upload("/ecf-host/ecf/aprobacioncomercial/api/aprobacioncomercial", "x.xml", r.sign(invoice, encf31(1))); !strings.Contains(a.body, `"02"`) {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestStamp(t *testing.T) {
	t.Parallel()
	r := newRig(t).login()
	r.send(encf31(1), r.sign(invoice, encf31(1)))
	r.upload(fc, issuer+encf32(1)+".xml", r.sign(summary, encf32(1)))
	r.token = ""
	code := r.Documents(simulator.Filter{ENCF: encf31(1)})[0].Security
	right := []string{"RncEmisor", issuer, "RncComprador", buyer, "ENCF", strings.ToLower(encf31(1)), "FechaEmision", "01-06-2026", "MontoTotal", "4425.00", "FechaFirma", "01-06-2026 11:59:00", "CodigoSeguridad", code}
	if a := r.get("/ecf-host/ecf/ConsultaTimbre", right...); a.status != http.StatusOK || !strings.Contains(a.body, "<td>Aceptado</td>") || !strings.Contains(a.body, "<td>4425.00</td>") {
		t.Errorf("%d %s", a.status, a.body)
	}
	for i := 1; i < len(right); i += 2 {
		wrong := append([]string{}, right...)
		wrong[i] = "0"
		if a := r.get("/ecf-host/ecf/consultatimbre", wrong...); !strings.Contains(a.body, "<td>No encontrado</td>") {
			t.Errorf("another %s: %s", wrong[i-1], a.body)
		}
	}
	q := r.request(t.Context(), http.MethodGet, "/fc-host/ecf/consultatimbrefc?rncemisor="+issuer+"&encf="+encf32(1)+"&montototal=4425.00&codigoseguridad=k7Qx%2B2", "", nil)
	q.Header.Set("Accept", "application/json")
	if a := r.do(q); !strings.Contains(a.body, `"encontrado":true`) {
		t.Errorf("%s", a.body)
	}
}

func TestUploadsAreChecked(t *testing.T) {
	t.Parallel()
	r := newRig(t).login()
	post := func(kind, body string) reading {
		q := r.request(t.Context(), http.MethodPost, reception, r.token, strings.NewReader(body))
		q.Header.Set("Content-Type", kind)
		return r.do(q)
	}
	part := func(header, content string) string {
		return "--b\r\n" + header + "\r\n\r\n" + content + "\r\n--b--\r\n"
	}
	const form = "multipart/form-data; boundary=b"
	for _, c := range []struct {
		name, kind, body string
		status           int
		want             string
	}{
		{"no multipart", "text/xml", "<ECF/>", 400, "multipart/form-data"},
		{"no boundary", "multipart/form-data", "x", 400, "multipart/form-data"},
		{"nothing", form, "", 400, "parte xml"},
		{"another part", form, part(`Content-Disposition: form-data; name="file"; filename="x.xml"`, "<ECF/>"), 400, "parte xml"},
		{"an empty part", form, part(`Content-Disposition: form-data; name="xml"; filename="x.xml"`, ""), 400, "vacío"},
		{"no XML", form, part(`Content-Disposition: form-data; name="xml"; filename="x.xml"`, "hello"), 400, `"trackId":null`},
		{"a document type", form, part(`Content-Disposition: form-data; name="xml"; filename="x.xml"`, "<!DOCTYPE ECF><ECF/>"), 400, `"trackId":null`},
		{"another root", form, part(`Content-Disposition: form-data; name="xml"; filename="x.xml"`, "<X><a/></X>"), 400, `"trackId":null`},
		{"too large", form, part(`Content-Disposition: form-data; name="xml"; filename="x.xml"`, strings.Repeat("x", 8<<20+1)), 413, ""},
		{"much too large", form, strings.Repeat("x", 9<<20), 413, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if a := post(c.kind, c.body); a.status != c.status || !strings.Contains(a.body, c.want) {
				t.Errorf("%d %s %v", a.status, a.body, a.err)
			}
		})
	}
	if r.stored() != 0 {
		t.Errorf("%d were stored", r.stored())
	}
}

func TestRouting(t *testing.T) {
	t.Parallel()
	r := newRig(t).login()
	for path, want := range map[string]int{
		"/ecf-host/ECF/ConsultaResultado/API/Consultas/Estado?TRACKID=x": 200, "/ecf-host/moon/x": 404, "/": 404, "/ecf-host/ecf/nonsense": 404,
		"/fc-host/ecf/recepcionfc/api/recepcion/ecf": 405, "/ecf-host/certecf/consultadirectorio/api/consultas/listado": 404, "/status-host/api/estatusservicios/x": 401,
		"/peer/" + issuer + "/fe/autenticacion/api/semilla": 404, peerSeed: 200,
	} {
		if a := r.get(path); a.status != want {
			t.Errorf("%s: %d, want %d", path, a.status, want)
		}
	}
	if q := r.Requests(); q[len(q)-1].Seq != uint64(len(q)) || len(q) != 11 {
		t.Errorf("the journal has %d requests", len(q))
	}
	q := r.request(t.Context(), http.MethodGet, "/testecf/autenticacion/api/autenticacion/semilla", "", nil)
	q.Host = "ecf.dgii.gov.do"
	if a := r.do(q); a.status != http.StatusOK {
		t.Errorf("by the name of the host: %d", a.status)
	}
	must(t, r.Configure(func(c *simulator.Config) { c.CertECFFull = true }))
	if a := r.get("/ecf-host/certecf/consultadirectorio/api/consultas/listado"); a.status != http.StatusUnauthorized {
		t.Errorf("certecf in full, with the token of another environment: %d", a.status)
	}
}

func TestSeedIsSingleUseAndShortLived(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	signed := r.signSeed(r.get(seedURL), r.id)
	if a := r.upload(tokenURL, "semilla.xml", signed); a.status != http.StatusOK {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := r.upload(tokenURL, "semilla.xml", signed); a.status != http.StatusBadRequest {
		t.Errorf("used twice: %d %s", a.status, a.body)
	}
	signed = r.signSeed(r.get(seedURL), r.id)
	r.clock.advance(6 * time.Minute)
	if a := r.upload(tokenURL, "semilla.xml", signed); a.status != http.StatusBadRequest {
		t.Errorf("too late: %d %s", a.status, a.body)
	}
	signed = r.signSeed(r.get(strings.Replace(seedURL, "/ecf/", "/testecf/", 1)), r.id)
	if a := r.upload(tokenURL, "semilla.xml", signed); a.status != http.StatusBadRequest {
		t.Errorf("of another environment: %d %s", a.status, a.body)
	}
	if a := r.upload(tokenURL, "semilla.xml", []byte(r.get(seedURL).body)); a.status != http.StatusBadRequest {
		t.Errorf("not signed: %d %s", a.status, a.body)
	}
	r.login()
	r.clock.advance(59 * time.Minute)
	if a := r.get(result, "trackid", "x"); a.status != http.StatusOK {
		t.Errorf("before it expires: %d", a.status)
	}
	r.clock.advance(time.Minute)
	if a := r.get(result, "trackid", "x"); a.status != http.StatusUnauthorized || a.body != "" {
		t.Errorf("after an hour: %d %q", a.status, a.body)
	}
}
