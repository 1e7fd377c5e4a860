package console

import "github.com/fiscalhub/fiscalhub/internal/lang"

func documentsTexts() lang.Texts {
	return lang.Texts{
		"documents.lead":         lang.Text("Everything that was issued or is being issued, the newest first.", "Todo lo que se ha emitido o se está emitiendo, lo más reciente primero."),
		"documents.find":         lang.Text("Search for", "Buscar"),
		"documents.find_hint":    lang.Text("e-NCF, external_id, trackId, RNC, name, amount, request id or idempotency key", "e-NCF, external_id, trackId, RNC, nombre, monto, request id o clave de idempotencia"),
		"documents.from":         lang.Text("Created from", "Creado desde"),
		"documents.all_statuses": lang.Text("All statuses", "Todos los estados"),
		"documents.all_types":    lang.Text("All types", "Todos los tipos"),
		"documents.no_buyer":     lang.Text("No buyer", "Sin comprador"),
		"documents.no_number":    lang.Text("No e-NCF", "Sin e-NCF"),
		"documents.next":         lang.Text("Older", "Más antiguos"),
		"documents.first":        lang.Text("Back to the newest", "Volver a los más recientes"),
		"documents.csv":          lang.Text("Download CSV", "Descargar CSV"),
		"documents.csv_hint":     lang.Text("Up to %s documents of the result. For a whole month use the exports.", "Hasta %s comprobantes del resultado. Para un mes completo use Exportaciones."),
		"documents.csv_cut":      lang.Text("The file ends here, with %d documents. Use shorter dates or an export.", "El archivo termina aquí, con %d comprobantes. Use fechas más cortas o una exportación."),
		"documents.file":         lang.Text("documents", "comprobantes"),
		"documents.partial":      lang.Text("The search looked at many documents, and older ones are left. Go on with “Older”, or add a filter.", "La búsqueda revisó muchos comprobantes y todavía quedan más antiguos. Continúe con «Más antiguos» o agregue un filtro."),
		"documents.common":       lang.Text("Many buyers have these words, and the search looked only at the newest documents. Go on with “Older”, or enter more of the name, or the RNC.", "Muchos compradores tienen esas palabras, y la búsqueda revisó solo los comprobantes más recientes. Continúe con «Más antiguos», o escriba más del nombre o el RNC."),
		"documents.none":         lang.Text("No document matches", "Ningún comprobante coincide"),
		"documents.none_text":    lang.Text("Check what you entered, or remove a filter. Names are found by the beginning of each word; amounts by the exact total.", "Revise lo que escribió o quite un filtro. Los nombres se buscan por el comienzo de cada palabra; los montos, por el total exacto."),
		"documents.empty":        lang.Text("There are no documents yet", "Todavía no hay comprobantes"),
		"documents.empty_text":   lang.Text("Every invoice that your system sends with the API, or that you issue by hand, appears here.", "Aquí aparece cada factura que su sistema envía por la API o que usted emite a mano."),
		"documents.wrong_status": lang.Text("Choose a status of the list.", "Elija un estado de la lista."),
		"documents.wrong_type":   lang.Text("Choose a type of the list.", "Elija un tipo de la lista."),
		"documents.wrong_date":   lang.Text("Enter a date like 2026-11-15.", "Escriba una fecha como 2026-11-15."),
		"documents.wrong_order":  lang.Text("The last day is before the first one.", "La fecha final es anterior a la inicial."),

		"type.31": lang.Text("31 · Fiscal credit", "31 · Crédito fiscal"),
		"type.32": lang.Text("32 · Consumer", "32 · Consumo"),
	}
}
