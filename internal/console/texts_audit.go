package console

func auditTexts() texts {
	return texts{
		"audit.title":       {"Auditoría", "Audit log"},
		"audit.lead":        {"Quién cambió qué y cuándo. Las entradas están encadenadas: un cambio posterior se nota.", "Who changed what, and when. The entries are chained: a later change shows."},
		"audit.actor":       {"Quién", "Actor"},
		"audit.object":      {"Acción u objeto", "Action or object"},
		"audit.object_hint": {"Una parte, como user.create", "A part, like user.create"},
		"audit.from":        {"Desde", "From"},
		"audit.to":          {"Hasta", "To"},
		"audit.search":      {"Buscar", "Search"},
		"audit.clear":       {"Quitar filtros", "Clear filters"},
		"audit.time":        {"Fecha y hora", "Time"},
		"audit.action":      {"Acción y objeto", "Action and object"},
		"audit.detail":      {"Detalle", "Detail"},
		"audit.request":     {"Solicitud", "Request"},
		"audit.older":       {"Más antiguas", "Older"},
		"audit.newest":      {"Más recientes", "Newest"},
		"audit.verify":      {"Verificar la cadena", "Verify the chain"},
		"audit.valid":       {"La auditoría está completa y sin cambios: %s entradas, %s puntos de control firmados.", "The audit log is complete and unchanged: %s entries, %s signed checkpoints."},
		"audit.wrong":       {"Alguien cambió la auditoría después de que se escribió. Primera entrada incorrecta: %s.", "The audit log was changed after it was written. First wrong entry: %s."},
		"audit.wrong_mark":  {"Un punto de control de la auditoría no es válido.", "A checkpoint of the audit log is not valid."},
		"audit.wrong_next":  {"Averigüe quién puede escribir en la base de datos y compare con un respaldo.", "Find out who can write to the database, and compare with a backup."},
		"audit.wrong_date":  {"Escriba una fecha.", "Enter a date."},

		"audit.fields.one":  {"1 campo", "1 field"},
		"audit.fields.many": {"%s campos", "%s fields"},

		"audit.empty":         {"Todavía no hay entradas", "There are no entries yet"},
		"audit.empty_text":    {"Cada cambio que hace una persona o el servicio aparece aquí.", "Every change by a person or by the service appears here."},
		"audit.no_match":      {"Ninguna entrada coincide", "No entry matches"},
		"audit.no_match_text": {"Quite un filtro o amplíe las fechas.", "Remove a filter, or choose a longer time."},
	}
}
