package simulator_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// annul annuls a range of type 31.
func (e *env) annul(from, to string) response {
	e.t.Helper()
	raw := e.sign(fmt.Sprintf(`<ANECF><Encabezado><Version>1.0</Version><RncEmisor>%s</RncEmisor><CantidadeNCFAnulados>1</CantidadeNCFAnulados><FechaHoraAnulacioneNCF>01-06-2026 11:00:00</FechaHoraAnulacioneNCF></Encabezado>`+
		`<DetalleAnulacion><Anulacion><NoLinea>1</NoLinea><TipoeCF>31</TipoeCF><TablaRangoSecuenciasAnuladaseNCF><Secuencias><SecuenciaeNCFDesde>%s</SecuenciaeNCFDesde><SecuenciaeNCFHasta>%s</SecuenciaeNCFHasta></Secuencias></TablaRangoSecuenciasAnuladaseNCF><CantidadeNCFAnulados>1</CantidadeNCFAnulados></Anulacion></DetalleAnulacion></ANECF>`,
		issuer, from, to), "")
	return e.upload("/ecf-host/ecf/anulacionrangos/api/operaciones/anularrango", issuer+".xml", raw)
}

func TestAnnulmentLeavesUsedNumbers(t *testing.T) {
	t.Parallel()
	e := newEnv(t).login()
	e.send(encf31(2), e.sign(invoice, encf31(2)))
	a := e.annul(encf31(1), encf31(3))
	if a.status != http.StatusOK || !strings.Contains(a.body, encf31(2)) || strings.Contains(a.body, encf31(3)) {
		t.Errorf("%d %s", a.status, a.body)
	}
	if v := e.verdict(e.send(encf31(3), e.sign(invoice, encf31(3)))); v["codigo"] != "2" {
		t.Errorf("an annulled number: %v", v)
	}
}
