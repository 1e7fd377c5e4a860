package simulator_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// A row is one of the table of checks, with a document that fails at it. The
// same document without the changes is accepted.
type row struct {
	name    string
	row     int
	code    int
	verdict string
	used    bool
	rfce    bool
	from    []string // what the accepted one has already
	changes []string
	prepare func(*rig)
	spoil   func(*rig, []byte) []byte // the signed document
}

func rows() []row {
	off := false
	taxpayer := func(change func(*simulator.Taxpayer)) func(*rig) {
		return func(r *rig) {
			must(r.t, r.UpdateTaxpayer(issuer, func(t *simulator.Taxpayer) error { change(t); return nil }))
		}
	}
	signedBy := func(flavour string) func(*rig, []byte) []byte {
		return func(r *rig, _ []byte) []byte {
			c, err := r.IssueCertificate(simulator.CertificateRequest{Holder: person, Flavour: flavour})
			must(r.t, err)
			id, err := xmlsig.OpenP12(c.P12, c.Password)
			must(r.t, err)
			return signAs(r.t, id, invoice, encf31(2))
		}
	}
	return []row{
		{name: "1 a changed value", row: 1, code: 90001, spoil: func(_ *rig, b []byte) []byte {
			return []byte(strings.Replace(string(b), "Taladro", "Martillo", 1))
		}},
		{name: "1 no signature", row: 1, code: 90001, spoil: func(*rig, []byte) []byte {
			return []byte(strings.ReplaceAll(invoice, "ENCF</eNCF>", encf31(2)+"</eNCF>"))
		}},
		{name: "2 a foreign root", row: 2, code: 90002, spoil: signedBy("wrong-ca")},
		{name: "2 an expired certificate", row: 2, code: 90002, spoil: signedBy("expired")},
		{name: "2 signed before the certificate", row: 2, code: 90002, changes: []string{"01-06-2026 11:59:00", "01-03-2026 11:59:00"}},
		{name: "3 the wrong order", row: 3, code: 90003, changes: []string{"<TipoIngresos>01</TipoIngresos><TipoPago>1</TipoPago>", "<TipoPago>1</TipoPago><TipoIngresos>01</TipoIngresos>"}},
		{name: "3 an empty tag", row: 3, code: 90003, changes: []string{"<TipoPago>1</TipoPago>", "<TipoPago>1</TipoPago><TerminoPago></TerminoPago>"}},
		{name: "3 an element of the other type", row: 3, code: 90003, from: large(), changes: []string{"</eNCF>", "</eNCF><FechaVencimientoSecuencia>31-12-2027</FechaVencimientoSecuencia>"}},
		{name: "4 an unknown issuer", row: 4, code: 90004, changes: []string{"<RNCEmisor>199000013", "<RNCEmisor>199000030"}},
		{name: "4 an inactive issuer", row: 4, code: 90004, prepare: taxpayer(func(t *simulator.Taxpayer) { t.Active = &off })},
		{name: "4 a paper issuer", row: 4, code: 90004, prepare: taxpayer(func(t *simulator.Taxpayer) { t.Electronic = &off })},
		{name: "4 before its start", row: 4, code: 90004, prepare: taxpayer(func(t *simulator.Taxpayer) { t.Since = "2026-06-02" })},
		{name: "5 not delegated", row: 5, code: 90005, prepare: taxpayer(func(t *simulator.Taxpayer) {
			t.Delegates = []simulator.Delegate{{ID: person, Roles: []string{"approver"}}}
		})},
		{name: "6 beyond the range", row: 6, code: 135, changes: []string{encf31(2), "E319999999999"}},
		{name: "6 another type", row: 6, code: 135, changes: []string{encf31(2), encf32(2)}},
		{name: "6 beyond the range of summaries", row: 6, code: 75, rfce: true, changes: []string{encf32(2), "E329999999999"}},
		{name: "7 an expired range", row: 7, code: 145, prepare: taxpayer(func(t *simulator.Taxpayer) { t.Ranges[0].Expires = "2026-05-31" }), changes: []string{"31-12-2027", "31-05-2026"}},
		{name: "7 another expiry", row: 7, code: 145, changes: []string{"31-12-2027", "31-12-2028"}},
		{name: "8 annulled", row: 8, code: 135, used: true, prepare: func(r *rig) {
			if a := r.annul(encf31(2), encf31(2)); a.status != http.StatusOK {
				r.t.Fatalf("annul: %d %s", a.status, a.body)
			}
		}},
		{name: "9 used before", row: 9, code: 135, used: true, prepare: func(r *rig) { r.send(encf31(2), r.sign(invoice, encf31(2))) }},
		{name: "9 used before by a summary", row: 9, code: 75, used: true, rfce: true, prepare: func(r *rig) {
			r.upload(fc, issuer+encf32(2)+".xml", r.sign(summary, encf32(2)))
		}},
		{name: "10 the code of a rejected summary", row: 10, code: 75, rfce: true, prepare: func(r *rig) {
			r.fault(simulator.Rule{Count: 1, Action: simulator.Action{Fault: "F17", Verdict: &simulator.Verdict{Code: 2}}})
			r.upload(fc, issuer+encf32(2)+".xml", r.sign(summary, encf32(2)))
		}},
		{name: "11 a small invoice whole", row: 11, code: 90011, changes: append(large()[:4:4], encf31(2), encf32(2))},
		{name: "11 a large summary", row: 11, code: 90011, rfce: true, changes: []string{"3750.00", "211864.41", "675.00", "38135.59", "4425.00", "250000.00"}},
		{name: "12 signed in the future", row: 12, code: 90012, used: true, changes: []string{"01-06-2026 11:59:00", "01-06-2026 12:00:01"}},
		{name: "12 issued in the future", row: 12, code: 90012, used: true, changes: []string{"<FechaEmision>01-06-2026", "<FechaEmision>02-06-2026"}},
		{name: "12 a summary of the future", row: 12, code: 90012, used: true, rfce: true, changes: []string{"<FechaEmision>01-06-2026", "<FechaEmision>02-06-2026"}},
		{name: "13 no indicator", row: 13, code: 176, used: true, changes: []string{"<IndicadorMontoGravado>0</IndicadorMontoGravado>", ""}},
		{name: "14 a large 32 without buyer", row: 14, code: 90014, used: true, from: large(), changes: []string{"<RNCComprador>199000021</RNCComprador>", ""}},
		{name: "15 deferred", row: 15, code: 90015, used: true, changes: []string{"<IndicadorMontoGravado>", "<IndicadorEnvioDiferido>1</IndicadorEnvioDiferido><IndicadorMontoGravado>"}},
		{name: "16 credit without a limit", row: 16, code: 90016, used: true, changes: []string{"<TipoPago>1</TipoPago>", "<TipoPago>2</TipoPago>"}},
		{name: "16 a limit before the issue", row: 16, code: 90016, used: true, changes: []string{"<TipoPago>1</TipoPago>", "<TipoPago>2</TipoPago><FechaLimitePago>31-05-2026</FechaLimitePago>"}},
		{name: "17 a line that is off", row: 17, code: 90017, verdict: "4", used: true, changes: []string{"<PrecioUnitarioItem>1250.00", "<PrecioUnitarioItem>1250.50"}},
		{name: "18 a total that is off", row: 18, code: 3205, verdict: "4", used: true, changes: []string{"4425.00", "4428.00"}},
		{name: "18 a summary that is off", row: 18, code: 3205, verdict: "4", used: true, rfce: true, changes: []string{"4425.00", "4425.01"}},
		{name: "19 a sum that is off", row: 19, code: 1920, verdict: "4", used: true, changes: []string{"<MontoGravadoTotal>3750.00", "<MontoGravadoTotal>3760.00"}},
		{name: "19 another rate", row: 19, code: 1920, verdict: "4", used: true, changes: []string{"<ITBIS1>18", "<ITBIS1>16"}},
		{name: "20 a check digit", row: 20, code: 1385, verdict: "4", used: true, changes: []string{"<RNCComprador>199000021", "<RNCComprador>199000022"}},
		{name: "20 not in the registry", row: 20, code: 1385, verdict: "4", used: true, changes: []string{"<RNCComprador>199000021", "<RNCComprador>101023122"}, prepare: func(r *rig) {
			must(r.t, r.Configure(func(c *simulator.Config) { c.CheckBuyer = "registry" }))
		}},
	}
}

