package xmlsig

import (
	"strconv"
	"strings"
)

// maxReference is longer than any reference that is read, from & to ;
const maxReference = len("&#x10FFFF;") + 2

// text resolves the references and line ends of a text that stands at an offset.
func (p *parser) text(s string, at int) (string, error) {
	resolve := false
	for i := range len(s) {
		switch s[i] {
		case '&', '\r':
			resolve = true
		case '>':
			if i >= 2 && s[i-2:i] == "]]" {
				return "", p.fail(at+i-2, "]]> in text, where XML has ]]&gt;")
			}
		}
	}
	if !resolve {
		return s, nil
	}
	b := make([]byte, 0, len(s))
	for start := 0; start < len(s); {
		i := strings.IndexByte(s[start:], '&')
		if i < 0 {
			return string(append(b, normalizeLines(s[start:])...)), nil
		}
		i += start
		b = append(b, normalizeLines(s[start:i])...)
		length := strings.IndexByte(s[i:min(i+maxReference, len(s))], ';')
		r, ok := rune(0), false
		if length > 0 {
			r, ok = reference(s[i+1 : i+length])
		}
		if !ok {
			return "", p.fail(at+i, "an & that starts neither a predefined entity nor a reference to a character of XML")
		}
		b = append(b, string(r)...)
		start = i + length + 1
	}
	return string(b), nil
}

// reference returns the character that stands between & and ; in a reference.
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
	// ParseUint takes no sign, and underscores in base 0 alone.
	n, err := strconv.ParseUint(digits, base, 21)
	r := rune(n)
	return r, err == nil && isCharacter(r)
}

// isCharacter reports whether XML 1.0 has a character.
func isCharacter(r rune) bool {
	switch {
	case r < 0x20:
		return r == '\t' || r == '\n' || r == '\r'
	case r < 0xd800:
		return true
	}
	return 0xe000 <= r && r <= 0xfffd || 0x10000 <= r && r <= 0x10ffff
}

// normalizeLines makes every line end of a file a line feed, as XML has it.
func normalizeLines(s string) string {
	if strings.IndexByte(s, '\r') < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}
