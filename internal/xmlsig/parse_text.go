package xmlsig

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxReference is longer than any valid reference, from & to ;
const maxReference = len("&#x10FFFF;") + 2

// text resolves the references and normalizes the line ends of a text at an
// offset.
func (p *parser) text(s string, at int) (string, error) {
	resolve := false
	for i := range len(s) {
		switch s[i] {
		case '&', '\r':
			resolve = true
		case '>':
			if i >= 2 && s[i-2:i] == "]]" {
				return "", p.fail(at+i-2, "]]> in text; it must be written ]]&gt;")
			}
		}
	}
	if !resolve {
		return s, nil
	}
	return p.resolveReferences(s, at, normalizeLines)
}

// attributeValue resolves the references of an attribute value at an offset and
// replaces tabs and line ends by spaces, as XML requires. References to these
// characters stay as they are.
func (p *parser) attributeValue(s string, at int) (string, error) {
	if strings.IndexByte(s, '&') < 0 {
		return normalizeSpaces(s), nil
	}
	return p.resolveReferences(s, at, normalizeSpaces)
}

// resolveReferences replaces each reference by its character, and the text
// between references by its normalized form.
func (p *parser) resolveReferences(s string, at int, normalize func(string) string) (string, error) {
	b := make([]byte, 0, len(s))
	for start := 0; start < len(s); {
		i := strings.IndexByte(s[start:], '&')
		if i < 0 {
			return string(append(b, normalize(s[start:])...)), nil
		}
		i += start
		b = append(b, normalize(s[start:i])...)
		length := strings.IndexByte(s[i:min(i+maxReference, len(s))], ';')
		r, ok := rune(0), false
		if length > 0 {
			r, ok = reference(s[i+1 : i+length])
		}
		if !ok {
			return "", p.fail(at+i, "& must start a predefined entity or a reference to a character of XML")
		}
		b = utf8.AppendRune(b, r)
		start = i + length + 1
	}
	return string(b), nil
}

// reference returns the character of a reference, given the text between & and ;.
func reference(name string) (rune, bool) {
	switch name {
	case "amp":
		return '&', true
	case "lt":
		return '<', true
	case "gt":
		return '>', true
	case "quot":
		return '"', true
	case "apos":
		return '\'', true
	}
	digits, ok := strings.CutPrefix(name, "#")
	if !ok {
		return 0, false
	}
	base := 10
	if hex, ok := strings.CutPrefix(digits, "x"); ok {
		digits, base = hex, 16
	}
	// ParseUint accepts no sign, and underscores only in base 0.
	n, err := strconv.ParseUint(digits, base, 21)
	r := rune(n)
	return r, err == nil && isCharacter(r)
}

// isCharacter reports whether XML 1.0 allows a character.
func isCharacter(r rune) bool {
	switch {
	case r < 0x20:
		return r == '\t' || r == '\n' || r == '\r'
	case r < 0xd800:
		return true
	}
	return 0xe000 <= r && r <= 0xfffd || 0x10000 <= r && r <= 0x10ffff
}

// normalizeLines replaces every line end by a line feed, as XML requires.
func normalizeLines(s string) string {
	if strings.IndexByte(s, '\r') < 0 {
		return s
	}
	return string(appendNormalized(make([]byte, 0, len(s)), s, '\n', false))
}

// normalizeSpaces replaces every line end and every tab by one space.
func normalizeSpaces(s string) string {
	if !strings.ContainsAny(s, "\t\n\r") {
		return s
	}
	return string(appendNormalized(make([]byte, 0, len(s)), s, ' ', true))
}

// appendNormalized appends a text whose line ends, and tabs if asked, become one
// character. It reads the text once, however many line ends there are.
func appendNormalized(b []byte, s string, lineEnd byte, tabs bool) []byte {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\r':
			b = append(b, lineEnd)
			if i+1 < len(s) && s[i+1] == '\n' {
				i++
			}
		case c == '\n':
			b = append(b, lineEnd)
		case c == '\t' && tabs:
			b = append(b, ' ')
		default:
			b = append(b, c)
		}
	}
	return b
}
