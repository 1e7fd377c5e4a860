// Package decision holds documents whose number range ended before they were sent, and gives
// a held document a new number when an operator decides so. It also checks what operators
// write about any decision.
package decision

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// ErrUndecidable says that an operator cannot decide what becomes of a document. The
// reason follows.
var ErrUndecidable = lang.Errorf("nothing was decided", "no se decidió nada")

// maxNote is how many characters an operator may write about a decision.
const maxNote = 1000

// Note returns what an operator wrote as one line of the history. It fails when there is
// nothing or too much.
func Note(text string) (string, error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return "", lang.Errorf("%s: say what the decision is based on", "%s: indique en qué se basa la decisión", ErrUndecidable)
	case !utf8.ValidString(text) || utf8.RuneCountInString(text) > maxNote:
		return "", lang.Errorf("%s: say what the decision is based on in at most %d characters", "%s: indique en qué se basa la decisión en un máximo de %d caracteres", ErrUndecidable, maxNote)
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text), nil
}
