package strictjson

import (
	"errors"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// maxEcho is how many characters of submitted text a message may repeat.
const maxEcho = 64

// A SyntaxError says why a body is not one unambiguous JSON text.
type SyntaxError struct {
	// Offset is the byte at or after which the text went wrong.
	Offset int64
	// Reason says in one line what is wrong there.
	Reason string
}

// Error returns the reason and the place.
func (e *SyntaxError) Error() string {
	return e.Reason + " (at byte " + strconv.FormatInt(e.Offset, 10) + ")"
}

// newSyntaxError tells the decoder's error in our words, so that neither the
// library's name nor a long submitted value reaches the integrator.
func newSyntaxError(err error, size int) *SyntaxError {
	var syntactic *jsontext.SyntacticError
	if !errors.As(err, &syntactic) || syntactic.Err == nil {
		return &SyntaxError{Offset: int64(size), Reason: "the text is not JSON"}
	}
	pointer, reason := syntactic.JSONPointer, ""
	switch {
	case errors.Is(syntactic.Err, jsontext.ErrDuplicateName):
		reason = "the member name " + quote(pointer.LastToken()) + " stands twice in one object"
		pointer = pointer.Parent()
	case errors.Is(syntactic.Err, io.ErrUnexpectedEOF):
		reason = "the text ends too early"
	default:
		reason = cut(syntactic.Err.Error(), 2*maxEcho)
	}
	if pointer != "" {
		reason += " within " + quote(string(pointer))
	}
	return &SyntaxError{Offset: syntactic.ByteOffset, Reason: reason}
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
