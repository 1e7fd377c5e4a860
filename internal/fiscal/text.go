package fiscal

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// maxEcho is the number of characters of a submitted value that a message may
// repeat.
const maxEcho = 64

// cut returns at most maxEcho characters of a submitted value.
func cut(s string) string {
	if len(s) <= maxEcho {
		return s
	}
	count := 0
	for i := range s {
		if count == maxEcho-1 && utf8.RuneCountInString(s[i:]) > 1 {
			return s[:i] + "…"
		}
		count++
	}
	return s
}

// A textRule describes a text field. Lengths are in characters.
type textRule struct {
	min, max  int
	multiline bool // may have tabs and line breaks
}

// A fault is the code and the message of a problem, without its field.
type fault struct {
	code    string
	message lang.Message
}

// check returns the most important fault of a text, or the zero fault when the
// text is valid.
func (r textRule) check(s string) fault {
	n, ok := scanText(s, r.multiline)
	switch {
	case !ok:
		return faultCharacters(r.multiline)
	case n == 0 || n < r.min && !blank(s):
		return fault{CodeTooShort, lang.Messagef("must have at least %d characters", "debe tener un mínimo de %d caracteres", r.min)}
	case n > r.max:
		return fault{CodeTooLong, AtMost(r.max)}
	case blank(s):
		return fault{CodeBlank, lang.Messagef("must not be blank", "no debe estar en blanco")}
	}
	return fault{}
}

// AtMost says how many characters a text may have.
func AtMost(characters int) lang.Message {
	return lang.Messagef("must have at most %d characters", "debe tener un máximo de %d caracteres", characters)
}

func faultCharacters(multiline bool) fault {
	if multiline {
		return fault{CodeInvalidCharacters, lang.Messagef(
			"must have no control characters other than tab and line breaks, no U+FFFE or U+FFFF and no bidirectional overrides",
			"no debe tener caracteres de control salvo tabulador y saltos de línea, ni U+FFFE o U+FFFF, ni marcas de dirección del texto")}
	}
	return fault{CodeInvalidCharacters, lang.Messagef(
		"must have no control characters, no U+FFFE or U+FFFF and no bidirectional overrides",
		"no debe tener caracteres de control, ni U+FFFE o U+FFFF, ni marcas de dirección del texto")}
}

// scanText counts the characters of s and reports whether a fiscal document may
// have all of them. XML 1.0 cannot carry control characters, U+FFFE and U+FFFF,
// and a bidirectional override makes a printed invoice show another text than
// the signed one.
func scanText(s string, multiline bool) (n int, ok bool) {
	for n < len(s) && s[n] >= 0x20 && s[n] < utf8.RuneSelf {
		n++ // most text is ASCII, or starts with ASCII
	}
	for _, r := range s[n:] {
		n++
		switch {
		case r >= 0x20 && r < 0x202a:
		case r < 0x20:
			if !multiline || r != '\t' && r != '\n' && r != '\r' {
				return n, false
			}
		case r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0xfffe, r == 0xffff:
			return n, false
		}
	}
	return n, true
}

func blank(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return !unicode.IsSpace(r) }) < 0
}

// isTaxID reports whether s has the form of a buyer's identifier: an RNC, a
// cédula, or the ten digits that some foreign identifiers have.
func isTaxID(s string) bool { return IsRNC(s) || len(s) == 10 && isDigits(s) }

// isCountryCode reports whether s is two upper-case letters.
func isCountryCode(s string) bool {
	return len(s) == 2 && s[0] >= 'A' && s[0] <= 'Z' && s[1] >= 'A' && s[1] <= 'Z'
}

// isEmail reports whether s is a plain e-mail address: a dot-atom of ASCII, one @
// and a domain name of at least two labels. Quoted local parts and address
// literals are valid in mail, but no recipient of an invoice has them.
func isEmail(s string) bool {
	local, domain, ok := strings.Cut(s, "@")
	if !ok {
		return false
	}
	for atom := range strings.SplitSeq(local, ".") {
		if atom == "" || strings.IndexFunc(atom, func(r rune) bool { return !isAtext(r) }) >= 0 {
			return false
		}
	}
	labels, last := 0, ""
	for label := range strings.SplitSeq(domain, ".") {
		if !isLabel(label) {
			return false
		}
		labels++
		last = label
	}
	return labels >= 2 && isTopLevel(last)
}

func isAtext(r rune) bool { return isAlphanumeric(r) || strings.ContainsRune("!#$%&'*+-/=?^_`{|}~", r) }

func isLabel(s string) bool {
	return s != "" && s[0] != '-' && s[len(s)-1] != '-' &&
		strings.IndexFunc(s, func(r rune) bool { return r != '-' && !isAlphanumeric(r) }) < 0
}

// isTopLevel reports whether s can be a top-level domain: two letters or more, or
// an internationalised name (xn--), which may have digits and hyphens.
func isTopLevel(s string) bool {
	if strings.HasPrefix(strings.ToLower(s), "xn--") {
		return true
	}
	return len(s) >= 2 && strings.IndexFunc(s, func(r rune) bool { return !isLetter(r) }) < 0
}

func isLetter(r rune) bool       { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }
func isAlphanumeric(r rune) bool { return isLetter(r) || r >= '0' && r <= '9' }
