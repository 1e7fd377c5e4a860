package rejection

import (
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// table returns what is known of the authority's codes, in the words for a reader.
func table(w wording) []explanation {
	return append(authorityCodes(w), simulatorCodes(w)...)
}

// A wording is how advice ends.
type wording struct {
	sale lang.Message // how a sale is issued after a rejection
	next lang.Message // what to do after a remark on a document that may be valid
}

// forPrograms is the wording for people who write programs: they use the API, and read the
// advice before they know the status.
func forPrograms() wording { return wording{newSale(), nextSales()} }

// forPeople is the wording for the page of a document that has a status and a button.
func forPeople(status fiscal.Status) wording {
	sale := lang.Messagef("issue the sale again with the button of this page.", "emita la venta otra vez con el botón de esta página.")
	if status == fiscal.AcceptedConditional {
		return wording{sale, lang.Messagef(
			"The document is valid: do not issue the sale again, and correct the cause for the next invoices.",
			"El comprobante es válido: no emita la venta otra vez y corrija la causa en las próximas facturas.")}
	}
	return wording{sale, lang.Messagef("Correct the data and %s", "Corrija los datos y %s", sale)}
}

// newSale is how a sale is issued after a rejection.
func newSale() lang.Message {
	return lang.Messagef(
		"create a new invoice with a new external_id and a new Idempotency-Key.",
		"cree una factura nueva con un external_id nuevo y un Idempotency-Key nuevo.")
}

// nextSales is what to do after a remark on a document that stays valid.
func nextSales() lang.Message {
	return lang.Messagef(
		"If the status is accepted_conditional, the document is valid: do not issue the sale again, and correct the cause for the next invoices. If it is rejected, correct the data and %s",
		"Si el estado es accepted_conditional, el comprobante es válido: no emita la venta otra vez y corrija la causa en las próximas facturas. Si es rejected, corrija los datos y %s", newSale())
}

func authorityCodes(w wording) []explanation {
	return []explanation{
		{"2", lang.Messagef(
			"The authority rejected the document.",
			"La DGII rechazó el comprobante."),
			lang.Messagef(
				"Read the other messages for the reason. Then correct the data and %s",
				"Lea el motivo en los demás mensajes. Luego corrija los datos y %s", w.sale)},
		{"4", lang.Messagef(
			"The authority accepted the document with remarks. It is valid.",
			"La DGII aceptó el comprobante con observaciones. Es válido."),
			lang.Messagef(
				"Do not issue the sale again. Correct the cause of the remarks for the next invoices.",
				"No emita la venta otra vez. Corrija la causa de las observaciones en las próximas facturas.")},
		{"64", lang.Messagef(
			"The document breaks a rule of the authority. The authority sends no text with this code.",
			"El comprobante incumple una regla de la DGII. La DGII no envía texto con este código."),
			lang.Messagef(
				"Compare the amounts, the type and the buyer with the sale. If you find no error, ask the authority with the e-NCF and the track id. Then %s",
				"Compare los montos, el tipo y el comprador con la venta. Si no encuentra el error, consulte a la DGII con el e-NCF y el track id. Luego %s", w.sale)},
		{"75", lang.Messagef(
			"The number of the consumer invoice is not authorised, was used before, or its summary repeats a security code that was rejected.",
			"La secuencia de la factura de consumo no está autorizada, ya fue utilizada, o su resumen repite un código de seguridad rechazado."),
			lang.Messagef(
				"The operator compares the number range with the one that the authority granted (fiscalhub range list). When the range is right, %s",
				"El operador compara el rango de secuencias con el que autorizó la DGII (fiscalhub range list). Cuando el rango esté correcto, %s", w.sale)},
		{"135", lang.Messagef(
			"The number (e-NCF) is not authorised for this issuer, was annulled, or was used before.",
			"La secuencia (e-NCF) no está autorizada para este emisor, fue anulada o ya fue utilizada."),
			lang.Messagef(
				"The operator compares the number range with the one that the authority granted (fiscalhub range list), and checks whether another system issues numbers of the same range. When the range is right, %s",
				"El operador compara el rango de secuencias con el que autorizó la DGII (fiscalhub range list) y verifica si otro sistema emite comprobantes del mismo rango. Cuando el rango esté correcto, %s", w.sale)},
		{"145", lang.Messagef(
			"The expiry date of the number range is wrong, or the range has expired.",
			"La fecha de vencimiento de la secuencia no es correcta, o la secuencia está vencida."),
			lang.Messagef(
				"The operator adds the range again with the expiry date that the authority granted (fiscalhub range add --expires), or asks the authority for a new range. Then %s",
				"El operador agrega de nuevo el rango con la fecha de vencimiento que autorizó la DGII (fiscalhub range add --expires), o solicita un rango nuevo a la DGII. Luego %s", w.sale)},
		{"156", lang.Messagef(
			"The indicator of a credit note (IndicadorNotaCredito) is not valid.",
			"El indicador de nota de crédito (IndicadorNotaCredito) no es válido."),
			lang.Messagef(
				"This service issues no credit notes, so report the document to the operator. To issue the sale, %s",
				"Este servicio no emite notas de crédito: informe el comprobante al operador. Para emitir la venta, %s", w.sale)},
		{"176", lang.Messagef(
			"The document has taxed lines and does not say whether their amounts include ITBIS (IndicadorMontoGravado).",
			"El comprobante tiene líneas gravadas y no indica si sus montos incluyen el ITBIS (IndicadorMontoGravado)."),
			lang.Messagef(
				"The service writes this field itself, so report the document to the operator. To issue the sale, %s",
				"El servicio escribe este campo por su cuenta: informe el comprobante al operador. Para emitir la venta, %s", w.sale)},
		{"260", lang.Messagef(
			"The withheld ITBIS (MontoITBISRetenido) is missing or not valid.",
			"El ITBIS retenido (MontoITBISRetenido) falta o no es válido."),
			lang.Messagef(
				"Check estimated_withholdings: send both amounts, and 0 where nothing is withheld. Then %s",
				"Revise estimated_withholdings: envíe ambos montos, y 0 donde no se retiene nada. Luego %s", w.sale)},
		{"1385", lang.Messagef(
			"The authority does not know the RNC or cédula of the buyer (RNCComprador).",
			"La DGII no reconoce el RNC o la cédula del comprador (RNCComprador)."),
			lang.Messagef(
				"Ask the buyer for the right number and correct it in your system. %s",
				"Pida al comprador el número correcto y corríjalo en su sistema. %s", w.next)},
		{"1920", lang.Messagef(
			"The sum of the taxed amounts (MontoGravadoTotal) does not match the lines.",
			"La suma de los montos gravados (MontoGravadoTotal) no coincide con el detalle."),
			lang.Messagef(
				"Check quantities, prices, discounts and rates of the lines. %s",
				"Revise cantidades, precios, descuentos y tasas de las líneas. %s", w.next)},
		{"1934", lang.Messagef(
			"The amount taxed at 18 % (MontoGravadoI1) does not match the lines.",
			"El monto gravado al 18 % (MontoGravadoI1) no coincide con el detalle."),
			lang.Messagef(
				"Check which lines have ITBIS of 18, their prices and their discounts. %s",
				"Revise cuáles líneas llevan ITBIS de 18, sus precios y sus descuentos. %s", w.next)},
		{"2020", lang.Messagef(
			"The discount of a line and its breakdown do not match (DescuentoMonto, TablaSubDescuento).",
			"El descuento de una línea y su desglose no coinciden (DescuentoMonto, TablaSubDescuento)."),
			lang.Messagef(
				"The service writes both fields itself, so report the document to the operator. To issue the sale, %s",
				"El servicio escribe ambos campos por su cuenta: informe el comprobante al operador. Para emitir la venta, %s", w.sale)},
		{"3205", lang.Messagef(
			"The total (MontoTotal) does not match the lines and the taxes.",
			"El monto total (MontoTotal) no coincide con el detalle y los impuestos."),
			lang.Messagef(
				"Check quantities, prices, discounts and taxes of the lines. %s",
				"Revise cantidades, precios, descuentos e impuestos de las líneas. %s", w.next)},
		{"3243", lang.Messagef(
			"The name of the file that was sent is not the RNC and the e-NCF of the document.",
			"El nombre del archivo enviado no es el RNC y el e-NCF del comprobante."),
			lang.Messagef(
				"The service names the file itself, so report the document to the operator. To issue the sale, %s",
				"El servicio asigna el nombre del archivo: informe el comprobante al operador. Para emitir la venta, %s", w.sale)},
	}
}