func TestEveryRow(t *testing.T) {
	t.Parallel()
	for _, c := range rows() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t).login()
			if got := r.judge(c, 1, nil, nil); got.Row != 21 || got.Code != 1 {
				t.Fatalf("the accepting document: %+v", got)
			}
			if c.prepare != nil {
				c.prepare(r)
			}
			got := r.judge(c, 2, c.changes, c.spoil)
			want := 2
			if c.verdict == "4" {
				want = 4
			}
			if got.Row != c.row || got.Code != want || got.Used != c.used || len(got.Messages) == 0 || got.Messages[0].Code != c.code {
				t.Errorf("verdict %+v, want row %d, verdict %d, code %d, used %t", got, c.row, want, c.code, c.used)
			}
		})
	}
}

// judge posts a document of a row and returns what the simulator thinks of it.
func (r *rig) judge(c row, n int, changes []string, spoil func(*rig, []byte) []byte) simulator.Verdict {
	r.t.Helper()
	template, path, encf := invoice, reception, encf31(n)
	if c.rfce {
		template, path, encf = summary, fc, encf32(n)
	}
	if len(c.from) > 0 {
		encf = encf32(n)
	}
	raw := r.sign(template, encf, append(c.from[:len(c.from):len(c.from)], changes...)...)
	if spoil != nil {
		raw = spoil(r, raw)
	}
	name := nameOf(string(raw))
	before := len(r.Documents(simulator.Filter{}))
	a := r.upload(path, name, raw)
	docs := r.Documents(simulator.Filter{})
	if len(docs) != before+1 {
		r.t.Fatalf("it was not received: %d %s", a.status, a.body)
	}
	return docs[len(docs)-1].Verdict
}

