package printed

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// clean returns a text as it can be printed on one line: composed, every run of
// white space as one space, and every character that the fonts lack as a
// visible substitute. Only characters that have no shape of their own, such as
// joiners and marks of direction, are left out.
func clean(s string) string {
	return strings.Join(strings.Fields(printable(s)), " ")
}

// cleanLines is clean for a text of several lines. Empty lines at the ends are
// dropped, and several in a row count as one.
func cleanLines(s string) []string {
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n\n", "\v", "\n", "\f", "\n").Replace(s)
	var lines []string
	for line := range strings.SplitSeq(s, "\n") {
		line = clean(line)
		if line == "" && (len(lines) == 0 || lines[len(lines)-1] == "") {
			continue
		}
		lines = append(lines, line)
	}
	if n := len(lines); n > 0 && lines[n-1] == "" {
		lines = lines[:n-1]
	}
	return lines
}

func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == '\u00AD': // a place to break a word at, not a hyphen
			return -1
		case has(r):
			return r
		case unicode.In(r, unicode.Cf, unicode.Variation_Selector):
			return -1
		}
		return missing
	}, norm.NFC.String(s))
}

// wrap breaks a cleaned text into lines no wider than w, between words where
// there is room for them and inside of one where there is none. It never
// returns nothing.
func wrap(text string, s style, w float64) []string {
	if s.fits(text, w) {
		return []string{text}
	}
	var lines []string
	line := ""
	for word := range strings.SplitSeq(text, " ") {
		if line != "" {
			if s.fits(line+" "+word, w) {
				line += " " + word
				continue
			}
			lines = append(lines, line)
		}
		line = word
		for !s.fits(line, w) {
			n := prefix(line, s, w)
			if n == len(line) {
				break
			}
			lines = append(lines, line[:n])
			line = line[n:]
		}
	}
	return append(lines, line)
}

// prefix returns how many bytes of a word fit into w, at least one character.
func prefix(word string, s style, w float64) int {
	room := int(w * 1000 / (s.size * millimetre))
	for i, r := range word {
		if room -= s.units(string(r)); room < 0 && i > 0 {
			return i
		}
	}
	return len(word)
}
