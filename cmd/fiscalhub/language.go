package main

import (
	"io"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// languageOf returns the language of messages: that of the flag --lang or its variable,
// or that of the terminal. The flag is read before the command line is parsed, because
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
