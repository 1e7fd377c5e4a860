package overview

import (
	"bytes"
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

// buyerOf reads the buyer from the canonical request of an invoice, or from its
// beginning: the members of a canonical request are sorted, and the buyer is the first. It
// is zero when the request names none, or cannot be read: a request that was stored was
// valid, and the document is found by its other values.
func buyerOf(scope store.Scope, request []byte) store.Buyer {
	var buyer struct {
		LegalName string `json:"legal_name"`
		TaxID     string `json:"tax_id"`
	}
	r := json.NewDecoder(bytes.NewReader(request))
	if _, err := r.Token(); err != nil { // {
		return store.Buyer{}
	}
	for {
		name, err := r.Token()
		if err != nil || name == json.Delim('}') {
			return store.Buyer{}
		}
		if name == "buyer" {
			break
		}
		var other json.RawMessage
		if r.Decode(&other) != nil {
			return store.Buyer{}
		}
	}
	if r.Decode(&buyer) != nil {
		return store.Buyer{}
	}
	return store.NewBuyer(scope, buyer.TaxID, buyer.LegalName, words(buyer.LegalName))
}
