package simulator

import (
	"net/http"

	"github.com/quagmt/udecimal"

	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// serveApproval receives the copy of a commercial approval that a buyer sends to the
// authority.
func (c *call) serveApproval() response {
	up, refused := c.readUpload()
	if refused != nil {
		return *refused
	}
	text := c.checkApproval(up.raw)
	type shape struct {
		Messages []string `json:"mensaje"`
		State    string   `json:"estado"`
		Code     string   `json:"codigo"`
	}
	v := shape{[]string{}, "Aprobacion Comercial Aprobada.", "01"}
	if text != "" {
		v = shape{[]string{text}, "Aprobacion Comercial Rechazada.", "02"}
	}
	if c.config.documented() {
		v.Code = v.Code[1:]
	}
	return jsonResponse(http.StatusOK, v)
}

// checkApproval returns why an approval is refused, or "".
func (c *call) checkApproval(raw []byte) string {
	v, err := xmlsig.Verify(raw, xmlsig.SmallLimits())
	if err != nil || v.Root().Name() != "ACECF" {
		return "El archivo o su firma no es válido."
	}
	d := v.Root().Child("DetalleAprobacionComercial")
	get := func(name string) string { return d.Child(name).Text() }
	c.key.rnc, c.key.encf = get("RNCEmisor"), get("eNCF")
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	buyer := c.s.state.Taxpayers[get("RNCComprador")]
	if buyer == nil || !buyer.delegated(xmlsig.Person(v.Certificate), "approver") || v.Trusted(c.s.trust, c.now) != nil {
		return "El certificado no está delegado para el RNC."
	}
	doc := decisiveDocument(c.s.state.Environments[c.amb].documentsOf(c.key.rnc, c.key.encf), c.now)
	switch {
	case doc == nil:
		return "La factura no fue encontrada."
	case !doc.Verdict.valid():
		return "El e-CF no es válido."
	case doc.Facts.Type == "32" || doc.Facts.Type == "41" || doc.Facts.Type == "43" || doc.Facts.Type == "46" || doc.Facts.Type == "47":
		return "El tipo de e-CF no requiere aprobación comercial."
	}
	stated, err := udecimal.Parse(get("MontoTotal"))
	total, _ := udecimal.Parse(doc.Facts.Total) // the document was accepted, so the amount is valid
	if err != nil || !stated.Equal(total) || doc.Facts.Buyer != buyer.RNC || doc.Facts.Issued != get("FechaEmision") {
		return "Los datos no son los del e-CF."
	}
	return ""
}
