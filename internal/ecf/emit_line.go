package ecf

import (
	"strconv"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// appendLine writes a line. It writes all the tags between two values at once,
// because a document may have a thousand lines.
func appendLine(b []byte, number int, l *Line) []byte {
	b = append(b, "<Item><NumeroLinea>"...)
	b = strconv.AppendInt(b, int64(number), 10)
	b = append(b, "</NumeroLinea>"...)
	if l.SKU != "" {
		b = append(b, "<TablaCodigosItem><CodigosItem><TipoCodigo>Interna</TipoCodigo><CodigoItem>"...)
		b = xmlsig.AppendText(b, l.SKU)
		b = append(b, "</CodigoItem></CodigosItem></TablaCodigosItem>"...)
	}
	b = append(b, "<IndicadorFacturacion>"...)
	b = strconv.AppendInt(b, int64(l.Indicator), 10)
	b = append(b, "</IndicadorFacturacion>"...)
	if l.Withheld {
		b = append(b, "<Retencion><IndicadorAgenteRetencionoPercepcion>1</IndicadorAgenteRetencionoPercepcion><MontoITBISRetenido>"...)
		b = appendAmount(b, l.ITBISWithheld)
		b = append(b, "</MontoITBISRetenido><MontoISRRetenido>"...)
		b = appendAmount(b, l.IncomeTaxWithheld)
		b = append(b, "</MontoISRRetenido></Retencion>"...)
	}
	b = append(b, "<NombreItem>"...)
	b = xmlsig.AppendText(b, l.Name)
	b = append(b, "</NombreItem><IndicadorBienoServicio>"...)
	b = append(b, kindCode(l.ItemKind)...)
	b = append(b, "</IndicadorBienoServicio>"...)
	if l.Description != "" {
		b = append(b, "<DescripcionItem>"...)
		b = xmlsig.AppendText(b, l.Description)
		b = append(b, "</DescripcionItem>"...)
	}
	b = append(b, "<CantidadItem>"...)
	b = appendAmount(b, l.Quantity)
	b = append(b, "</CantidadItem>"...)
	if l.Unit != 0 {
		b = append(b, "<UnidadMedida>"...)
		b = strconv.AppendInt(b, int64(l.Unit), 10)
		b = append(b, "</UnidadMedida>"...)
	}
	b = append(b, "<PrecioUnitarioItem>"...)
	b = appendAmount(b, l.Price)
	b = append(b, "</PrecioUnitarioItem>"...)
	b = appendDiscount(b, l)
	if len(l.AdditionalTaxes) > 0 {
		b = append(b, "<TablaImpuestoAdicional>"...)
		for _, code := range l.AdditionalTaxes {
			b = append(b, "<ImpuestoAdicional><TipoImpuesto>"...)
			b = xmlsig.AppendText(b, code)
			b = append(b, "</TipoImpuesto></ImpuestoAdicional>"...)
		}
		b = append(b, "</TablaImpuestoAdicional>"...)
	}
	b = append(b, "<MontoItem>"...)
	b = appendAmount(b, l.Amount)
	return append(b, "</MontoItem></Item>"...)
}

// appendDiscount writes the discount as the sum and as its only part, because the
// authority refuses one without the other.
func appendDiscount(b []byte, l *Line) []byte {
	if l.Discount.IsZero() {
		return b
	}
	b = append(b, "<DescuentoMonto>"...)
	b = appendAmount(b, l.Discount)
	b = append(b, "</DescuentoMonto><TablaSubDescuento><SubDescuento><TipoSubDescuento>"...)
	if l.DiscountPercent.IsZero() {
		b = append(b, "$</TipoSubDescuento>"...)
	} else {
		b = append(b, "%</TipoSubDescuento><SubDescuentoPorcentaje>"...)
		b = appendAmount(b, l.DiscountPercent)
		b = append(b, "</SubDescuentoPorcentaje>"...)
	}
	b = append(b, "<MontoSubDescuento>"...)
	b = appendAmount(b, l.Discount)
	return append(b, "</MontoSubDescuento></SubDescuento></TablaSubDescuento>"...)
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
