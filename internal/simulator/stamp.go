package simulator

import (
	"fmt"
	"html"
	"net/http"
	"strings"
)

// serveStamp is the public page to which the QR code of a printed document leads. It finds
// the document only when every parameter is right.
func (c *call) serveStamp() response {
	q := c.query
	fc := c.service == StampFC
	c.s.mu.Lock()
	d := decisiveDocument(c.s.state.Environments[c.amb].documentsOf(q["rncemisor"], strings.ToUpper(q["encf"])), c.now)
	name := ""
	if t := c.s.state.Taxpayers[q["rncemisor"]]; t != nil {
		name = t.Name
	}
	c.s.mu.Unlock()
	if d != nil {
		f := d.Facts
		same := d.RFCE == fc && q["montototal"] == f.Total && q["codigoseguridad"] == f.Code
		if !fc {
			same = same && q["rnccomprador"] == f.Buyer && q["fechaemision"] == f.Issued && q["fechafirma"] == f.Signed
		}
		if !same {
			d = nil
		}
	}
	state := stateName(codeNotFound)
	if d != nil {
		if state = stateName(d.Verdict.Code); d.Verdict.valid() {
			state = stateName(codeAccepted)
		}
	}
	if strings.Contains(c.r.Header.Get("Accept"), "application/json") {
		return jsonResponse(http.StatusOK, map[string]any{"encontrado": d != nil, "estado": state, "rncEmisor": q["rncemisor"], "encf": strings.ToUpper(q["encf"])})
	}
	var rows strings.Builder
	row := func(label, value string) {
		_, _ = fmt.Fprintf(&rows, "<tr><th>%s</th><td>%s</td></tr>", label, html.EscapeString(value)) // a builder accepts all writes
	}
	if d != nil {
		row("RNC Emisor", d.Facts.RNC)
		row("Razón Social Emisor", name)
		row("e-NCF", d.Facts.ENCF)
		if !fc {
			row("RNC Comprador", d.Facts.Buyer)
			row("Razón Social Comprador", d.Facts.BuyerName)
			row("Fecha de Emisión", d.Facts.Issued)
			row("Total de ITBIS", d.Facts.ITBIS)
			row("Monto Total", d.Facts.Total)
		}
	}
	row("Estado", state)
	return response{status: http.StatusOK, contentType: kindHTML, body: []byte("<!DOCTYPE html><html lang=\"es\"><head><title>Consulta de timbre (simulador)</title></head><body><table>" + rows.String() + "</table></body></html>")}
}
