package simulator_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestEmulatorSendsAndReceives(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	const emulator = "/ecf-host/testecf/EmisorReceptor"
	const api = "/api/Emision/"
	base := e.base + "/peer/" + buyer
	post := func(path, body string) response {
		return e.do(e.request(t.Context(), http.MethodPost, emulator+path, "", strings.NewReader(body)))
	}
	a := post(api+"EmisionComprobantes", `{"rnc":"`+buyer+`","tipoEncf":"31","urlRecepcion":"`+base+`","urlAutenticacion":""}`)
	if a.status != http.StatusOK || !strings.HasPrefix(a.body, "<ECF>") {
		t.Fatalf("%d %s", a.status, a.body)
	}
	encf := strings.TrimSuffix(strings.TrimPrefix(fileNameOf(a.body), "131880681"), ".xml")
	if v := e.get(emulator+api+"consultaacuserecibo", "Rnc", buyer, "Encf", encf).json(t); v["estado"] != "Recibido" {
		t.Errorf("%v", v)
	}
	if v := e.get(emulator+api+"consultaacuserecibo", "Rnc", buyer, "Encf", "x").json(t); v["estado"] != "No encontrado" {
		t.Errorf("%v", v)
	}
	a = post(api+"envioaprobacioncomercial", `{"urlAprobacionComercial":"`+base+`","rnc":"`+issuer+`","encf":"`+encf31(1)+`","estadoAprobacion":"1"}`)
	if a.status != http.StatusOK || !strings.HasPrefix(a.body, "<ACECF") {
		t.Errorf("%d %s", a.status, a.body)
	}
	for _, path := range []string{api + "emisioncomprobantes", api + "envioaprobacioncomercial"} {
		if a := post(path, "{"); a.status != http.StatusBadRequest {
			t.Errorf("%s: %d", path, a.status)
		}
	}
	// The emulator receives like any peer.
	raw := e.sign(invoice, encf31(1), buyer, "131880681")
	if got := e.arecf(e.upload(emulator+"/fe/recepci%C3%B3n/api/ecf", issuer+encf31(1)+".xml", raw)); !strings.HasPrefix(got, "0") {
		t.Errorf("%s", got)
	}
}
