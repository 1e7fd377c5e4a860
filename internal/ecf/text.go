package ecf

import (
	"math/bits"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// clean normalises a text for the XML: it composes characters (NFC), trims white
// space, replaces each run of tabs and line breaks by one space, and removes the
// characters that XML cannot carry. It never joins two words.
func clean(s string) string {
	if isPlain(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	space := false
	for _, r := range strings.ToValidUTF8(s, "") {
		switch {
		case r == '\t' || r == '\n' || r == '\r':
			if !space {
				b.WriteByte(' ')
			}
			space = true
			continue
		case r < 0x20, r == 0xfffe, r == 0xffff:
			continue
		}
		b.WriteRune(r)
		space = false
	}
	return norm.NFC.String(strings.TrimSpace(b.String()))
}

// isPlain reports whether clean would not change a text, which is true of most
// texts: no controls, no white space at its ends, and no character beyond U+02FF,
// because all characters up to there are composed.
func isPlain(s string) bool {
	for i := 0; i < len(s); i++ {
		if i+8 <= len(s) {
			// Eight bytes at once, when none is a control or beyond ASCII.
			if x := load(s, i); (x|(x-ones*0x20))&(ones*0x80) == 0 {
				i += 7
				continue
			}
		}
		switch c := s[i]; {
		case c < 0x20:
			return false
		case c < utf8.RuneSelf:
		case c >= 0xc2 && c <= 0xcb && i+1 < len(s) && s[i+1]&0xc0 == 0x80:
			i++
		default:
			return false
		}
	}
	return len(strings.TrimSpace(s)) == len(s)
}

// ones has the value 1 in each byte.
const ones = 0x0101010101010101

// load returns eight bytes of a text as one number.
func load(s string, i int) uint64 {
	_ = s[i+7]
	return uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
		uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
}

// fits reports whether a text has at most the given number of characters.
func fits(s string, most int) bool { return len(s) <= most || utf8.RuneCountInString(s) <= most }

// whole returns a text of at most the given number of characters, and "" for a
// longer text, because a cut identifier would be another identifier.
func whole(s string, most int) string {
	if !fits(s, most) {
		return ""
	}
	return s
}

// cut returns the beginning of a text, at most the given number of characters.
func cut(s string, most int) string {
	if fits(s, most) {
		return s
	}
	return strings.TrimSpace(s[:offset(s, most)])
}

// offset returns the byte offset of character n, or the length of a shorter text.
func offset(s string, n int) int {
	i := 0
	for ; n >= 8 && i+8 <= len(s); i += 8 {
		x := load(s, i)
		// A byte 10xxxxxx continues a character; every other byte begins one.
		n -= 8 - bits.OnesCount64(x>>7&^(x>>6)&ones)
	}
	for ; i < len(s); i++ {
		if s[i]&0xc0 == 0x80 {
			continue
		}
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

// cutMarked is cut with an ellipsis as the last character of a text that was cut.
func cutMarked(s string, most int) string {
	if fits(s, most) {
		return s
	}
	return cut(s, most-1) + "…"
}

// cutAtWord is cut after a whole word, when the text has one that fits.
func cutAtWord(s string, most int) string {
	end := offset(s, most)
	if end == len(s) {
		return s
	}
	if next, _ := utf8.DecodeRuneInString(s[end:]); !unicode.IsSpace(next) {
		if space := strings.LastIndexFunc(s[:end], unicode.IsSpace); space > 0 {
			end = space
		}
	}
	return strings.TrimSpace(s[:end])
}

// fold returns a text for comparison: upper case, no accents, single spaces.
func fold(s string) string {
	var b strings.Builder
	for _, r := range norm.NFD.String(s) {
		if !unicode.Is(unicode.Mn, r) {
			b.WriteRune(unicode.ToUpper(r))
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// paymentTerm returns the payment terms as the format allows them: letters,
// digits and spaces, at most 15 characters. It returns "" for longer terms,
// because a part of them would mislead; the printed page has them in full.
func paymentTerm(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return -1
	}, clean(s))
	return whole(strings.Join(strings.Fields(s), " "), maxTerm)
}

// email returns an e-mail address that every implementation of the format's
// pattern accepts, and "" for others: the element is optional, and nothing is
// sent to it.
func email(s string) string {
	local, domain, _ := strings.Cut(clean(s), "@")
	if !fits(s, 80) || !isWords(local, "-+.") || !isWords(domain, "-.") || !strings.Contains(domain, ".") {
		return ""
	}
	return local + "@" + domain
}

// isWords reports whether s is ASCII letters and digits with single separators
// between them.
func isWords(s, separators string) bool {
	inWord := false
	for i := range len(s) {
		switch {
		case isAlphanumeric(s[i]):
			inWord = true
		case inWord && strings.IndexByte(separators, s[i]) >= 0:
			inWord = false
		default:
			return false
		}
	}
	return inWord
}

// isDigits reports whether s is only digits, and as many as one of the lengths.
func isDigits(s string, lengths ...int) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	for _, n := range lengths {
		if len(s) == n {
			return true
		}
	}
	return false
}
