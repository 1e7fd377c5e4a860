// Package rejection explains the messages with which the tax authority rejects a
// document, or accepts it conditionally: what a code means and what to do.
//
// The authority publishes no list of its codes. The table has the codes that are
// known from its answers, and those of the simulator, which start at 90000.
package rejection

import (
	"slices"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// An explanation says what a code means and what to do after it.
type explanation struct {
	code              string
	meaning, whatToDo lang.Message
}

// Codes returns the codes that Explain knows, in the order of their numbers.
func Codes() []string {
	var all []string
	for _, e := range table(forPrograms()) {
		all = append(all, e.code)
	}
	return all
}

// Explain returns what a code of the authority means, and what to do with the API. It
// returns false when the code is not known.
func Explain(code string, in lang.Language) (meaning, whatToDo string, ok bool) {
	return find(table(forPrograms()), code, in)
}

// ExplainToPerson is Explain for somebody who looks at a document with a status.
func ExplainToPerson(code string, status fiscal.Status, in lang.Language) (meaning, whatToDo string, ok bool) {
	return find(table(forPeople(status)), code, in)
}

func find(all []explanation, code string, in lang.Language) (meaning, whatToDo string, ok bool) {
	i := slices.IndexFunc(all, func(e explanation) bool { return e.code == code })
	if i < 0 {
		return "", "", false
	}
	return all[i].meaning.In(in), all[i].whatToDo.In(in), true
}

// Note explains a code in one line, and returns false when the code is not known.
func Note(code string, in lang.Language) (string, bool) {
	meaning, whatToDo, ok := Explain(code, in)
	if !ok {
		return "", false
	}
	return lang.Messagef("Code %s means: %s What to do: %s", "El código %s significa: %s Qué hacer: %s", code, meaning, whatToDo).In(in), true
}

// Split separates a status message of the form "[code] text" into its code and its
// text. It returns false for a message without a code.
func Split(message string) (code, text string, ok bool) {
	rest, found := strings.CutPrefix(message, "[")
	if !found {
		return "", message, false
	}
	code, text, ok = strings.Cut(rest, "]")
	if !ok {
		return "", message, false
	}
	return code, strings.TrimSpace(text), true
}

// Explained returns the status messages of a document with an explanation of every
// known code. The authority's own words come first, then the explanations, then the
// notes of the service. When no code is known, a note says what to do in this status,
// if there is anything to do.
func Explained(status fiscal.Status, messages []string, in lang.Language) []string {
	var words, notes, explanations []string
	for _, m := range messages {
		code, _, ok := Split(m)
		if !ok {
			notes = append(notes, m)
			continue
		}
		words = append(words, m)
		if note, ok := Note(code, in); ok && !slices.Contains(explanations, note) {
			explanations = append(explanations, note)
		}
	}
	all := slices.Concat(words, explanations, notes)
	if note := NextStep(status); len(explanations) == 0 && !note.IsZero() {
		all = append(all, note.In(in))
	}
	return all
}

// NextStep returns what to do when a document has a status. It is empty when there is
// nothing to do.
func NextStep(status fiscal.Status) lang.Message {
	switch status {
	case fiscal.Rejected, fiscal.ValidationFailed:
		return lang.Messagef("This status is final. To issue the sale, correct the data and %s",
			"Este estado es definitivo. Para emitir la venta, corrija los datos y %s", newSale())
	case fiscal.OutcomeUnknown:
		return lang.Messagef(
			"The tax authority may have received the document. The service asks the authority until it knows. Wait, and do not create the invoice again.",
			"Es posible que la DGII haya recibido el comprobante. El servicio consulta a la DGII hasta saberlo. Espere y no cree la factura otra vez.")
	case fiscal.Queued, fiscal.Submitted, fiscal.Processing, fiscal.Accepted, fiscal.AcceptedConditional, fiscal.Delivered:
	}
	return lang.Message{}
}
