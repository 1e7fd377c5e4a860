package main

import (
	"log/slog"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// parserError returns an error of the parser of the command line in both languages. The
// parser writes English, so its phrases are replaced; what the person typed stays.
func parserError(err error) error {
	err = withAdvice(err)
	english, _, _ := strings.Cut(err.Error(), ": time: invalid duration ") // the parser has said it already
	spanish, _, _ := strings.Cut(lang.ErrorText(err, lang.Spanish), ": time: invalid duration ")
	for _, phrase := range parserPhrases() {
		spanish = strings.Replace(spanish, phrase.In(lang.English), phrase.In(lang.Spanish), 1)
	}
	return usageError{lang.Translated(english, spanish)}
}

// parserPhrases returns the phrases of the parser, longer ones first.
func parserPhrases() []lang.Message {
	return []lang.Message{
		lang.Messagef("unknown flag ", "opción desconocida "),
		lang.Messagef("unexpected flag argument ", "argumento inesperado de opción "),
		lang.Messagef("unexpected argument ", "argumento inesperado "),
		lang.Messagef("missing flags: ", "faltan estas opciones: "),
		lang.Messagef("missing positional arguments ", "faltan estos argumentos: "),
		lang.Messagef(" (short flag); perhaps try ", "; escriba "),
		lang.Messagef(" and --", " y --"),
		lang.Messagef(" can't be used together", " no se pueden usar juntas"),
		lang.Messagef(", did you mean one of ", ", ¿quiso decir una de "),
		lang.Messagef(", did you mean ", ", ¿quiso decir "),
		lang.Messagef("bool value must be true, 1, yes, false, 0 or no", "el valor debe ser true, 1, yes, false, 0 o no"),
		lang.Messagef(" (from envar ", " (de la variable "),
		lang.Messagef(" must be one of ", " debe ser uno de "),
		lang.Messagef("expected a valid 64 bit int", "se esperaba un número entero"),
		lang.Messagef("expected int value", "se esperaba un número entero"),
		lang.Messagef("expected float value", "se esperaba un número"),
		lang.Messagef("expected string value", "se esperaba un texto"),
		lang.Messagef("expected an int", "se esperaba un número entero"),
		lang.Messagef("expected a float", "se esperaba un número"),
		lang.Messagef("expected duration", "se esperaba una duración"),
		lang.Messagef("expected one of ", "se esperaba uno de "),
		lang.Messagef("expected ", "se esperaba "),
		lang.Messagef(" but got ", " y se recibió "),
		lang.Messagef(" is required", " es obligatorio"),
		wrongLogLevel(),
	}
}

// A logLevel is the value of --log-level.
type logLevel struct{ slog.Level }

// UnmarshalText reads a level. It fails with a text that names the levels.
func (l *logLevel) UnmarshalText(text []byte) error {
	if l.Level.UnmarshalText(text) != nil {
		return lang.Errorf("%s", "%s", wrongLogLevel())
	}
	return nil
}

func wrongLogLevel() lang.Message {
	return lang.Messagef("must be debug, info, warn or error", "debe ser debug, info, warn o error")
}
