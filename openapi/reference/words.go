package reference

import "github.com/fiscalhub/fiscalhub/internal/lang"

// wordsOf returns the headings and labels of the page in a language. The descriptions come
// from the OpenAPI document, which is in English.
func wordsOf(language lang.Language) map[string]string {
	all := map[string]string{}
	for name, text := range texts() {
		all[name] = text.In(language)
	}
	return all
}

func texts() lang.Texts {
	return lang.Texts{
		"Contents":     lang.Text("Contents", "Contenido"),
		"Skip":         lang.Text("Skip to the operations", "Ir a las operaciones"),
		"Filter":       lang.Text("Filter", "Filtrar"),
		"Menu":         lang.Text("Contents", "Contenido"),
		"Theme":        lang.Text("Dark or light", "Oscuro o claro"),
		"Other":        lang.Text("Español", "English"),
		"OtherTag":     lang.Text("es", "en"),
		"Start":        lang.Text("Start", "Inicio"),
		"Operations":   lang.Text("Operations", "Operaciones"),
		"Webhooks":     lang.Literal("Webhooks"),
		"Guides":       lang.Text("Guides", "Guías"),
		"Errors":       lang.Text("Errors", "Errores"),
		"Document":     lang.Text("OpenAPI document", "Documento OpenAPI"),
		"Scopes":       lang.Text("Scopes", "Alcances"),
		"NoCredential": lang.Text("No credential is needed.", "No necesita credencial."),
		"Parameters":   lang.Text("Parameters", "Parámetros"),
		"Body":         lang.Text("Body", "Cuerpo"),
		"Answers":      lang.Text("Answers", "Respuestas"),
		"ErrorsGiven":  lang.Text("Errors", "Errores"),
		"Headers":      lang.Text("Headers", "Encabezados"),
		"Members":      lang.Text("Members of", "Campos de"),
		"Required":     lang.Text("required", "obligatorio"),
		"Optional":     lang.Text("optional", "opcional"),
		"OneOf":        lang.Text("One of", "Uno de"),
		"More":         lang.Text("Values may be added.", "Pueden agregarse valores."),
		"Default":      lang.Text("Default", "Por defecto"),
		"Array":        lang.Text("array of", "lista de"),
		"Or":           lang.Text("or", "o"),
		"To":           lang.Text("to", "a"),
		"AtMost":       lang.Text("at most", "máximo"),
		"AtLeast":      lang.Text("at least", "mínimo"),
		"Characters":   lang.Text("characters", "caracteres"),
		"Items":        lang.Text("items", "elementos"),
		"Pattern":      lang.Text("pattern", "patrón"),
		"Request":      lang.Text("Request", "Solicitud"),
		"Response":     lang.Text("Answer", "Respuesta"),
		"Setup":        lang.Text("Set up", "Preparación"),
		"Copy":         lang.Text("Copy", "Copiar"),
		"Copied":       lang.Text("Copied", "Copiado"),
		"SetupText":    lang.Text("The examples of all operations build on these lines.", "Los ejemplos de todas las operaciones parten de estas líneas."),
		"Try":          lang.Text("Try it", "Probar"),
		"TryText":      lang.Text("Sends a real request to the service that shows this page.", "Envía una solicitud real al servicio que muestra esta página."),
		"Key":          lang.Text("API key", "Clave de API"),
		"KeyText":      lang.Text("The key stays in the memory of this page and is gone when you close it.", "La clave queda solo en la memoria de esta página y desaparece al cerrarla."),
		"Send":         lang.Text("Send", "Enviar"),
		"Sending":      lang.Text("Sending…", "Enviando…"),
		"Waiting":      lang.Text("No answer yet.", "Todavía no hay respuesta."),
		"Means":        lang.Text("Meaning", "Significado"),
		"Do":           lang.Text("What to do", "Qué hacer"),
		"GivenBy":      lang.Text("Operations that answer with it", "Operaciones que responden con este código"),
		"Example":      lang.Text("Example", "Ejemplo"),
		"YourAnswer":   lang.Text("Your answer", "Su respuesta"),
		"Sent":         lang.Text("The service sends", "El servicio envía"),
		"NoScript":     lang.Text("Without JavaScript the page shows the examples in all languages one after the other, and cannot send requests.", "Sin JavaScript la página muestra los ejemplos de todos los lenguajes uno tras otro, y no puede enviar solicitudes."),
		"Path":         lang.Text("path", "ruta"),
		"Query":        lang.Text("query", "consulta"),
		"Header":       lang.Text("header", "encabezado"),
		"Top":          lang.Text("Back to the top", "Volver arriba"),
		"Failed":       lang.Text("The request failed", "La solicitud falló"),
		"EveryAnswer":  lang.Text("Every answer also has X-Request-Id, RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset.", "Cada respuesta tiene además X-Request-Id, RateLimit-Limit, RateLimit-Remaining y RateLimit-Reset."),
		"AnswersWith":  lang.Text("Answers", "Responde"),
	}
}
