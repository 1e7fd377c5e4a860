package ecf

import (
	"errors"
	"fmt"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// SignSummary returns the signed summary (RFCE) of a consumer invoice below
// fiscal.SummaryLimit. The summary has the amounts of the invoice and the security
// code of the invoice's signature, which identifies it. SignSummary fails for
// other documents.
func (d *Draft) SignSummary(id *xmlsig.Identity, code SecurityCode) ([]byte, error) {
	if !d.HasSummary() {
		return nil, fmt.Errorf("ecf: summary: only a consumer invoice below %s has a summary", fiscal.SummaryLimit().StringFixed(2))
	}
	if code == (SecurityCode{}) {
		return nil, errors.New("ecf: summary: the invoice has no security code")
	}
	xml, _, err := d.emitSummary(xmlsig.NewWriter("RFCE", 2<<10), code).Sign(id)
	return xml, err
}

func (d *Draft) emitSummary(w *xmlsig.Writer, code SecurityCode) *xmlsig.Writer {
	e := emitter{w}
	e.Open("Encabezado")
	e.Text("Version", "1.0")
	e.Open("IdDoc")
	e.Text("TipoeCF", string(d.ENCF.Type()))
	e.Text("eNCF", d.ENCF.String())
	e.Text("TipoIngresos", d.Issuer.IncomeType)
	e.Text("TipoPago", paymentCode(d.PaymentType))
	e.Close("IdDoc")

	e.Open("Emisor")
	e.Text("RNCEmisor", d.Issuer.RNC)
	e.Text("RazonSocialEmisor", d.Issuer.LegalName)
	e.date("FechaEmision", d.IssueDate)
	e.Close("Emisor")

	e.Open("Comprador")
	e.Text("RNCComprador", d.Buyer.TaxID)
	e.Text("IdentificadorExtranjero", d.Buyer.ForeignID)
	e.Text("RazonSocialComprador", d.Buyer.LegalName)
	e.Close("Comprador")

	t := &d.Totals
	e.Open("Totales")
	t.emitBases(e)
	t.emitTaxes(e)
	// The schema does not allow an amount of 0.00. An entry without an amount
	// would be useless here, because a summary has no rates.
	if !t.AdditionalTax.IsZero() {
		e.amount("MontoImpuestoAdicional", t.AdditionalTax)
		e.Open("ImpuestosAdicionales")
		for _, tax := range t.Additional {
			if !tax.Amount.IsZero() {
				e.Open("ImpuestoAdicional")
				e.Text("TipoImpuesto", tax.Code)
				e.amount("OtrosImpuestosAdicionales", tax.Amount)
				e.Close("ImpuestoAdicional")
			}
		}
		e.Close("ImpuestosAdicionales")
	}
	e.amount("MontoTotal", t.Total)
	e.Close("Totales")
	e.Text("CodigoSeguridadeCF", code.String())
	e.Close("Encabezado")
	return w
}
