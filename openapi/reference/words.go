package reference

import "github.com/fiscalhub/fiscalhub/internal/lang"

// words are the headings and labels of the page. The descriptions come from the OpenAPI
// document, which is in English.
type words struct {
	Contents, Skip, Filter, Menu, Theme, Other, OtherTag         string
	Start, Operations, Webhooks, Guides, Errors, Document        string
	Scopes, NoCredential, Parameters, Body, Answers, ErrorsGiven string
	Headers, Members, Required, Optional, OneOf, More, Default   string
	Array, Or, To, AtMost, AtLeast, Characters, Items, Pattern   string
	Request, Response, Setup, SetupText, Copy, Copied            string
	Try, TryText, Key, KeyText, Send, Sending, Waiting           string
	Means, Do, GivenBy, Example, YourAnswer, Sent, NoScript      string
	Path, Query, Header, Top, EveryAnswer, AnswersWith, Failed   string
}

// wordsOf returns the words in a language.
func wordsOf(language lang.Language) words {
	if language == lang.Spanish {
		return spanish()
	}
	return english()
}

func english() words {
	return words{
		Contents: "Contents", Skip: "Skip to the operations", Filter: "Filter", Menu: "Contents", Theme: "Dark or light", Other: "Español", OtherTag: "es",
		Start: "Start", Operations: "Operations", Webhooks: "Webhooks", Guides: "Guides", Errors: "Errors", Document: "OpenAPI document",
		Scopes: "Scopes", NoCredential: "No credential is needed.", Parameters: "Parameters", Body: "Body", Answers: "Answers", ErrorsGiven: "Errors",
		Headers: "Headers", Members: "Members of", Required: "required", Optional: "optional", OneOf: "One of", More: "Values may be added.", Default: "Default",
		Array: "array of", Or: "or", To: "to", AtMost: "at most", AtLeast: "at least", Characters: "characters", Items: "items", Pattern: "pattern",
		Request: "Request", Response: "Answer", Setup: "Set up", Copy: "Copy", Copied: "Copied",
		SetupText: "The examples of all operations build on these lines.",
		Try:       "Try it", TryText: "Sends a real request to the service that shows this page.",
		Key: "API key", KeyText: "The key stays in the memory of this page and is gone when you close it.",
		Send: "Send", Sending: "Sending…", Waiting: "No answer yet.",
		Means: "Meaning", Do: "What to do", GivenBy: "Operations that answer with it", Example: "Example", YourAnswer: "Your answer", Sent: "The service sends",
		NoScript: "Without JavaScript the page shows the examples in all languages one after the other, and cannot send requests.",
		Path:     "path", Query: "query", Header: "header", Top: "Back to the top", Failed: "The request failed",
		EveryAnswer: "Every answer also has X-Request-Id, RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset.", AnswersWith: "Answers",
	}
}

func spanish() words {
	return words{
		Contents: "Contenido", Skip: "Ir a las operaciones", Filter: "Filtrar", Menu: "Contenido", Theme: "Oscuro o claro", Other: "English", OtherTag: "en",
		Start: "Inicio", Operations: "Operaciones", Webhooks: "Webhooks", Guides: "Guías", Errors: "Errores", Document: "Documento OpenAPI",
		Scopes: "Alcances", NoCredential: "No necesita credencial.", Parameters: "Parámetros", Body: "Cuerpo", Answers: "Respuestas", ErrorsGiven: "Errores",
		Headers: "Encabezados", Members: "Campos de", Required: "obligatorio", Optional: "opcional", OneOf: "Uno de", More: "Pueden agregarse valores.", Default: "Por defecto",
		Array: "lista de", Or: "o", To: "a", AtMost: "máximo", AtLeast: "mínimo", Characters: "caracteres", Items: "elementos", Pattern: "patrón",
		Request: "Solicitud", Response: "Respuesta", Setup: "Preparación", Copy: "Copiar", Copied: "Copiado",
		SetupText: "Los ejemplos de todas las operaciones parten de estas líneas.",
		Try:       "Probar", TryText: "Envía una solicitud real al servicio que muestra esta página.",
		Key: "Clave de API", KeyText: "La clave queda solo en la memoria de esta página y desaparece al cerrarla.",
		Send: "Enviar", Sending: "Enviando…", Waiting: "Todavía no hay respuesta.",
		Means: "Significado", Do: "Qué hacer", GivenBy: "Operaciones que responden con este código", Example: "Ejemplo", YourAnswer: "Su respuesta", Sent: "El servicio envía",
		NoScript: "Sin JavaScript la página muestra los ejemplos de todos los lenguajes uno tras otro, y no puede enviar solicitudes.",
		Path:     "ruta", Query: "consulta", Header: "encabezado", Top: "Volver arriba", Failed: "La solicitud falló",
		EveryAnswer: "Cada respuesta tiene además X-Request-Id, RateLimit-Limit, RateLimit-Remaining y RateLimit-Reset.", AnswersWith: "Responde",
	}
}
