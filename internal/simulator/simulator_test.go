package simulator_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
)

func TestAValidInvoiceIsAccepted(t *testing.T) {
	t.Parallel()
	e := newEnv(t).login()
	raw := e.sign(invoice, encf31(1))
	id := e.send(encf31(1), raw)
	v := e.verdict(id)
	if v["codigo"] != "1" || v["estado"] != "Aceptado" || v["encf"] != encf31(1) || v["rnc"] != issuer || v["secuenciaUtilizada"] != true {
		t.Errorf("verdict %v", v)
	}
	docs := e.Documents(simulator.Filter{Amb: "ecf", RNC: issuer, ENCF: encf31(1)})
	if len(docs) != 1 || docs[0].TrackID != id || string(docs[0].Bytes) != string(raw) || docs[0].Attempt != 1 || docs[0].Verdict.Row != 21 {
		t.Errorf("documents %+v", docs)
	}
	s := e.get(stateURL, "RncEmisor", issuer, "NcfElectronico", encf31(1), "RncComprador", buyer, "CodigoSeguridad", docs[0].Security).json(t)
	if s["codigo"] != 1.0 || s["montoTotal"] != 4425.0 || s["codigoSeguridad"] != docs[0].Security {
		t.Errorf("state %v", s)
	}
	if a := e.get(trackURL, "rncemisor", issuer, "encf", encf31(1)); !strings.Contains(a.body, id) {
		t.Errorf("trackIds %s", a.body)
	}
	e.noViolations()
}

func TestAValidSummaryIsAcceptedAtOnce(t *testing.T) {
	t.Parallel()
	e := newEnv(t).login()
	a := e.upload(fc, issuer+encf32(1)+".xml", e.sign(summary, encf32(1)))
	if a.status != http.StatusOK || a.body != `{"codigo":1,"estado":"Aceptado","mensajes":null,"encf":"E320000000001","secuenciaUtilizada":true}` {
		t.Errorf("%d %s", a.status, a.body)
	}
	v := e.get(fcLookup, "RNC_Emisor", issuer, "ENCF", encf32(1), "Cod_Seguridad_eCF", "k7Qx+2").json(t)
	if v["codigo"] != "1" {
		t.Errorf("look-up %v", v)
	}
	if d := e.Documents(simulator.Filter{}); len(d) != 1 || d[0].Kind != "rfce" || d[0].TrackID != "" {
		t.Errorf("documents %+v", d)
	}
	e.noViolations()
}

func TestVerdictAppearsAfterItsDelay(t *testing.T) {
	t.Parallel()
	e := newEnv(t, func(o *simulator.Options) {
		o.Config.ValidationDelay = simulator.Fixed(time.Hour)
		o.Config.VisibilityLag = simulator.Fixed(10 * time.Second)
	}).login()
	id := e.send(encf31(1), e.sign(invoice, encf31(1)))
	if v := e.verdict(id); v["codigo"] != "0" {
		t.Errorf("before it is visible: %v", v)
	}
	e.clock.advance(10 * time.Second)
	if v := e.verdict(id); v["codigo"] != "3" || v["estado"] != "En Proceso" {
		t.Errorf("in process: %v", v)
	}
	e.Settle()
	if v := e.verdict(id); v["codigo"] != "1" {
		t.Errorf("settled: %v", v)
	}
}

func TestNewRefusesInvalidOptions(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]simulator.Options{
		"no clock":         {},
		"a wrong taxpayer": {Now: time.Now, Fixture: &simulator.Fixture{Taxpayers: []simulator.Taxpayer{{RNC: "1"}}}},
		"a wrong rule":     {Now: time.Now, Fixture: &simulator.Fixture{Rules: []simulator.Rule{{}}}},
		"a wrong root":     {Now: time.Now, Fixture: &simulator.Fixture{Trust: []string{"x"}}},
		"a wrong setting":  {Now: time.Now, Config: simulator.Config{Wire: "x"}},
		"a wrong profile":  {Now: time.Now, Config: simulator.Config{Profile: "x"}},
	} {
		if _, err := simulator.New(o); err == nil {
			t.Errorf("New accepted %s", name)
		}
	}
}

func TestResetReturnsToTheFixture(t *testing.T) {
	t.Parallel()
	e := newEnv(t, func(o *simulator.Options) {
		o.Fixture = &simulator.Fixture{Taxpayers: []simulator.Taxpayer{simulator.Baseline("101023122", person, "")}}
	}).login()
	e.send(encf31(1), e.sign(invoice, encf31(1)))
	control(t, e, http.MethodPost, "/reset", "")
	if got := e.Documents(simulator.Filter{}); len(got) != 0 {
		t.Errorf("documents %+v", got)
	}
	rncs := func() (all []string) {
		for _, x := range e.Taxpayers() {
			all = append(all, x.RNC)
		}
		return all
	}
	if diff := cmp.Diff([]string{"101023122", "131880681"}, rncs()); diff != "" {
		t.Error(diff)
	}
	control(t, e, http.MethodPost, "/reset", `{"taxpayers":[{"rnc":"199000021","name":"Otra"}]}`)
	if diff := cmp.Diff([]string{"131880681", "199000021"}, rncs()); diff != "" {
		t.Error(diff)
	}
}