// nameOf is the file name that a document asks for.
func nameOf(xml string) string {
	between := func(tag string) string {
		_, rest, _ := strings.Cut(xml, "<"+tag+">")
		text, _, _ := strings.Cut(rest, "<")
		return text
	}
	return between("RNCEmisor") + between("eNCF") + ".xml"
}

// annul annuls a range of type 31.
func (r *rig) annul(from, to string) reading {
	r.t.Helper()
	raw := r.sign(fmt.Sprintf(`<ANECF><Encabezado><Version>1.0</Version><RncEmisor>%s</RncEmisor><CantidadeNCFAnulados>1</CantidadeNCFAnulados><FechaHoraAnulacioneNCF>01-06-2026 11:00:00</FechaHoraAnulacioneNCF></Encabezado>`+
		`<DetalleAnulacion><Anulacion><NoLinea>1</NoLinea><TipoeCF>31</TipoeCF><TablaRangoSecuenciasAnuladaseNCF><Secuencias><SecuenciaeNCFDesde>%s</SecuenciaeNCFDesde><SecuenciaeNCFHasta>%s</SecuenciaeNCFHasta></Secuencias></TablaRangoSecuenciasAnuladaseNCF><CantidadeNCFAnulados>1</CantidadeNCFAnulados></Anulacion></DetalleAnulacion></ANECF>`,
		issuer, from, to), "")
	return r.upload("/ecf-host/ecf/anulacionrangos/api/operaciones/anularrango", issuer+".xml", raw)
}

