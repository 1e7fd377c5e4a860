package printed

import (
	"strings"

	"golang.org/x/text/unicode/norm"
)

// clean returns a text that can be printed on one line. It composes characters,
// replaces each run of white space by one space, and replaces each character
// that the fonts do not have by a visible substitute. It removes only characters
// without a shape, such as joiners and direction marks.
func clean(s string) string {
	return strings.Join(strings.Fields(printable(s)), " ")
}

// cleanLines is clean for a text of several lines. It removes empty lines at the
// beginning and the end, and replaces several empty lines in a row by one.
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

func printable(s string) string { return strings.Map(printableRune, norm.NFC.String(s)) }

// wrap breaks a cleaned text into lines no wider than w. It breaks between words,
// and inside a word that is wider than w. It returns at least one line.
func wrap(text string, s style, w float64) []string {
	if s.fits(text, w) {
		return []string{text}
	}
	fits := func(units int) bool { return s.length(units) <= w+tolerance }
	var lines []string
	// The line so far is text[start:end], and used units wide.
	start, end, used, space := 0, 0, 0, s.units(" ")
	for from := 0; from <= len(text); {
		to := len(text)
		if i := strings.IndexByte(text[from:], ' '); i >= 0 {
			to = from + i
		}
		n := s.units(text[from:to])
		if end > start && fits(used+space+n) {
			end, used = to, used+space+n
			from = to + 1
			continue
		}
		if end > start {
			lines = append(lines, text[start:end])
		}
		start, end, used = from, to, n
		for !fits(used) {
			n := prefix(text[start:end], s, w)
			if n == end-start {
				break
			}
			lines = append(lines, text[start:start+n])
			start += n
			used = s.units(text[start:end])
		}
		from = to + 1
	}
	return append(lines, text[start:end])
}

// prefix returns how many bytes of a word fit into w, at least those of one
// character.
func prefix(word string, s style, w float64) int {
	room := int(w * 1000 / (s.size * millimetre))
	for i, r := range word {
		if room -= s.units(string(r)); room < 0 && i > 0 {
			return i
		}
	}
	return len(word)
}
