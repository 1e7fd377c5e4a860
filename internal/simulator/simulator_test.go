package simulator_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
)

func TestHappyInvoice(t *testing.T) {
	t.Parallel()
	r := newRig(t).login()
	raw := r.sign(invoice, encf31(1))
	id := r.send(encf31(1), raw)
	v := r.verdict(id)
	if v["codigo"] != "1" || v["estado"] != "Aceptado" || v["encf"] != encf31(1) || v["rnc"] != issuer || v["secuenciaUtilizada"] != true {
		t.Errorf("verdict %v", v)
	}
	docs := r.Documents(simulator.Filter{Amb: "ecf", RNC: issuer, ENCF: encf31(1)})
	if len(docs) != 1 || docs[0].TrackID != id || string(docs[0].Bytes) != string(raw) || docs[0].Attempt != 1 || docs[0].Verdict.Row != 21 {
		t.Errorf("documents %+v", docs)
	}
	s := r.get(stateURL, "RncEmisor", issuer, "NcfElectronico", encf31(1), "RncComprador", buyer, "CodigoSeguridad", docs[0].Security).json(t)
	if s["codigo"] != 1.0 || s["montoTotal"] != 4425.0 || s["codigoSeguridad"] != docs[0].Security {
		t.Errorf("state %v", s)
	}
	if a := r.get(trackURL, "rncemisor", issuer, "encf", encf31(1)); !strings.Contains(a.body, id) {
		t.Errorf("trackIds %s", a.body)
	}
	r.noViolations()
}

func TestHappySummary(t *testing.T) {
	t.Parallel()
	r := newRig(t).login()
	a := r.upload(fc, issuer+encf32(1)+".xml", r.sign(summary, encf32(1)))
	if a.status != http.StatusOK || a.body != `{"codigo":1,"estado":"Aceptado","mensajes":null,"encf":"E320000000001","secuenciaUtilizada":true}` {
		t.Errorf("%d %s", a.status, a.body)
	}
	v := r.get(fcLookup, "RNC_Emisor", issuer, "ENCF", encf32(1), "Cod_Seguridad_eCF", "k7Qx+2").json(t)
	if v["codigo"] != "1" {
		t.Errorf("look-up %v", v)
	}
	if d := r.Documents(simulator.Filter{}); len(d) != 1 || d[0].Kind != "rfce" || d[0].TrackID != "" {
		t.Errorf("documents %+v", d)
	}
	r.noViolations()
}

func TestDelayAndSettle(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *simulator.Options) {
		o.Config.ValidationDelay = simulator.Fixed(time.Hour)
		o.Config.VisibilityLag = simulator.Fixed(10 * time.Second)
	}).login()
	id := r.send(encf31(1), r.sign(invoice, encf31(1)))
	if v := r.verdict(id); v["codigo"] != "0" {
		t.Errorf("before it is visible: %v", v)
	}
	r.clock.advance(10 * time.Second)
	if v := r.verdict(id); v["codigo"] != "3" || v["estado"] != "En Proceso" {
		t.Errorf("in process: %v", v)
	}
	r.Settle()
	if v := r.verdict(id); v["codigo"] != "1" {
		t.Errorf("settled: %v", v)
	}
}