func TestAnnulmentLeavesUsedNumbers(t *testing.T) {
	t.Parallel()
	r := newRig(t).login()
	r.send(encf31(2), r.sign(invoice, encf31(2)))
	a := r.annul(encf31(1), encf31(3))
	if a.status != http.StatusOK || !strings.Contains(a.body, encf31(2)) || strings.Contains(a.body, encf31(3)) {
		t.Errorf("%d %s", a.status, a.body)
	}
	if v := r.verdict(r.send(encf31(3), r.sign(invoice, encf31(3)))); v["codigo"] != "2" {
		t.Errorf("an annulled number: %v", v)
	}
}

func TestFreeAndBlockedNumbers(t *testing.T) {
	t.Parallel()
	r := newRig(t).login()
	// A rejection that leaves the number free, and the corrected document.
	r.send(encf31(1), r.sign(invoice, encf31(1), "31-12-2027", "31-12-2028"))
	if v := r.verdict(r.send(encf31(1), r.sign(invoice, encf31(1)))); v["codigo"] != "1" {
		t.Errorf("a free number: %v", v)
	}
	r.noViolations()
	// One that does not.
	r.send(encf31(2), r.sign(invoice, encf31(2), "<IndicadorMontoGravado>0</IndicadorMontoGravado>", ""))
	if v := r.verdict(r.send(encf31(2), r.sign(invoice, encf31(2)))); v["codigo"] != "2" {
		t.Errorf("a blocked number: %v", v)
	}
}

func TestDuplicateModes(t *testing.T) {
	t.Parallel()
	for mode, want := range map[simulator.DuplicateMode]struct {
		same bool
		code string
	}{simulator.DuplicateReject: {false, "2"}, simulator.DuplicateSameVerdict: {false, "1"}, simulator.DuplicateSameTrackID: {true, "1"}} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(o *simulator.Options) { o.Config.DuplicateMode = mode }).login()
			raw := r.sign(invoice, encf31(1))
			first := r.send(encf31(1), raw)
			r.verdict(first)
			second := r.send(encf31(1), raw)
			if v := r.verdict(second); (first == second) != want.same || v["codigo"] != want.code {
				t.Errorf("%s then %s: %v", first, second, v)
			}
			if v := r.verdict(first); v["codigo"] != "1" {
				t.Errorf("the first: %v", v)
			}
		})
	}
}

func TestStrictCountsResets(t *testing.T) {
	t.Parallel()
	r := newRig(t).login()
	must(t, r.SetProfile("certification-strict"))
	v := r.verdict(r.send(encf31(1), r.sign(invoice, encf31(1), "4425.00", "4428.00")))
	if v["codigo"] != "2" {
		t.Errorf("%v", v)
	}
	if a := control(t, r, http.MethodGet, "/config", ""); !strings.Contains(a, `"reset_count":1`) {
		t.Errorf("%s", a)
	}
}

func TestIndentedAfterSigningIsAccepted(t *testing.T) {
	t.Parallel()
	r := newRig(t).login()
	raw := regexp.MustCompile(`><([^/])`).ReplaceAllString(string(r.sign(invoice, encf31(1))), ">\n<$1")
	if v := r.verdict(r.send(encf31(1), []byte(raw))); v["codigo"] != "1" {
		t.Errorf("%v", v)
	}
}

func TestTestecfForgets(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	amb := func(path string) string { return strings.Replace(path, "/ecf/", "/TestECF/", 1) }
	login := func() {
		a := r.authenticate(amb(seedURL), amb(tokenURL), r.id)
		r.token, _ = a.json(t)["token"].(string)
	}
	login()
	id, _ := r.upload(amb(reception), issuer+encf31(1)+".xml", r.sign(invoice, encf31(1))).json(t)["trackId"].(string)
	if v := r.get(amb(result), "trackid", id).json(t); v["codigo"] != "1" {
		t.Errorf("at first: %v", v)
	}
	r.clock.advance(90 * 24 * time.Hour)
	login()
	if v := r.get(amb(result), "trackid", id).json(t); v["codigo"] != "0" {
		t.Errorf("after 90 days: %v", v)
	}
}
