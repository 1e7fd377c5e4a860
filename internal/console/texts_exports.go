package console

import "github.com/fiscalhub/fiscalhub/internal/lang"

// exportTexts are the texts of the page of exports.
func exportTexts() lang.Texts {
	return lang.Texts{
		"exports.lead":           lang.Text("The documents of a month or any span in a ZIP file: signed XML, a table for spreadsheets, sums by day and rate, and digests to check it with.", "Los comprobantes de un mes o de cualquier período en un archivo ZIP: XML firmados, tabla para hoja de cálculo, resumen por día y tasa, y las huellas que permiten verificarlo."),
		"exports.new":            lang.Text("New export", "Nueva exportación"),
		"exports.from":           lang.Text("From (date of issue)", "Desde (fecha de emisión)"),
		"exports.include":        lang.Text("Include also", "Incluir además"),
		"exports.pdf":            lang.Text("Printed pages (PDF)", "Representaciones impresas (PDF)"),
		"exports.create":         lang.Text("Export", "Exportar"),
		"exports.this_month":     lang.Text("This month", "Este mes"),
		"exports.last_month":     lang.Text("Last month", "Mes pasado"),
		"exports.kept":           lang.Text("Kept exports", "Exportaciones guardadas"),
		"exports.by":             lang.Text("Asked for by", "Solicitada por"),
		"exports.until":          lang.Text("Kept until", "Se guarda hasta"),
		"exports.with_pdf":       lang.Text("with PDF", "con PDF"),
		"exports.done":           lang.Text("Ready", "Lista"),
		"exports.running":        lang.Text("Running", "En curso"),
		"exports.waiting":        lang.Text("Waiting", "En espera"),
		"exports.failed":         lang.Text("Failed", "Falló"),
		"exports.failed_text":    lang.Text("The file could not be made. Try again; if it goes on, tell the person who runs the service.", "No se pudo crear el archivo. Inténtelo de nuevo; si continúa, avise a quien opera el servicio."),
		"exports.progress":       lang.Text("Progress of the export", "Avance de la exportación"),
		"exports.download":       lang.Text("Download", "Descargar"),
		"exports.download_label": lang.Text("Download the export from %s to %s", "Descargar la exportación del %s al %s"),
		"exports.again":          lang.Text("Try again", "Repetir"),
		"exports.delete":         lang.Text("Delete", "Borrar"),
		"exports.delete_label":   lang.Text("Delete the export from %s to %s", "Borrar la exportación del %s al %s"),
		"exports.delete_ask":     lang.Text("Delete this export? The documents do not change, and you can export them again.", "¿Borrar esta exportación? Los comprobantes no cambian y puede exportarlos otra vez."),
		"exports.empty":          lang.Text("There are no exports yet", "Todavía no hay exportaciones"),
		"exports.empty_text":     lang.Text("Choose a span above. The file is made in the background and kept for 7 days.", "Elija un período arriba. El archivo se prepara en segundo plano y se guarda 7 días."),
		"exports.verify":         lang.Text("To check that a file was not changed:", "Para comprobar que un archivo no fue alterado:"),
		"exports.file_name":      lang.Text("FILE.zip", "ARCHIVO.zip"),
		"exports.no_taxpayer":    lang.Text("Choose a taxpayer.", "Elija un contribuyente."),
		"exports.wrong_date":     lang.Text("Enter a date that exists.", "Escriba una fecha del calendario."),
		"exports.wrong_span":     lang.Text("The last date must be the first one or later.", "La última fecha debe ser igual o posterior a la primera."),
		"exports.too_many":       lang.Text("This taxpayer already has several exports that run or are kept. Wait for them, or delete those that you do not need.", "Este contribuyente ya tiene varias exportaciones en curso o guardadas. Espere a que terminen o borre las que no necesita."),

		"done.exports.created": lang.Text("The export is being made. You may leave this page.", "La exportación está en preparación. Puede salir de esta página."),
		"done.exports.deleted": lang.Text("The export was deleted.", "La exportación se borró."),

		"exports.too_large":   lang.Text("The file is larger than 2 GiB. Export a shorter span, or without PDF.", "El archivo supera los 2 GiB. Exporte un período más corto, o sin PDF."),
		"error.no_file.title": lang.Text("The file is not available here", "El archivo no está disponible aquí"),
		"error.no_file.text":  lang.Text("The export is not ready yet, or an earlier release has made it on another node of the service.", "La exportación aún no está lista, o la hizo una versión anterior en otro nodo del servicio."),
		"error.no_file.next":  lang.Text("Go back to the page of exports. If it is ready and cannot be downloaded, delete it and make it again.", "Vuelva a la página de exportaciones. Si está lista y no se descarga, bórrela y repítala."),
	}
}
