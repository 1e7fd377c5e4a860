package console

import "github.com/fiscalhub/fiscalhub/internal/lang"

func auditTexts() lang.Texts {
	return lang.Texts{
		"audit.lead":        lang.Text("Who changed what, and when. The entries are chained: a later change shows.", "Quién cambió qué y cuándo. Las entradas están encadenadas: un cambio posterior se nota."),
		"audit.actor":       lang.Text("Actor", "Quién"),
		"audit.object":      lang.Text("Action or object", "Acción u objeto"),
		"audit.object_hint": lang.Text("A part, like user.create", "Una parte, como user.create"),
		"audit.time":        lang.Text("Time", "Fecha y hora"),
		"audit.action":      lang.Text("Action and object", "Acción y objeto"),
		"audit.detail":      lang.Text("Detail", "Detalle"),
		"audit.older":       lang.Text("Older", "Más antiguas"),
		"audit.verify":      lang.Text("Verify the chain", "Verificar la cadena"),
		"audit.valid":       lang.Text("The audit log is complete and unchanged: %s entries, %s signed checkpoints.", "La auditoría está completa y sin cambios: %s entradas, %s puntos de control firmados."),
		"audit.wrong":       lang.Text("The audit log was changed after it was written. First wrong entry: %s.", "Alguien cambió la auditoría después de que se escribió. Primera entrada incorrecta: %s."),
		"audit.wrong_mark":  lang.Text("A checkpoint of the audit log is not valid.", "Un punto de control de la auditoría no es válido."),
		"audit.wrong_next":  lang.Text("Find out who can write to the database, and compare with a backup.", "Averigüe quién puede escribir en la base de datos y compare con un respaldo."),
		"audit.wrong_date":  lang.Text("Enter a date.", "Escriba una fecha."),

		"audit.fields.one":  lang.Text("1 field", "1 campo"),
		"audit.fields.many": lang.Text("%s fields", "%s campos"),

		"audit.empty":         lang.Text("There are no entries yet", "Todavía no hay entradas"),
		"audit.empty_text":    lang.Text("Every change by a person or by the service appears here.", "Cada cambio que hace una persona o el servicio aparece aquí."),
		"audit.no_match":      lang.Text("No entry matches", "Ninguna entrada coincide"),
		"audit.no_match_text": lang.Text("Remove a filter, or choose a longer time.", "Quite un filtro o amplíe las fechas."),
	}
}
