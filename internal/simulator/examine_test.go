package simulator_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// A checkCase is a row of the table of checks with a document that fails it. Without the
// changes the document is accepted.
type checkCase struct {
	name    string
	row     int
	code    int
	verdict string
	used    bool
	rfce    bool
	from    []string // changes that the accepted document has too
	changes []string
	prepare func(*env)
	alter   func(*env, []byte) []byte // changes the signed document
}

func checkCases() []checkCase {
	off := false
	taxpayer := func(change func(*simulator.Taxpayer)) func(*env) {
		return func(e *env) {
			must(e.t, e.UpdateTaxpayer(issuer, func(t *simulator.Taxpayer) error { change(t); return nil }))
		}
	}
	signedBy := func(flavour string) func(*env, []byte) []byte {
		return func(e *env, _ []byte) []byte {
			c, err := e.IssueCertificate(simulator.CertificateRequest{Holder: person, Flavour: flavour})
			must(e.t, err)
			id, err := xmlsig.OpenP12(c.P12, c.Password)
			must(e.t, err)
			return signAs(e.t, id, invoice, encf31(2))
		}
	}
	return []checkCase{
		{name: "1 changed after signing", row: 1, code: 90001, alter: func(_ *env, b []byte) []byte {
			return []byte(strings.Replace(string(b), "Taladro", "Martillo", 1))
		}},
		{name: "1 no signature", row: 1, code: 90001, alter: func(*env, []byte) []byte {
			return []byte(strings.ReplaceAll(invoice, "ENCF</eNCF>", encf31(2)+"</eNCF>"))
		}},
		{name: "2 an unknown root", row: 2, code: 90002, alter: signedBy("wrong-ca")},
		{name: "2 an expired certificate", row: 2, code: 90002, alter: signedBy("expired")},
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
		{name: "8 annulled", row: 8, code: 135, used: true, prepare: func(e *env) {
			if a := e.annul(encf31(2), encf31(2)); a.status != http.StatusOK {
				e.t.Fatalf("annul: %d %s", a.status, a.body)
			}
		}},
		{name: "9 used before", row: 9, code: 135, used: true, prepare: func(e *env) { e.send(encf31(2), e.sign(invoice, encf31(2))) }},
		{name: "9 used before by a summary", row: 9, code: 75, used: true, rfce: true, prepare: func(e *env) {
			e.upload(fc, issuer+encf32(2)+".xml", e.sign(summary, encf32(2)))
		}},
		{name: "10 the code of a rejected summary", row: 10, code: 75, rfce: true, prepare: func(e *env) {
			e.addRule(simulator.Rule{Count: 1, Action: simulator.Action{Fault: "F17", Verdict: &simulator.Verdict{Code: 2}}})
			e.upload(fc, issuer+encf32(2)+".xml", e.sign(summary, encf32(2)))
		}},
		{name: "11 a small consumer invoice as an e-CF", row: 11, code: 90011, changes: append(large()[:4:4], encf31(2), encf32(2))},
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
		{name: "20 not in the registry", row: 20, code: 1385, verdict: "4", used: true, changes: []string{"<RNCComprador>199000021", "<RNCComprador>101023122"}, prepare: func(e *env) {
			must(e.t, e.Configure(func(c *simulator.Config) { c.CheckBuyer = "registry" }))
		}},
	}
}

func TestEveryCheckDecidesItsVerdict(t *testing.T) {
	t.Parallel()
	for _, c := range checkCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t).login()
			if got := e.verdictOf(c, 1, nil, nil); got.Row != 21 || got.Code != 1 {
				t.Fatalf("the document that must be accepted: %+v", got)
			}
			if c.prepare != nil {
				c.prepare(e)
			}
			got := e.verdictOf(c, 2, c.changes, c.alter)
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

// verdictOf posts the document of a case and returns its verdict.
func (e *env) verdictOf(c checkCase, n int, changes []string, spoil func(*env, []byte) []byte) simulator.Verdict {
	e.t.Helper()
	template, path, encf := invoice, reception, encf31(n)
	if c.rfce {
		template, path, encf = summary, fc, encf32(n)
	}
	if len(c.from) > 0 {
		encf = encf32(n)
	}
	raw := e.sign(template, encf, append(c.from[:len(c.from):len(c.from)], changes...)...)
	if spoil != nil {
		raw = spoil(e, raw)
	}
	name := fileNameOf(string(raw))
	before := len(e.Documents(simulator.Filter{}))
	a := e.upload(path, name, raw)
	docs := e.Documents(simulator.Filter{})
	if len(docs) != before+1 {
		e.t.Fatalf("the document was not stored: %d %s", a.status, a.body)
	}
	return docs[len(docs)-1].Verdict
}

func TestStrictProfileRejectsConditionalDocuments(t *testing.T) {
	t.Parallel()
	e := newEnv(t).login()
	must(t, e.SetProfile("certification-strict"))
	v := e.verdict(e.send(encf31(1), e.sign(invoice, encf31(1), "4425.00", "4428.00")))
	if v["codigo"] != "2" {
		t.Errorf("%v", v)
	}
	if a := control(t, e, http.MethodGet, "/config", ""); !strings.Contains(a, `"reset_count":1`) {
		t.Errorf("%s", a)
	}
}

func TestCheckDigitsOfBuyers(t *testing.T) {
	t.Parallel()
	e := newEnv(t).login()
	for n, c := range []struct {
		id   string
		want int
	}{{"00113918205", 1}, {"22400022111", 1}, {"00113918204", 4}, {"101023122", 1}, {"131880600", 4}} {
		e.send(encf31(n+1), e.sign(invoice, encf31(n+1), "<RNCComprador>"+buyer, "<RNCComprador>"+c.id))
		if v := e.Documents(simulator.Filter{ENCF: encf31(n + 1)})[0].Verdict; v.Code != c.want {
			t.Errorf("%s: %+v", c.id, v)
		}
	}
}
