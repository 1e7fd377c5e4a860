package strictjson

import (
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// maxEcho is the number of characters of submitted text that a message may
// repeat.
const maxEcho = 64

// A SyntaxError says why Parse refuses a body.
type SyntaxError struct {
	// Offset is the offset of the error in bytes. The error may be a little
	// after it.
	Offset int64
	// Reason describes the error in one line.
	Reason lang.Message
}

// Error returns the reason and the offset in English.
func (e *SyntaxError) Error() string { return e.Message().String() }

// Message returns the reason and the offset.
func (e *SyntaxError) Message() lang.Message {
	return lang.Messagef("%s (at byte %d)", "%s (en el byte %d)", e.Reason, e.Offset)
}

// newSyntaxError converts an error of the decoder. The message for the integrator
// must not have the name of the library or a long submitted value.
func newSyntaxError(err error, body []byte) *SyntaxError {
	var syntactic *jsontext.SyntacticError
	if !errors.As(err, &syntactic) || syntactic.Err == nil {
		return &SyntaxError{Offset: int64(len(body)), Reason: lang.Messagef("the body is not JSON", "el cuerpo no es JSON")}
	}
	var reason lang.Message
	pointer := syntactic.JSONPointer
	switch text := syntactic.Err.Error(); {
	case errors.Is(syntactic.Err, jsontext.ErrDuplicateName):
		reason = lang.Messagef("the member name %s occurs twice in one object", "el nombre %s aparece dos veces en un mismo objeto", quote(pointer.LastToken()))
		pointer = pointer.Parent()
	case errors.Is(syntactic.Err, io.ErrUnexpectedEOF):
		reason = lang.Messagef("the body ends too early", "el cuerpo termina antes de tiempo")
	case strings.Contains(text, "UTF-8"):
		reason = lang.Messagef("the body has bytes that are not UTF-8", "el cuerpo tiene bytes que no son UTF-8")
	case strings.Contains(text, "surrogate"):
		reason = lang.Messagef("an escape sequence has only one half of a surrogate pair", "una secuencia de escape tiene solo la mitad de un par sustituto (surrogate)")
	case strings.Contains(text, "escape sequence"):
		reason = lang.Messagef("a string has an invalid escape sequence", "un texto tiene una secuencia de escape que no es válida")
	default:
		reason = unexpected(body, syntactic.ByteOffset)
	}
	if pointer != "" {
		reason = lang.Messagef("%s within %s", "%s dentro de %s", reason, quote(string(pointer)))
	}
	return &SyntaxError{Offset: syntactic.ByteOffset, Reason: reason}
}

// unexpected returns the message about the character at an offset.
func unexpected(body []byte, offset int64) lang.Message {
	if offset < 0 || offset >= int64(len(body)) {
		return lang.Messagef("the body is invalid JSON", "el cuerpo no es JSON válido")
	}
	r, _ := utf8.DecodeRune(body[offset:])
	return lang.Messagef("invalid JSON at the character %s", "JSON no válido en el carácter %s", strconv.QuoteRune(r))
}

func quote(s string) string { return strconv.Quote(cut(s, maxEcho)) }

// cut returns at most n characters of s.
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	count := 0
	for i := range s {
		if count == n-1 {
			return s[:i] + "…"
		}
		count++
	}
	return s
}
