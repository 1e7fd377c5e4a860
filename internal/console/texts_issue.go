package console

import (
	"maps"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// issueTexts are the texts of the page that issues an invoice by hand.
func issueTexts() lang.Texts {
	all := lang.Texts{
		"issue.title":             lang.Text("Issue a document", "Emitir comprobante"),
		"issue.lead":              lang.Text("The document is signed and sent to the tax authority like those of your own system. An issued number cannot be taken back.", "El comprobante se firma y se envía a la DGII como los que emite su sistema. Un e-NCF emitido no se puede borrar."),
		"issue.lead_sandbox":      lang.Text("Sandbox: the result is synthetic, without a fiscal number, a signature or anything sent to the tax authority.", "Ambiente de pruebas: el resultado es sintético, sin e-NCF, firma ni envío a la DGII."),
		"issue.copy_of":           lang.Text("Copy of", "Copia de"),
		"issue.copy_text":         lang.Text("Correct what is needed before you issue: it will be another document with another number.", "Corrija lo necesario antes de emitir: será otro comprobante, con otro e-NCF."),
		"issue.template_of":       lang.Text("New sale, with the data of", "Venta nueva, con los datos de"),
		"issue.template_text":     lang.Text("It is another sale, with another identifier and another number: that document counts already and does not change.", "Es otra venta, con otro identificador y otro e-NCF: ese comprobante ya cuenta y no cambia."),
		"issue.blocked_title":     lang.Text("This sale is not issued again", "Esta venta no se emite otra vez"),
		"issue.blocked_open":      lang.Text("Open the document", "Abrir el comprobante"),
		"issue.question":          lang.Text("Issue this document?", "¿Emitir este comprobante?"),
		"issue.question_text":     lang.Text("It gets a fiscal number and is sent to the tax authority.", "Se le asignará un e-NCF y se enviará a la DGII."),
		"issue.check":             lang.Text("Check the data", "Revisar los datos"),
		"issue.open_other":        lang.Text("Open that document", "Abrir ese comprobante"),
		"issue.head":              lang.Text("The document", "Datos del comprobante"),
		"issue.buyer_more":        lang.Text("Contact and address", "Contacto y dirección"),
		"issue.lines":             lang.Text("Lines", "Detalle"),
		"issue.line":              lang.Text("Line %d", "Línea %d"),
		"issue.line_field":        lang.Text("Line %d, %s", "Línea %d, %s"),
		"issue.line_more":         lang.Text("More about the line", "Más datos de la línea"),
		"issue.add_line":          lang.Text("Add a line", "Agregar línea"),
		"issue.remove_line":       lang.Text("Remove", "Quitar"),
		"issue.remove_line_label": lang.Text("Remove line %d", "Quitar la línea %d"),
		"issue.more":              lang.Text("Terms, notes and withholdings", "Condiciones, notas y retenciones"),
		"issue.withheld":          lang.Text("Estimated withholdings", "Retenciones estimadas"),
		"issue.summary":           lang.Text("Totals and preview", "Totales y vista previa"),
		"issue.send":              lang.Text("Issue the document", "Emitir comprobante"),
		"issue.unsent":            lang.Text("The service did not get the last changes. What you wrote is still here. Try again; if your session has ended, sign in in another tab first.", "El servicio no recibió los últimos cambios. Lo que escribió sigue aquí. Inténtelo otra vez; si su sesión terminó, entre primero en otra pestaña."),
		"issue.unsent_sign_in":    lang.Text("Sign in in another tab", "Entrar en otra pestaña"),
		"issue.preview":           lang.Text("Update the preview", "Actualizar vista previa"),
		"issue.type_31":           lang.Text("31 · Fiscal credit invoice", "31 · Factura de crédito fiscal"),
		"issue.type_32":           lang.Text("32 · Consumer invoice", "32 · Factura de consumo"),
		"issue.cash":              lang.Text("Cash", "Contado"),
		"issue.credit":            lang.Text("Credit", "Crédito"),
		"issue.free":              lang.Text("Free of charge", "Gratuito"),
		"issue.product":           lang.Text("Product", "Bien"),
		"issue.itbis_18":          lang.Literal("ITBIS 18 %"),
		"issue.itbis_16":          lang.Literal("ITBIS 16 %"),
		"issue.rate_18":           lang.Literal("18 %"),
		"issue.rate_16":           lang.Literal("16 %"),
		"issue.rate_0":            lang.Literal("0 %"),
		"issue.exempt":            lang.Text("Exempt", "Exento"),
		"issue.tax_001":           lang.Text("Legal tip 10 %", "Propina legal 10 %"),
		"issue.tax_002":           lang.Literal("CDT 2 %"),
		"issue.tax_003":           lang.Text("Insurance tax 16 %", "ISC seguros 16 %"),
		"issue.tax_004":           lang.Text("Telecommunications tax 10 %", "ISC telecomunicaciones 10 %"),
		"issue.tax_005":           lang.Text("First plate 17 %", "Primera placa 17 %"),

		"issue.amount":            lang.Text("Amount", "Importe"),
		"issue.totals":            lang.Text("Totals", "Totales"),
		"issue.complete":          lang.Text("Ready to issue", "Listo para emitir"),
		"issue.blocked":           lang.Text("This taxpayer cannot issue", "Este contribuyente no puede emitir"),
		"issue.blocked_ask":       lang.Text("Ask the person who runs the service.", "Consulte a quien opera el servicio."),
		"issue.block_taxpayer":    lang.Text("The taxpayer is suspended.", "El contribuyente está suspendido."),
		"issue.block_environment": lang.Text("The environment is suspended for all taxpayers.", "El ambiente está suspendido para todos los contribuyentes."),
		"issue.missing.one":       lang.Text("1 thing is missing", "Falta 1 dato"),
		"issue.missing.many":      lang.Text("%s things are missing", "Faltan %s datos"),
		"issue.preview_title":     lang.Text("Preview", "Vista previa"),
		"issue.draft_notice":      lang.Text("Unsigned draft. This is not a fiscal document.", "Borrador sin firma. No es un comprobante fiscal."),
		"issue.no_number":         lang.Text("assigned when issued", "se asigna al emitir"),
		"issue.paper_31":          lang.Text("Electronic Fiscal Credit Invoice", "Factura de Crédito Fiscal Electrónica"),
		"issue.paper_32":          lang.Text("Electronic Consumer Invoice", "Factura de Consumo Electrónica"),
		"issue.paper_buyer":       lang.Text("Customer", "Cliente"),
		"issue.paper_taxes":       lang.Text("Taxes", "Impuestos"),
		"issue.tax_id_good":       lang.Text("Format and check digit are right", "Formato y dígito verificador correctos"),
		"issue.tax_id_warn":       lang.Text("The check digit does not match: verify the number", "El dígito verificador no corresponde: revise el número"),
		"issue.tax_id_bad":        lang.Text("An RNC has 9 digits and a cédula 11", "Un RNC tiene 9 dígitos y una cédula 11"),
		"issue.tax_id_foreign":    lang.Text("Identifier of a foreigner", "Identificador de extranjero"),

		"issue.no_taxpayer": lang.Text("Choose the taxpayer who issues.", "Elija el contribuyente que emite."),
		"issue.suspended":   lang.Text("The taxpayer or the environment is suspended and cannot issue. Nothing was issued. Ask the person who runs the service.", "El contribuyente o el ambiente está suspendido y no puede emitir. No se emitió nada. Consulte a quien opera el servicio."),
		"issue.not_ready":   lang.Text("The taxpayer cannot issue yet: %s Nothing was issued.", "El contribuyente aún no puede emitir: %s No se emitió nada."),
		"issue.taken":       lang.Text("Another document already has this identifier. Enter a new one, or open that document.", "Otro comprobante ya tiene este identificador. Escriba uno nuevo, o abra ese comprobante."),
		"issue.mismatch":    lang.Text("This form has already issued a document, and now its data differ. Look at the issued document; if you send again, a new one is issued.", "Este formulario ya emitió un comprobante y ahora tiene otros datos. Revise el comprobante emitido; si envía otra vez, se emitirá uno nuevo."),
		"done.issue.sent":   lang.Text("The document is registered. This page shows its progress.", "El comprobante quedó registrado. Esta página muestra su avance."),
	}
	maps.Copy(all, invoiceFieldTexts())
	maps.Copy(all, problemTexts())
	return all
}

// invoiceFieldTexts are the labels of the fields of an invoice, by their path without
// indexes. A field without a label has no control.
func invoiceFieldTexts() lang.Texts {
	return lang.Texts{
		"form.field.taxpayer":       lang.Text("Taxpayer", "Contribuyente"),
		"form.field.ecf_type":       lang.Text("Type of document", "Tipo de comprobante"),
		"form.field.external_id":    lang.Text("Own identifier", "Identificador interno"),
		"form.field.issue_date":     lang.Text("Date of issue", "Fecha de emisión"),
		"form.field.due_date":       lang.Text("Due date", "Fecha de vencimiento"),
		"form.field.payment_type":   lang.Text("Payment", "Forma de pago"),
		"form.field.language":       lang.Text("Language of the printed page", "Idioma de la impresión"),
		"form.field.purchase_order": lang.Text("Purchase order", "Orden de compra"),
		"form.field.payment_terms":  lang.Text("Payment terms", "Condiciones de pago"),
		"form.field.notes":          lang.Text("Notes", "Notas"),

		"form.field.buyer.legal_name":                lang.Text("Legal name", "Nombre o razón social"),
		"form.field.buyer.tax_id":                    lang.Text("RNC or cédula", "RNC o cédula"),
		"form.field.buyer.email":                     lang.Text("Email", "Correo electrónico"),
		"form.field.buyer.phone":                     lang.Text("Phone", "Teléfono"),
		"form.field.buyer.address.line1":             lang.Text("Address", "Dirección"),
		"form.field.buyer.address.line2":             lang.Text("Address, second line", "Dirección, segunda línea"),
		"form.field.buyer.address.city":              lang.Text("City", "Ciudad"),
		"form.field.buyer.address.province_or_state": lang.Text("Province or state", "Provincia"),
		"form.field.buyer.address.postal_code":       lang.Text("Postal code", "Código postal"),
		"form.field.buyer.address.country_code":      lang.Text("Country (two letters)", "País (dos letras)"),

		"form.field.lines.description":       lang.Text("Description", "Descripción"),
		"form.field.lines.quantity":          lang.Text("Quantity", "Cantidad"),
		"form.field.lines.unit_price":        lang.Text("Price", "Precio"),
		"form.field.lines.billing_indicator": lang.Literal("ITBIS"),
		"form.field.lines.discount.value":    lang.Text("Disc. %", "Desc. %"),
		"form.field.lines.item_kind":         lang.Text("Product or service", "Bien o servicio"),
		"form.field.lines.unit":              lang.Text("Unit", "Unidad"),
		"form.field.lines.sku":               lang.Text("Item code", "Código del artículo"),
		"form.field.lines.taxes.code":        lang.Text("Another tax", "Otro impuesto"),

		"form.field.estimated_withholdings.income_tax_amount":       lang.Text("Income tax withheld", "ISR retenido"),
		"form.field.estimated_withholdings.income_tax_base_amount":  lang.Text("Income tax base", "Base del ISR"),
		"form.field.estimated_withholdings.income_tax_rate_percent": lang.Text("Income tax rate %", "Tasa del ISR %"),
		"form.field.estimated_withholdings.itbis_amount":            lang.Text("ITBIS withheld", "ITBIS retenido"),
		"form.field.estimated_withholdings.itbis_base_amount":       lang.Text("ITBIS base", "Base del ITBIS"),
		"form.field.estimated_withholdings.itbis_rate_percent":      lang.Text("ITBIS withholding rate %", "Tasa de retención del ITBIS %"),
	}
}

// problemTexts say what is wrong with a field, by the code of the problem, and by code and
// field where the code alone says too little.
func problemTexts() lang.Texts {
	return lang.Texts{
		"form.problem.required":             lang.Text("is required.", "es obligatorio."),
		"form.problem.invalid_type":         lang.Text("has no valid value.", "no tiene un valor válido."),
		"form.problem.invalid_enum":         lang.Text("choose one of the options.", "elija una de las opciones."),
		"form.problem.invalid_format":       lang.Text("does not have the right format.", "no tiene el formato correcto."),
		"form.problem.invalid_decimal":      lang.Text("must be a number like 1180.00, with at most 4 decimals.", "debe ser un número como 1180.00, con 4 decimales o menos."),
		"form.problem.invalid_date":         lang.Text("must be a date that exists.", "debe ser una fecha del calendario."),
		"form.problem.date_in_future":       lang.Text("must not be after today.", "no puede ser posterior a hoy."),
		"form.problem.date_order":           lang.Text("must not be before the date of issue.", "no puede ser anterior a la fecha de emisión."),
		"form.problem.too_few_items":        lang.Text("Add at least one line.", "Agregue al menos una línea."),
		"form.problem.too_many_items":       lang.Text("The document has too many lines or taxes.", "El comprobante tiene demasiadas líneas o impuestos."),
		"form.problem.blank":                lang.Text("must not be blank.", "no puede estar en blanco."),
		"form.problem.invalid_characters":   lang.Text("has characters that a document cannot carry.", "tiene caracteres que un comprobante no admite."),
		"form.problem.unknown_field":        lang.Text("is not a field of a document.", "no es un dato de un comprobante."),
		"form.problem.out_of_range":         lang.Text("is outside of the allowed limits.", "está fuera de los límites permitidos."),
		"form.problem.total_mismatch":       lang.Text("The totals do not agree with the lines. Update the preview and try again.", "Los totales no cuadran con las líneas. Actualice la vista previa e inténtelo de nuevo."),
		"form.problem.required_for_type":    lang.Text("is required for this type of document.", "es obligatorio para este tipo de comprobante."),
		"form.problem.not_allowed_for_type": lang.Text("is not allowed for this type of document.", "no se admite en este tipo de comprobante."),
		"form.problem.already_exists":       lang.Text("exists already.", "ya existe."),
		"form.problem.duplicated":           lang.Text("is there twice.", "está repetido."),
		"form.problem.too_many_errors":      lang.Text("There are more errors; correct these first.", "Hay más errores; corrija primero estos."),
		"form.problem.unknown_tax":          lang.Text("is not a known tax.", "no es un impuesto conocido."),
		"form.problem.unsupported_tax":      lang.Text("this tax is not supported on the line.", "este impuesto no se admite en la línea."),
		"form.problem.tax_conflict":         lang.Text("does not agree with the other taxes of the line.", "no concuerda con los demás impuestos de la línea."),

		"form.problem.invalid_decimal.lines.quantity":            lang.Text("must be a number like 2.5, with at most 2 decimals.", "debe ser un número como 2.5, con 2 decimales o menos."),
		"form.problem.invalid_format.buyer.tax_id":               lang.Text("must be an RNC of 9 digits or a cédula of 11.", "debe ser un RNC de 9 dígitos o una cédula de 11."),
		"form.problem.invalid_format.buyer.email":                lang.Text("must be an address like name@example.com.", "debe ser una dirección como nombre@ejemplo.com."),
		"form.problem.invalid_format.buyer.address.country_code": lang.Text("must have two capital letters, like DO.", "debe tener dos letras mayúsculas, como DO."),
		"form.problem.required_for_type.buyer.tax_id":            lang.Text("is required on a fiscal credit invoice, and on a consumer invoice from RD$ 250,000.00.", "es obligatorio en una factura de crédito fiscal, y en una de consumo desde RD$ 250,000.00."),
		"form.problem.required.due_date":                         lang.Text("is required when the sale is on credit.", "es obligatoria cuando la venta es a crédito."),
		"form.problem.out_of_range.issue_date":                   lang.Text("must not be before the day on which the taxpayer became an electronic issuer.", "no puede ser anterior a la fecha en que el contribuyente empezó como emisor electrónico."),
		"form.problem.out_of_range.lines.quantity":               lang.Text("must be more than zero.", "debe ser mayor que cero."),
		"form.problem.out_of_range.lines.discount.value":         lang.Text("must be 100 or less.", "debe ser 100 o menos."),

		"form.ready.taxpayer.profile_incomplete": lang.Text("the taxpayer has no address.", "falta la dirección del contribuyente."),
		"form.ready.certificate.missing":         lang.Text("there is no certificate.", "falta el certificado digital."),
		"form.ready.certificate.expired":         lang.Text("the certificate has expired.", "el certificado digital venció."),
		"form.ready.certificate.not_yet_valid":   lang.Text("the certificate is not valid yet.", "el certificado digital aún no es válido."),
		"form.ready.certificate.revoked":         lang.Text("the certificate was revoked.", "el certificado digital fue revocado."),
		"form.ready.sequence.missing":            lang.Text("there is no number range of this type.", "falta una secuencia de e-NCF de este tipo."),
		"form.ready.sequence.exhausted":          lang.Text("the number range is used up.", "la secuencia de e-NCF está agotada."),
		"form.ready.sequence.expired":            lang.Text("the number range has expired.", "la secuencia de e-NCF venció."),
		"form.ready.sequence.fenced":             lang.Text("the number range is fenced until it is reconciled with the tax authority.", "la secuencia de e-NCF está detenida hasta conciliarla con la DGII."),
	}
}
