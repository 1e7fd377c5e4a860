package ecf

import "github.com/fiscalhub/fiscalhub/internal/fiscal"

// emit writes a line with its number.
func (l *Line) emit(e emitter, number int) {
	e.Open("Item")
	e.integer("NumeroLinea", number)
	if l.SKU != "" {
		e.Open("TablaCodigosItem")
		e.Open("CodigosItem")
		e.Element("TipoCodigo", "Interna")
		e.Element("CodigoItem", l.SKU)
		e.Close("CodigosItem")
		e.Close("TablaCodigosItem")
	}
	e.integer("IndicadorFacturacion", int(l.Indicator))
	if l.Withheld {
		e.Open("Retencion")
		e.Element("IndicadorAgenteRetencionoPercepcion", "1")
		e.amount("MontoITBISRetenido", l.ITBISWithheld)
		e.amount("MontoISRRetenido", l.IncomeTaxWithheld)
		e.Close("Retencion")
	}
	e.Element("NombreItem", l.Name)
	e.Element("IndicadorBienoServicio", kindCode(l.ItemKind))
	if l.Description != "" {
		e.Element("DescripcionItem", l.Description)
	}
	e.amount("CantidadItem", l.Quantity)
	if l.Unit != 0 {
		e.integer("UnidadMedida", l.Unit)
	}
	e.amount("PrecioUnitarioItem", l.Price)
	l.emitDiscount(e)
	if len(l.AdditionalTaxes) > 0 {
		e.Open("TablaImpuestoAdicional")
		for _, code := range l.AdditionalTaxes {
			e.Open("ImpuestoAdicional")
			e.Element("TipoImpuesto", code)
			e.Close("ImpuestoAdicional")
		}
		e.Close("TablaImpuestoAdicional")
	}
	e.amount("MontoItem", l.Amount)
	e.Close("Item")
}

// emitDiscount writes the discount as the sum and as its only part, because the
// authority refuses one without the other.
func (l *Line) emitDiscount(e emitter) {
	if l.Discount.IsZero() {
		return
	}
	e.amount("DescuentoMonto", l.Discount)
	e.Open("TablaSubDescuento")
	e.Open("SubDescuento")
	if l.DiscountPercent.IsZero() {
		e.Element("TipoSubDescuento", "$")
	} else {
		e.Element("TipoSubDescuento", "%")
		e.amount("SubDescuentoPorcentaje", l.DiscountPercent)
	}
	e.amount("MontoSubDescuento", l.Discount)
	e.Close("SubDescuento")
	e.Close("TablaSubDescuento")
}

func kindCode(k fiscal.ItemKind) string {
	if k == fiscal.Service {
		return "2"
	}
	return "1"
}

// lineSize returns about how many bytes a line takes, so that the buffer of the
// document need not grow.
func lineSize(l *fiscal.Line) int {
	size := 400 + len(l.Description) + len(l.SKU)
	if len(l.Description) > maxName {
		size += maxName + 40
	}
	if l.SKU != "" {
		size += 150
	}
	if !l.DiscountAmount.IsZero() {
		size += 260
	}
	if !l.ITBISWithheld.IsZero() || !l.IncomeTaxWithheld.IsZero() {
		size += 220
	}
	return size + 120*len(l.AdditionalTaxes)
}
