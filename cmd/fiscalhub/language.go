package main

import (
	"io"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// languageOf returns the language of messages: the flag --lang or its variable names it,
// or the terminal has it. The flag is read before the command line is parsed, because
// an error of the parser has a language too.
func languageOf(args []string, getenv func(string) string) lang.Language {
	asked := getenv("FISCALHUB_LANG")
	for i, arg := range args {
		if value, ok := strings.CutPrefix(arg, "--lang="); ok {
			asked = value
		} else if arg == "--lang" && i+1 < len(args) {
			asked = args[i+1]
		}
	}
	if found, ok := lang.Parse(asked); ok {
		return found
	}
	return lang.FromEnvironment(getenv)
}

// outputLanguage returns the language of what a command prints: JSON is in English.
func (t *terminal) outputLanguage() lang.Language {
	if t.cli.JSON {
		return lang.English
	}
	return t.language
}

// say writes a sentence on a line of its own.
func say(w io.Writer, m lang.Message) { line(w, m.In(languageOfWriter(w))) }

// A localWriter is what a command prints for people on, with their language.
type localWriter struct {
	io.Writer
	language lang.Language
}

// languageOfWriter returns the language of a localWriter, and English for others.
func languageOfWriter(w io.Writer) lang.Language {
	if local, ok := w.(localWriter); ok {
		return local.language
	}
	return lang.English
}

// warn prints a warning. The command goes on.
func (t *terminal) warn(m lang.Message) {
	warning := lang.Messagef("fiscalhub: warning: %s", "fiscalhub: advertencia: %s", printable(m.In(t.language)))
	_, _ = io.WriteString(t.errOut, warning.In(t.language)+"\n")
}

// progress prints one line about what the command is doing.
func (t *terminal) progress(m lang.Message) {
	_, _ = io.WriteString(t.errOut, printable(m.In(t.language))+"\n")
}

// wrongUsage returns the error of a wrong command line. The process exits with code 2.
func wrongUsage(english, spanish string, args ...any) error {
	return usageError{lang.Messagef(english, spanish, args...)}
}

// usageError is a wrong command line.
type usageError struct{ lang.Message }

// Error returns the English text.
func (e usageError) Error() string { return e.String() }

// usageOf returns the error of a flag with a wrong value.
func usageOf(flag string, err error) error {
	return usageError{lang.Messagef("--%s: %s", "--%s: %s", flag, err)}
}

// storeNow asks a person to keep a secret that is shown once.
func storeNow() lang.Message {
	return lang.Messagef("Store it now: it is not shown again.", "Guarde este valor ahora: no se muestra otra vez.")
}

// labels returns the names of columns and lines in both languages. Headings of tables
// are the same names in capitals.
func labels() []lang.Message {
	return []lang.Message{
		lang.Messagef("action", "acción"),
		lang.Messagef("actor", "autor"),
		lang.Messagef("address", "dirección"),
		lang.Messagef("answer", "respuesta"),
		lang.Messagef("api key", "clave de API"),
		lang.Messagef("attempt", "intento"),
		lang.Messagef("branch", "sucursal"),
		lang.Messagef("buyer", "comprador"),
		lang.Messagef("by", "por"),
		lang.Messagef("cause", "causa"),
		lang.Messagef("certificate", "certificado"),
		lang.Messagef("created", "creado"),
		lang.Messagef("credential", "credencial"),
		lang.Messagef("deadline", "plazo"),
		lang.Messagef("detail", "detalle"),
		lang.Messagef("difference", "diferencia"),
		lang.Messagef("document", "documento"),
		lang.Literal("e-NCF"),
		lang.Messagef("e-mail", "correo"),
		lang.Messagef("economic activity", "actividad económica"),
		lang.Messagef("electronic since", "emisor electrónico desde"),
		lang.Messagef("email", "correo"),
		lang.Messagef("ends", "vence"),
		lang.Messagef("environment", "ambiente"),
		lang.Messagef("event", "evento"),
		lang.Messagef("events", "eventos"),
		lang.Messagef("evidence", "evidencia"),
		lang.Messagef("expires", "vence"),
		lang.Messagef("explanation", "explicación"),
		lang.Literal("external id"),
		lang.Messagef("fault", "falla"),
		lang.Literal("id"),
		lang.Messagef("invoice", "factura"),
		lang.Messagef("job", "tarea"),
		lang.Messagef("problem", "problema"),
		lang.Messagef("kept responses", "respuestas guardadas"),
		lang.Messagef("kind", "tipo"),
		lang.Messagef("left", "quedan"),
		lang.Messagef("legal name", "razón social"),
		lang.Messagef("link", "enlace"),
		lang.Messagef("message", "mensaje"),
		lang.Messagef("missing", "falta"),
		lang.Messagef("municipality", "municipio"),
		lang.Messagef("name", "nombre"),
		lang.Messagef("new", "nueva"),
		lang.Messagef("next", "siguiente"),
		lang.Messagef("next try", "próximo intento"),
		lang.Messagef("numbers", "secuencias"),
		lang.Messagef("object", "objeto"),
		lang.Literal("ok"),
		lang.Messagef("old", "anterior"),
		lang.Messagef("outcome", "resultado"),
		lang.Messagef("page format", "formato de página"),
		lang.Literal("PDF"),
		lang.Messagef("person", "persona"),
		lang.Messagef("prefix", "prefijo"),
		lang.Messagef("province", "provincia"),
		lang.Messagef("range", "rango"),
		lang.Messagef("reason", "motivo"),
		lang.Messagef("request id", "id de la solicitud"),
		lang.Messagef("replaced", "sustituido"),
		lang.Messagef("response", "respuesta"),
		lang.Messagef("rewrapped", "reencriptados"),
		lang.Literal("RNC"),
		lang.Messagef("role", "rol"),
		lang.Messagef("scopes", "alcances"),
		lang.Messagef("secret", "secreto"),
		lang.Messagef("security code", "código de seguridad"),
		lang.Messagef("serial", "serie"),
		lang.Literal("sha256"),
		lang.Messagef("signature", "firma"),
		lang.Messagef("signer", "firmante"),
		lang.Messagef("since", "desde"),
		lang.Messagef("source", "fuente"),
		lang.Messagef("stage", "etapa"),
		lang.Messagef("stamp", "timbre"),
		lang.Messagef("state", "estado"),
		lang.Messagef("status", "estado"),
		lang.Messagef("subject", "titular"),
		lang.Messagef("suspended", "suspendido"),
		lang.Messagef("taxpayer", "contribuyente"),
		lang.Messagef("taxpayers", "contribuyentes"),
		lang.Messagef("telephone", "teléfono"),
		lang.Messagef("time", "hora"),
		lang.Literal("track id"),
		lang.Messagef("trade name", "nombre comercial"),
		lang.Messagef("type", "tipo"),
		lang.Messagef("type of income", "tipo de ingresos"),
		lang.Literal("URL"),
		lang.Messagef("user", "persona"),
		lang.Messagef("valid", "vigencia"),
		lang.Messagef("version", "versión"),
		lang.Messagef("web site", "sitio web"),
		lang.Literal("webhook"),
		lang.Literal("XML"),
	}
}

// label returns the name of a line in a language. A text that is no name, such as an id,
// stays as it is.
func label(name string, l lang.Language) string {
	if l != lang.Spanish {
		return name
	}
	for _, m := range labels() {
		if strings.EqualFold(m.In(lang.English), name) {
			return m.In(l)
		}
	}
	return name
}

// heading returns the name of a column in a language, in capitals.
func heading(name string, l lang.Language) string { return strings.ToUpper(label(name, l)) }
