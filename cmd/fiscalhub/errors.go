package main

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// withAdvice adds what to do to an error of the operating system about a file, and
// translates it. It returns other errors as they are.
func withAdvice(err error) error {
	file, text := fileError(err)
	if file == nil {
		return err
	}
	reason, advice := explainFile(file)
	if advice.IsZero() {
		return err
	}
	// The English text keeps the words of the operating system: people search for them.
	english := strings.Replace(lang.ErrorText(err, lang.English), text, text+": "+advice.In(lang.English), 1)
	spanish := lang.ErrorText(err, lang.Spanish)
	if spanish == lang.ErrorText(err, lang.English) && !strings.HasPrefix(spanish, "--") {
		spanish = text // the words before it are English and for developers
	}
	spanish = strings.Replace(spanish, text, reason+": "+advice.In(lang.Spanish), 1)
	return lang.Errorf("%s", "%s", lang.Translated(english, spanish))
}

// fileError returns the error of the operating system about a file that err contains, and
// its text. The error is nil when there is none.
func fileError(err error) (*fs.PathError, string) {
	var file *fs.PathError
	if errors.As(err, &file) {
		return file, file.Error()
	}
	var link *os.LinkError
	if errors.As(err, &link) {
		return &fs.PathError{Op: link.Op, Path: link.New, Err: link.Err}, link.Error()
	}
	return nil, ""
}

// explainFile returns why the operating system refused a file, in Spanish, and what to do.
func explainFile(e *fs.PathError) (reason string, advice lang.Message) {
	switch {
	case errors.Is(e, fs.ErrNotExist):
		if folder := missingFolder(e); folder != "" {
			return "no existe " + e.Path, lang.Messagef("create the folder %s first, or name another one", "cree primero la carpeta %s o indique otra", folder)
		}
		return "no existe " + e.Path, lang.Messagef("check the name of the file", "revise el nombre del archivo")
	case errors.Is(e, fs.ErrPermission):
		return "este usuario no tiene permiso para abrir o cambiar " + e.Path,
			lang.Messagef("run the command as the user who owns it, or change its permissions", "ejecute el comando como su dueño, o cambie sus permisos")
	case errors.Is(e, syscall.EISDIR):
		return e.Path + " es una carpeta", lang.Messagef("name a file", "indique un archivo")
	case errors.Is(e, syscall.ENOTDIR):
		return "una parte de " + e.Path + " es un archivo y no una carpeta", lang.Messagef("name a folder", "indique una carpeta")
	case errors.Is(e, fs.ErrExist):
		return e.Path + " ya existe", lang.Messagef("name another one", "indique otro")
	case errors.Is(e, syscall.ENOSPC):
		return "no queda espacio para " + e.Path, lang.Messagef("free some space, and run the command again", "libere espacio y ejecute el comando otra vez")
	case errors.Is(e, syscall.EROFS):
		return e.Path + " está en un disco de solo lectura", lang.Messagef("name a place that can be written to", "indique un lugar donde se pueda escribir")
	}
	return "", lang.Message{}
}

// missingFolder returns the folder that is missing when it is not the file itself.
func missingFolder(e *fs.PathError) string {
	folder := filepath.Dir(e.Path)
	if strings.HasPrefix(e.Op, "create a file") { // the path names the folder
		folder = e.Path
	}
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return folder
	}
	return ""
}

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
