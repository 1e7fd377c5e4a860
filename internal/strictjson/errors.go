package strictjson

import (
	"errors"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
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
	Reason string
}

// Error returns the reason and the offset.
func (e *SyntaxError) Error() string {
	return e.Reason + " (at byte " + strconv.FormatInt(e.Offset, 10) + ")"
}

// newSyntaxError converts an error of the decoder. The message for the integrator
// must not have the name of the library or a long submitted value.
func newSyntaxError(err error, size int) *SyntaxError {
	var syntactic *jsontext.SyntacticError
	if !errors.As(err, &syntactic) || syntactic.Err == nil {
		return &SyntaxError{Offset: int64(size), Reason: "the body is not JSON"}
	}
	pointer, reason := syntactic.JSONPointer, ""
	switch {
	case errors.Is(syntactic.Err, jsontext.ErrDuplicateName):
		reason = "the member name " + quote(pointer.LastToken()) + " occurs twice in one object"
		pointer = pointer.Parent()
	case errors.Is(syntactic.Err, io.ErrUnexpectedEOF):
		reason = "the body ends too early"
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
