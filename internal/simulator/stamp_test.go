package simulator_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
)

func TestStampFindsTheDocumentOnlyWithAllParameters(t *testing.T) {
	t.Parallel()
	e := newEnv(t).login()
	e.send(encf31(1), e.sign(invoice, encf31(1)))
	e.upload(fc, issuer+encf32(1)+".xml", e.sign(summary, encf32(1)))
	e.token = ""
	code := e.Documents(simulator.Filter{ENCF: encf31(1)})[0].Security
	right := []string{"RncEmisor", issuer, "RncComprador", buyer, "ENCF", strings.ToLower(encf31(1)), "FechaEmision", "01-06-2026", "MontoTotal", "4425.00", "FechaFirma", "01-06-2026 11:59:00", "CodigoSeguridad", code}
	if a := e.get("/ecf-host/ecf/ConsultaTimbre", right...); a.status != http.StatusOK || !strings.Contains(a.body, "<td>Aceptado</td>") || !strings.Contains(a.body, "<td>4425.00</td>") {
		t.Errorf("%d %s", a.status, a.body)
	}
	for i := 1; i < len(right); i += 2 {
		wrong := append([]string{}, right...)
		wrong[i] = "0"
		if a := e.get("/ecf-host/ecf/consultatimbre", wrong...); !strings.Contains(a.body, "<td>No encontrado</td>") {
			t.Errorf("another %s: %s", wrong[i-1], a.body)
		}
	}
	q := e.request(t.Context(), http.MethodGet, "/fc-host/ecf/consultatimbrefc?rncemisor="+issuer+"&encf="+encf32(1)+"&montototal=4425.00&codigoseguridad=k7Qx%2B2", "", nil)
	q.Header.Set("Accept", "application/json")
	if a := e.do(q); !strings.Contains(a.body, `"encontrado":true`) {
		t.Errorf("%s", a.body)
	}
}
