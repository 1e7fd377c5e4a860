package overview

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/fiscalhub/fiscalhub/internal/store"
)

const (
	maxWords    = 12 // of a name
	maxWordSize = 40 // bytes
)

// words returns the words of a text in the form of the search: lower case, without
// accents and punctuation. So "Ferretería PÉREZ, S.R.L." gives ferreteria, perez and srl.
// Points inside of a word are dropped, other signs divide words.
func words(text string) []string {
	var b strings.Builder
	for _, c := range norm.NFD.String(text) {
		switch {
		case unicode.Is(unicode.Mn, c), c == '.', c == '\'', c == '’':
		case unicode.IsLetter(c), unicode.IsDigit(c):
			b.WriteRune(unicode.ToLower(c))
		default:
			b.WriteByte(' ')
		}
	}
	all := strings.Fields(b.String())
	all = all[:min(len(all), maxWords)]
	for i, word := range all {
		all[i] = cut(word)
	}
	return all
}

// cut shortens a word to maxWordSize bytes and keeps its letters whole.
func cut(word string) string {
	if len(word) <= maxWordSize {
		return word
	}
	end := maxWordSize
	for !utf8.RuneStart(word[end]) {
		end--
	}
	return word[:end]
}

// buyerOf reads the buyer from the canonical request of an invoice. It is zero when the
// request names none.
func buyerOf(scope store.Scope, request []byte) store.Buyer {
	var body struct {
		Buyer struct {
			LegalName string `json:"legal_name"`
			TaxID     string `json:"tax_id"`
		} `json:"buyer"`
	}
	// A request that was stored was valid. If it cannot be read, the document is found
	// by its other values.
	if err := json.Unmarshal(request, &body); err != nil {
		return store.Buyer{}
	}
	return store.NewBuyer(scope, body.Buyer.TaxID, body.Buyer.LegalName, words(body.Buyer.LegalName))
}
