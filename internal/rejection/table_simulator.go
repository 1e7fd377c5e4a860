package rejection

import "github.com/fiscalhub/fiscalhub/internal/lang"

// simulatorCodes explains the codes of the simulator. The authority rejects for the
// same reasons, with codes that it does not publish.
func simulatorCodes(w wording) []explanation {
	return []explanation{
		{"90001", lang.Messagef(
			"The signature of the document is not valid.",
			"La firma digital del comprobante no es válida."),
			lang.Messagef(
				"The operator checks the certificate (fiscalhub certificate list) and runs fiscalhub doctor. Then %s",
				"El operador revisa el certificado (fiscalhub certificate list) y ejecuta fiscalhub doctor. Luego %s", w.sale)},
		{"90002", lang.Messagef(
			"The certificate is not trusted, has expired, or was not valid at the time of the signature.",
			"El certificado no es de confianza, está vencido o no era válido en el momento de la firma."),
			lang.Messagef(
				"The operator imports a valid certificate (fiscalhub certificate import). Then %s",
				"El operador importa un certificado vigente (fiscalhub certificate import). Luego %s", w.sale)},
		{"90003", lang.Messagef(
			"The document does not have the structure that the authority's schema asks for.",
			"El comprobante no cumple la estructura (XSD) que exige la DGII."),
			lang.Messagef(
				"Read the element that the message names. If you sent its value, correct it; otherwise report the document to the operator. Then %s",
				"Lea el elemento que indica el mensaje. Si usted envió ese valor, corríjalo; si no, informe el comprobante al operador. Luego %s", w.sale)},
		{"90004", lang.Messagef(
			"The issuer is unknown or not active, was no electronic issuer on the date of issue, or is none at all.",
			"El emisor no existe o no está activo, no era emisor electrónico en la fecha de emisión, o no lo es."),
			lang.Messagef(
				"The taxpayer asks the authority about its registration as an electronic issuer. When it is in order, %s",
				"El contribuyente consulta a la DGII sobre su registro como emisor electrónico. Cuando esté en orden, %s", w.sale)},
		{"90005", lang.Messagef(
			"The person of the certificate may not sign for this issuer.",
			"La persona del certificado no está delegada para firmar por este emisor."),
			lang.Messagef(
				"The taxpayer delegates this person in the virtual office of the authority, or the operator imports the certificate of a delegated person. Then %s",
				"El contribuyente delega a esta persona en la Oficina Virtual de la DGII, o el operador importa el certificado de una persona delegada. Luego %s", w.sale)},
		{"90011", lang.Messagef(
			"The document went to the wrong service: consumer invoices below 250,000.00 are sent as a summary, all others in full.",
			"El comprobante se envió al servicio equivocado: las facturas de consumo menores de 250,000.00 se envían como resumen; las demás, completas."),
			lang.Messagef(
				"The service chooses the way itself, so report the document to the operator. To issue the sale, %s",
				"El servicio elige la vía por su cuenta: informe el comprobante al operador. Para emitir la venta, %s", w.sale)},
		{"90012", lang.Messagef(
			"The date of issue or the time of the signature is in the future.",
			"La fecha de emisión o la hora de la firma está en el futuro."),
			lang.Messagef(
				"Check issue_date. If it is right, the operator checks the clock of the server (fiscalhub doctor). Then %s",
				"Revise issue_date. Si es correcta, el operador revisa el reloj del servidor (fiscalhub doctor). Luego %s", w.sale)},
		{"90014", lang.Messagef(
			"The buyer is missing: an invoice of type 31, and one of type 32 of 250,000.00 or more, needs the RNC or cédula and the name.",
			"Falta el comprador: una factura tipo 31, o tipo 32 de 250,000.00 o más, requiere el RNC o la cédula y el nombre."),
			lang.Messagef(
				"Send buyer.tax_id and buyer.legal_name: %s",
				"Envíe buyer.tax_id y buyer.legal_name: %s", w.sale)},
		{"90015", lang.Messagef(
			"The document is marked for deferred sending, and the issuer is not authorised for it.",
			"El comprobante está marcado para envío diferido y el emisor no tiene autorización."),
			lang.Messagef(
				"The service never marks documents so. Report the document to the operator. To issue the sale, %s",
				"El servicio nunca marca los comprobantes así. Informe el comprobante al operador. Para emitir la venta, %s", w.sale)},
		{"90016", lang.Messagef(
			"The invoice is on credit, and its due date is missing or before the date of issue.",
			"La factura es a crédito y su fecha límite de pago falta o es anterior a la fecha de emisión."),
			lang.Messagef(
				"Send a due_date that is not before issue_date: %s",
				"Envíe un due_date que no sea anterior a issue_date: %s", w.sale)},
		{"90017", lang.Messagef(
			"The amount of a line differs by more than 1.00 from price × quantity less its discount.",
			"El monto de una línea difiere en más de 1.00 de precio × cantidad menos su descuento."),
			lang.Messagef(
				"Check quantity, price and discount of the line. %s",
				"Revise cantidad, precio y descuento de la línea. %s", w.next)},
		{"90099", lang.Messagef(
			"The simulator gave this verdict because the last digits of the e-NCF ask for it.",
			"El simulador dio este resultado porque los últimos dígitos del e-NCF lo piden."),
			lang.Messagef(
				"Nothing: this is a manual trial. The authority never sends this code.",
				"Nada: es una prueba manual. La DGII nunca envía este código.")},
	}
}
