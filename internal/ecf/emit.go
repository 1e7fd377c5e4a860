package ecf

import (
	"strconv"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// An emitter writes a document element by element, in the order of the schema: as XML
// in canonical form, or as a tree for a check of its structure.
type emitter struct{ *xmlsig.Writer }

func (e emitter) amount(name string, d fiscal.Decimal) {
	e.Value(name, func(b []byte) []byte { return appendAmount(b, d) })
}

func (e emitter) amountIf(present bool, name string, d fiscal.Decimal) {
	if present {
		e.amount(name, d)
	}
}

func (e emitter) integer(name string, n int) {
	e.Value(name, func(b []byte) []byte { return strconv.AppendInt(b, int64(n), 10) })
}

func (e emitter) date(name string, d fiscal.Date) {
	if !d.IsZero() {
		e.Value(name, d.AppendDGII)
	}
}

// Sign returns the signed XML of the document and the security code of its
// signature. The service sends, stores and serves exactly these bytes.
func (d *Draft) Sign(id *xmlsig.Identity) ([]byte, SecurityCode, error) {
	xml, value, err := d.xml().Sign(id)
	if err != nil {
		return nil, SecurityCode{}, err
	}
	code, err := NewSecurityCode(value)
	return xml, code, err
}

// Unsigned returns the XML of the document without a signature.
func (d *Draft) Unsigned() []byte { return d.xml().Unsigned() }

// xml writes the document as XML, for a signature.
func (d *Draft) xml() *xmlsig.Writer {
	size := 3 << 10
	for i := range d.lines {
		size += lineSize(&d.lines[i])
	}
	return d.emit(xmlsig.NewWriter("ECF", size))
}

// tree builds the document for a check of its structure.
func (d *Draft) tree() *xmlsig.Writer {
	return d.emit(xmlsig.NewDocumentWriter("ECF", 60+20*len(d.lines)))
}

func (d *Draft) emit(w *xmlsig.Writer) *xmlsig.Writer {
	e := emitter{w}
	e.Open("Encabezado")
	e.Text("Version", "1.0")
	d.emitHead(e)
	d.emitIssuer(e)
	d.emitBuyer(e)
	d.Totals.emit(e)
	e.Close("Encabezado")

	e.Open("DetallesItems")
	for i := range d.lines {
		line := newLine(&d.lines[i])
		line.emit(e, i+1)
	}
	e.Close("DetallesItems")
	e.Text("FechaHoraFirma", fiscal.FormatDGIITime(d.SignedAt))
	return w
}

func (d *Document) emitHead(e emitter) {
	e.Open("IdDoc")
	e.Text("TipoeCF", string(d.ENCF.Type()))
	e.Text("eNCF", d.ENCF.String())
	e.date("FechaVencimientoSecuencia", d.Expires)
	if d.Totals.taxed() {
		e.Text("IndicadorMontoGravado", d.inclusion())
	}
	e.Text("TipoIngresos", d.Issuer.IncomeType)
	e.Text("TipoPago", paymentCode(d.PaymentType))
	e.date("FechaLimitePago", d.DueDate)
	e.Text("TerminoPago", d.PaymentTerm)
	e.Close("IdDoc")
}

func (d *Document) inclusion() string {
	if d.Inclusive {
		return "1"
	}
	return "0"
}

func paymentCode(p fiscal.PaymentType) string {
	switch p {
	case fiscal.Cash:
		return "1"
	case fiscal.Credit:
		return "2"
	case fiscal.FreeOfCharge:
		return "3"
	}
	return ""
}

func (d *Document) emitIssuer(e emitter) {
	i := &d.Issuer
	e.Open("Emisor")
	e.Text("RNCEmisor", i.RNC)
	e.Text("RazonSocialEmisor", i.LegalName)
	e.Text("NombreComercial", i.TradeName)
	e.Text("Sucursal", i.Branch)
	e.Text("DireccionEmisor", i.Address)
	e.Text("Municipio", i.Municipality)
	e.Text("Provincia", i.Province)
	if len(i.Phones) > 0 {
		e.Open("TablaTelefonoEmisor")
		for _, phone := range i.Phones {
			e.Text("TelefonoEmisor", phone)
		}
		e.Close("TablaTelefonoEmisor")
	}
	e.Text("CorreoEmisor", i.Email)
	e.Text("WebSite", i.Website)
	e.Text("ActividadEconomica", i.EconomicActivity)
	e.Text("NumeroFacturaInterna", d.InternalNumber)
	e.Text("InformacionAdicionalEmisor", d.Notes)
	e.date("FechaEmision", d.IssueDate)
	e.Close("Emisor")
}

func (d *Document) emitBuyer(e emitter) {
	b := &d.Buyer
	e.Open("Comprador")
	e.Text("RNCComprador", b.TaxID)
	e.Text("IdentificadorExtranjero", b.ForeignID)
	e.Text("RazonSocialComprador", b.LegalName)
	e.Text("ContactoComprador", b.Contact)
	e.Text("CorreoComprador", b.Email)
	e.Text("DireccionComprador", b.Address)
	e.Text("MunicipioComprador", b.Municipality)
	e.Text("ProvinciaComprador", b.Province)
	e.Text("NumeroOrdenCompra", b.PurchaseOrder)
	e.Text("InformacionAdicionalComprador", b.Information)
	e.Close("Comprador")
}

func (t *Totals) emit(e emitter) {
	e.Open("Totales")
	t.emitBases(e)
	for _, rate := range [...]struct {
		name, percent string
		bucket        fiscal.Bucket
	}{{"ITBIS1", "18", t.I1}, {"ITBIS2", "16", t.I2}, {"ITBIS3", "0", t.I3}} {
		if rate.bucket.Present {
			e.Text(rate.name, rate.percent)
		}
	}
	t.emitTaxes(e)
	if len(t.Additional) > 0 {
		e.amountIf(!t.AdditionalTax.IsZero(), "MontoImpuestoAdicional", t.AdditionalTax)
		e.Open("ImpuestosAdicionales")
		for _, tax := range t.Additional {
			e.Open("ImpuestoAdicional")
			e.Text("TipoImpuesto", tax.Code)
			e.Text("TasaImpuestoAdicional", tax.Rate.String())
			// The schema does not allow an amount of 0.00.
			e.amountIf(!tax.Amount.IsZero(), "OtrosImpuestosAdicionales", tax.Amount)
			e.Close("ImpuestoAdicional")
		}
		e.Close("ImpuestosAdicionales")
	}
	e.amount("MontoTotal", t.Total)
	e.amountIf(t.Withheld, "TotalITBISRetenido", t.ITBISWithheld)
	e.amountIf(t.Withheld, "TotalISRRetencion", t.IncomeTaxWithheld)
	e.Close("Totales")
}

// emitBases writes the totals that come before the rates, in a document and in a
// summary.
func (t *Totals) emitBases(e emitter) {
	e.amountIf(t.taxed(), "MontoGravadoTotal", t.Taxable)
	e.amountIf(t.I1.Present, "MontoGravadoI1", t.I1.Base)
	e.amountIf(t.I2.Present, "MontoGravadoI2", t.I2.Base)
	e.amountIf(t.I3.Present, "MontoGravadoI3", t.I3.Base)
	e.amountIf(t.Exempt.Present, "MontoExento", t.Exempt.Base)
}

// emitTaxes writes the totals that come after the rates, in a document and in a
// summary.
func (t *Totals) emitTaxes(e emitter) {
	e.amountIf(t.taxed(), "TotalITBIS", t.ITBIS)
	e.amountIf(t.I1.Present, "TotalITBIS1", t.I1.ITBIS)
	e.amountIf(t.I2.Present, "TotalITBIS2", t.I2.ITBIS)
	e.amountIf(t.I3.Present, "TotalITBIS3", t.I3.ITBIS)
}
