package ecf

import (
	"errors"
	"fmt"
	"iter"
	"strconv"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// ErrNotDocument means that the XML is neither an e-CF of type 31 or 32 nor a
// summary.
var ErrNotDocument = errors.New("ecf: not an e-CF of type 31 or 32, nor an RFCE")

// Read returns the content and the security code of a signed document. The
// security code of a summary (RFCE) is that of the invoice that it summarises,
// and a summary has no lines. Read uses only the verified part of the document.
func Read(v *xmlsig.Verified) (*Document, SecurityCode, error) {
	root := v.Root()
	value := v.Value
	if root.Name() == "RFCE" {
		value = root.Child("Encabezado").Child("CodigoSeguridadeCF").Text()
	}
	d, err := read(root)
	if err != nil {
		return nil, SecurityCode{}, err
	}
	code, err := NewSecurityCode(value)
	if err != nil {
		return nil, SecurityCode{}, err
	}
	return d, code, nil
}

// read is the reverse of emit.
func read(root xmlsig.Element) (*Document, error) {
	if root.Name() != "ECF" && root.Name() != "RFCE" {
		return nil, ErrNotDocument
	}
	var r reader
	head := root.Child("Encabezado")
	d := &Document{}
	r.head(d, head.Child("IdDoc"))
	if r.err != nil {
		return nil, r.err
	}
	r.issuer(d, head.Child("Emisor"))
	r.buyer(d, head.Child("Comprador"))
	r.totals(d, head.Child("Totales"))
	if !head.Child("OtraMoneda").IsZero() || !root.Child("DescuentosORecargos").IsZero() {
		// These elements change the meaning of the other amounts.
		r.fail("documents in another currency, or with discounts on their total, are not supported")
	}
	if root.Name() == "RFCE" {
		return d, r.err
	}
	for item := range r.children(root.Child("DetallesItems"), "Item") {
		d.Lines = append(d.Lines, r.line(item))
	}
	signed := root.Child("FechaHoraFirma")
	if d.SignedAt = fiscal.ParseDGIITime(signed.Text()); d.SignedAt.IsZero() {
		r.fail("FechaHoraFirma: must be a time: dd-MM-yyyy HH:mm:ss")
	}
	return d, r.err
}

// A reader reads values and keeps the first failure.
type reader struct{ err error }

func (r *reader) fail(message string) {
	if r.err == nil {
		r.err = errors.New("ecf: read: " + message)
	}
}

// children returns the children of an element, which must all have one name, so
// that an element of another name or namespace is never read as one of the list.
func (r *reader) children(parent xmlsig.Element, name string) iter.Seq[xmlsig.Element] {
	return func(yield func(xmlsig.Element) bool) {
		for e := range parent.Children() {
			if e.Name() != name {
				r.fail(parent.Name() + ": must have only elements " + name)
				return
			}
			if !yield(e) {
				return
			}
		}
	}
}

func (r *reader) amount(parent xmlsig.Element, name string) fiscal.Decimal {
	e := parent.Child(name)
	if e.IsZero() {
		return fiscal.Decimal{}
	}
	d, ok := parseAmount(e.Text())
	if !ok {
		r.fail(name + ": must be a number")
	}
	return d
}

func (r *reader) date(parent xmlsig.Element, name string) fiscal.Date {
	e := parent.Child(name)
	if e.IsZero() {
		return fiscal.Date{}
	}
	d := fiscal.ParseDGIIDate(e.Text())
	if d.IsZero() {
		r.fail(name + ": must be a date: dd-MM-yyyy")
	}
	return d
}

func (r *reader) head(d *Document, id xmlsig.Element) {
	number, err := fiscal.ParseENCF(id.Child("eNCF").Text())
	if err != nil || string(number.Type()) != id.Child("TipoeCF").Text() {
		r.err = fmt.Errorf("%w: its eNCF and TipoeCF do not agree", ErrNotDocument)
		return
	}
	d.Number = Number{number, r.date(id, "FechaVencimientoSecuencia")}
	d.Inclusive = id.Child("IndicadorMontoGravado").Text() == "1"
	d.Issuer.IncomeType = id.Child("TipoIngresos").Text()
	d.DueDate = r.date(id, "FechaLimitePago")
	d.PaymentTerm = id.Child("TerminoPago").Text()
	switch id.Child("TipoPago").Text() {
	case "1":
		d.PaymentType = fiscal.Cash
	case "2":
		d.PaymentType = fiscal.Credit
	case "3":
		d.PaymentType = fiscal.FreeOfCharge
	default:
		r.fail("TipoPago: must be 1, 2 or 3")
	}
}

func (r *reader) issuer(d *Document, e xmlsig.Element) {
	i := &d.Issuer
	i.RNC = e.Child("RNCEmisor").Text()
	i.LegalName = e.Child("RazonSocialEmisor").Text()
	i.TradeName = e.Child("NombreComercial").Text()
	i.Branch = e.Child("Sucursal").Text()
	i.Address = e.Child("DireccionEmisor").Text()
	i.Municipality = e.Child("Municipio").Text()
	i.Province = e.Child("Provincia").Text()
	for phone := range r.children(e.Child("TablaTelefonoEmisor"), "TelefonoEmisor") {
		i.Phones = append(i.Phones, phone.Text())
	}
	i.Email = e.Child("CorreoEmisor").Text()
	i.Website = e.Child("WebSite").Text()
	i.EconomicActivity = e.Child("ActividadEconomica").Text()
	d.InternalNumber = e.Child("NumeroFacturaInterna").Text()
	d.Notes = e.Child("InformacionAdicionalEmisor").Text()
	d.IssueDate = r.date(e, "FechaEmision")
	if !fiscal.IsRNC(i.RNC) || i.LegalName == "" || d.IssueDate.IsZero() {
		r.fail("Emisor: must have RNCEmisor, RazonSocialEmisor and FechaEmision")
	}
}

func (r *reader) buyer(d *Document, e xmlsig.Element) {
	d.Buyer = Buyer{
		TaxID:         e.Child("RNCComprador").Text(),
		ForeignID:     e.Child("IdentificadorExtranjero").Text(),
		LegalName:     e.Child("RazonSocialComprador").Text(),
		Contact:       e.Child("ContactoComprador").Text(),
		Email:         e.Child("CorreoComprador").Text(),
		Address:       e.Child("DireccionComprador").Text(),
		Municipality:  e.Child("MunicipioComprador").Text(),
		Province:      e.Child("ProvinciaComprador").Text(),
		PurchaseOrder: e.Child("NumeroOrdenCompra").Text(),
		Information:   e.Child("InformacionAdicionalComprador").Text(),
	}
	if d.Buyer.TaxID != "" && !fiscal.IsRNC(d.Buyer.TaxID) {
		r.fail("RNCComprador: must have 9 or 11 digits")
	}
}

func (r *reader) totals(d *Document, e xmlsig.Element) {
	t := &d.Totals
	bucket := func(base, itbis string) fiscal.Bucket {
		return fiscal.Bucket{Present: !e.Child(base).IsZero(), Base: r.amount(e, base), ITBIS: r.amount(e, itbis)}
	}
	t.I1 = bucket("MontoGravadoI1", "TotalITBIS1")
	t.I2 = bucket("MontoGravadoI2", "TotalITBIS2")
	t.I3 = bucket("MontoGravadoI3", "TotalITBIS3")
	t.Exempt = bucket("MontoExento", "")
	t.Taxable = r.amount(e, "MontoGravadoTotal")
	t.ITBIS = r.amount(e, "TotalITBIS")
	t.AdditionalTax = r.amount(e, "MontoImpuestoAdicional")
	for tax := range r.children(e.Child("ImpuestosAdicionales"), "ImpuestoAdicional") {
		t.Additional = append(t.Additional, AdditionalTax{
			Code: tax.Child("TipoImpuesto").Text(),
			Rate: r.amount(tax, "TasaImpuestoAdicional"),
			Amount: r.amount(tax, "MontoImpuestoSelectivoConsumoEspecifico").
				Add(r.amount(tax, "MontoImpuestoSelectivoConsumoAdvalorem")).
				Add(r.amount(tax, "OtrosImpuestosAdicionales")),
		})
	}
	if e.Child("MontoTotal").IsZero() {
		r.fail("Totales: must have MontoTotal")
	}
	t.Total = r.amount(e, "MontoTotal")
	t.Withheld = !e.Child("TotalITBISRetenido").IsZero() || !e.Child("TotalISRRetencion").IsZero()
	t.ITBISWithheld = r.amount(e, "TotalITBISRetenido")
	t.IncomeTaxWithheld = r.amount(e, "TotalISRRetencion")
}

func (r *reader) line(e xmlsig.Element) Line {
	l := Line{
		SKU:         e.Child("TablaCodigosItem").Child("CodigosItem").Child("CodigoItem").Text(),
		Name:        e.Child("NombreItem").Text(),
		Description: e.Child("DescripcionItem").Text(),
		ItemKind:    fiscal.Product,
		Quantity:    r.amount(e, "CantidadItem"),
		Price:       r.amount(e, "PrecioUnitarioItem"),
		Discount:    r.amount(e, "DescuentoMonto"),
		Amount:      r.amount(e, "MontoItem"),
	}
	switch indicator, err := strconv.Atoi(e.Child("IndicadorFacturacion").Text()); {
	case err != nil || indicator < int(fiscal.Taxed18) || indicator > int(fiscal.Exempt):
		r.fail("IndicadorFacturacion: must be 1, 2, 3 or 4")
	default:
		l.Indicator = fiscal.Indicator(indicator)
	}
	if e.Child("IndicadorBienoServicio").Text() == "2" {
		l.ItemKind = fiscal.Service
	}
	if unit := e.Child("UnidadMedida"); !unit.IsZero() {
		l.Unit, _ = strconv.Atoi(unit.Text()) // 0, which has no name, when it is not a number
	}
	if table := e.Child("TablaSubDescuento"); !table.IsZero() {
		l.DiscountPercent = r.amount(table.Child("SubDescuento"), "SubDescuentoPorcentaje")
	}
	for tax := range r.children(e.Child("TablaImpuestoAdicional"), "ImpuestoAdicional") {
		l.AdditionalTaxes = append(l.AdditionalTaxes, tax.Child("TipoImpuesto").Text())
	}
	if withheld := e.Child("Retencion"); !withheld.IsZero() {
		l.Withheld = true
		l.ITBISWithheld = r.amount(withheld, "MontoITBISRetenido")
		l.IncomeTaxWithheld = r.amount(withheld, "MontoISRRetenido")
	}
	return l
}
