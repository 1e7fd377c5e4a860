package simulator

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// maxAnnulled is how many numbers one call may annul. The limit is the simulator's own.
const maxAnnulled = 100_000

// serveAnnulment annuls ranges of numbers. Used numbers stay used; the other numbers of
// the range are annulled.
func (c *call) serveAnnulment() response {
	up, refused := c.readUpload()
	if refused != nil {
		return *refused
	}
	type shape struct {
		RNC      string   `json:"rnc"`
		Code     string   `json:"codigo"`
		Name     string   `json:"nombre"`
		Messages []string `json:"mensajes"`
	}
	v, err := xmlsig.Verify(up.raw, xmlsig.InvoiceLimits())
	if err != nil || v.Root().Name() != "ANECF" {
		return jsonResponse(http.StatusBadRequest, shape{Code: "2", Messages: []string{"El archivo o su firma no es válido."}})
	}
	head := v.Root().Child("Encabezado")
	rnc := head.Child("RncEmisor").Text()
	c.key.rnc = rnc
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	t := c.s.state.Taxpayers[rnc]
	if t == nil || !t.delegated(xmlsig.Person(v.Certificate), "signer") || v.Trusted(c.s.trust, c.now) != nil {
		return jsonResponse(http.StatusBadRequest, shape{RNC: rnc, Code: "2", Messages: []string{"El firmante no está delegado para el RNC emisor."}})
	}
	e := c.s.state.Environments[c.amb]
	var used []string
	annulled := 0
	for line := range v.Root().Child("DetalleAnulacion").Children() {
		for sequence := range line.Child("TablaRangoSecuenciasAnuladaseNCF").Children() {
			from, to := sequence.Child("SecuenciaeNCFDesde").Text(), sequence.Child("SecuenciaeNCFHasta").Text()
			kind, first, ok := splitENCF(from)
			_, last, also := splitENCF(to)
			if !ok || !also || last < first || kind != line.Child("TipoeCF").Text() || annulled+int(last-first) > maxAnnulled {
				return jsonResponse(http.StatusBadRequest, shape{rnc, "2", t.Name, []string{"El rango " + from + "-" + to + " no es válido."}})
			}
			for i := first; i <= last; i++ {
				encf := fmt.Sprintf("E%s%010d", kind, i)
				docs := e.documentsOf(rnc, encf)
				if len(docs) > 0 && !allReusable(docs, c.now) {
					used = append(used, encf)
					continue
				}
				e.number(rnc, encf).Annulled = true
				annulled++
			}
		}
	}
	messages := []string{"Rango anulado correctamente."}
	if len(used) > 0 {
		messages = []string{"Rango anulado excepto las secuencias: " + strings.Join(used, ", ") + "."}
	}
	return jsonResponse(http.StatusOK, shape{rnc, "1", t.Name, messages})
}
