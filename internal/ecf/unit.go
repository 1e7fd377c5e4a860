package ecf

import (
	"bytes"
	_ "embed"
	"encoding/csv"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

//go:embed units.csv
var unitsCSV string

// maxUnit is the last code of the authority's table of units. The API has a few
// codes beyond it, which a document cannot carry.
const maxUnit = 62

// unitTable is the authority's table of units, by code and by the words that
// integrators use.
type unitTable struct {
	names [maxUnit + 1]string
	// words are the abbreviations, the names and the synonyms, as unitKey writes them. An
	// abbreviation counts before an equal name, and a name before an equal synonym.
	words map[string]int
}

var units = sync.OnceValue(func() *unitTable {
	t := &unitTable{words: make(map[string]int)}
	names, synonyms := make(map[string]int), make(map[string]int)
	for _, row := range table(unitsCSV) {
		code, _ := strconv.Atoi(row[0]) // a test checks every row
		if code < 1 || code > maxUnit {
			continue
		}
		t.names[code] = row[1]
		t.words[unitKey(row[1])] = code
		for name := range strings.SplitSeq(row[2], "/") {
			names[unitKey(name)] = code
		}
		for synonym := range strings.SplitSeq(row[6], ";") {
			synonyms[unitKey(synonym)] = code
		}
	}
	for _, others := range []map[string]int{names, synonyms} {
		for word, code := range others {
			if _, known := t.words[word]; !known {
				t.words[word] = code
			}
		}
	}
	return t
})

// table returns the rows of an embedded CSV file, without the header.
func table(text string) [][]string {
	rows, _ := csv.NewReader(strings.NewReader(text)).ReadAll() // a test checks every file
	if len(rows) == 0 {
		return nil
	}
	return rows[1:]
}

// UnitName returns the authority's abbreviation of a unit, and "" for a code that
// is not in its table.
func UnitName(code int) string {
	if code < 1 || code > maxUnit {
		return ""
	}
	return units().names[code]
}

// unitCode returns the unit code of a line: the code of the request, or else the
// code that the words mean, or else 0. A code beyond the authority's table gives
// 0, and the words are then ignored.
func unitCode(code int, words string) int {
	if code != 0 {
		if code > maxUnit {
			return 0
		}
		return code
	}
	if words == "" {
		return 0
	}
	if found := units().words[words]; found != 0 {
		return found // unitKey would not change the words
	}
	var buffer [80]byte
	key := appendUnitKey(buffer[:0], words)
	if found := units().words[string(key)]; found != 0 {
		return found
	}
	// A plural. The stem has at least three letters, so that "mes" (month) does
	// not become "m" (metre).
	for _, ending := range [...]string{"s", "es"} {
		if stem, ok := bytes.CutSuffix(key, []byte(ending)); ok && len(stem) >= 3 {
			if found := units().words[string(stem)]; found != 0 {
				return found
			}
		}
	}
	return 0
}

func unitKey(s string) string { return string(appendUnitKey(nil, s)) }

// appendUnitKey writes a unit for comparison: lower case, no accents, no
// punctuation, single spaces, superscript 2 and 3 as digits.
func appendUnitKey(b []byte, s string) []byte {
	if strings.ContainsFunc(s, func(r rune) bool { return r > 0xff }) {
		s = fold(s)
	}
	for _, r := range s {
		switch r = plainLetter(unicode.ToLower(r)); {
		case r == ' ':
			if len(b) > 0 && b[len(b)-1] != ' ' {
				b = append(b, ' ')
			}
		case r != 0:
			b = utf8.AppendRune(b, r)
		}
	}
	return bytes.TrimSuffix(b, []byte(" "))
}

// plainLetter returns a letter of Latin-1 without its accent, a space for white
// space, other letters and digits unchanged, and 0 for the rest.
func plainLetter(r rune) rune {
	switch r {
	case 'á', 'à', 'ä', 'â', 'ã', 'å':
		return 'a'
	case 'é', 'è', 'ë', 'ê':
		return 'e'
	case 'í', 'ì', 'ï', 'î':
		return 'i'
	case 'ó', 'ò', 'ö', 'ô', 'õ':
		return 'o'
	case 'ú', 'ù', 'ü', 'û':
		return 'u'
	case 'ñ':
		return 'n'
	case 'ç':
		return 'c'
	case '²':
		return '2'
	case '³':
		return '3'
	}
	switch {
	case unicode.IsSpace(r):
		return ' '
	case unicode.IsLetter(r), unicode.IsDigit(r):
		return r
	}
	return 0
}
