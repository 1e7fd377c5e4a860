package simulator_test

import (
	"net/http"
	"strings"
	"testing"
)

// approval sends the copy of a commercial approval of the issuer's document.
func (e *env) approval(rnc, encf, total string) response {
	e.t.Helper()
	signer, err := e.Identity("22400022111")
	must(e.t, err)
	raw := signAs(e.t, signer, `<ACECF xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><DetalleAprobacionComercial><Version>1.0</Version><RNCEmisor>`+issuer+`</RNCEmisor><eNCF>ENCF</eNCF><FechaEmision>01-06-2026</FechaEmision><MontoTotal>`+total+`</MontoTotal><RNCComprador>`+rnc+`</RNCComprador><Estado>1</Estado><FechaHoraAprobacionComercial>01-06-2026 12:00:00</FechaHoraAprobacionComercial></DetalleAprobacionComercial></ACECF>`, encf)
	return e.upload("/ecf-host/ecf/aprobacioncomercial/api/aprobacioncomercial", rnc+encf+".xml", raw)
}

func TestApprovalIsCheckedAgainstTheDocument(t *testing.T) {
	t.Parallel()
	e := newEnv(t).login()
	e.send(encf31(1), e.sign(invoice, encf31(1)))
	e.send(encf31(2), e.sign(invoice, encf31(2), "31-12-2027", "31-12-2028"))
	e.send(encf32(3), e.sign(invoice, encf32(3), large()...))
	for _, c := range []struct{ rnc, encf, total, want string }{
		{buyer, encf31(1), "4425.00", `"01"`}, {buyer, encf31(1), "4425.01", "Los datos"}, {buyer, encf31(2), "4425.00", "no es válido"},
		{buyer, encf32(3), "250000.00", "no requiere"}, {issuer, encf31(1), "4425.00", "no está delegado"},
	} {
		if a := e.approval(c.rnc, c.encf, c.total); a.status != http.StatusOK || !strings.Contains(a.body, c.want) {
			t.Errorf("%v: %d %s", c, a.status, a.body)
		}
	}
	if a := e.upload("/ecf-host/ecf/aprobacioncomercial/api/aprobacioncomercial", "x.xml", e.sign(invoice, encf31(1))); !strings.Contains(a.body, `"02"`) {
		t.Errorf("%d %s", a.status, a.body)
	}
}
