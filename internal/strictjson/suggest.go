package strictjson

import (
	"slices"
	"unicode"
	"unicode/utf8"
)

// maxNameLength bounds the names for which ClosestName looks, in bytes.
const maxNameLength = 64

// ClosestName returns the known name that someone who wrote name has probably meant:
// one that differs only in upper and lower case, in underscores and hyphens, in one
// letter, or in the order of two letters. It returns false when there is none.
//
// It allocates nothing, because a hostile body may have very many unknown names.
func ClosestName(name string, known []string) (string, bool) {
	if len(name) > maxNameLength {
		return "", false
	}
	var written, other letters
	written.set(name, true)
	for _, k := range known {
		if !similarLength(name, k) {
			continue
		}
		if other.set(k, true); slices.Equal(written.list(), other.list()) && written.n > 0 {
			return k, true
		}
	}
	written.set(name, false)
	for _, k := range known {
		if !similarLength(name, k) {
			continue
		}
		if other.set(k, false); differByOne(written.list(), other.list()) {
			return k, true
		}
	}
	return "", false
}

// similarLength reports whether two names can be similar. A letter has up to four bytes,
// and a name may lack its underscores.
func similarLength(a, b string) bool { return len(a)-len(b) <= 4 && len(b)-len(a) <= 4 }

// letters are the lower-case letters of a name.
type letters struct {
	runes [maxNameLength]rune
	n     int
}

func (l *letters) list() []rune { return l.runes[:l.n] }

// set reads a name of at most maxNameLength bytes; plain leaves out underscores and
// hyphens.
func (l *letters) set(name string, plain bool) {
	l.n = 0
	for _, r := range name[:min(len(name), maxNameLength)] {
		if plain && (r == '_' || r == '-') {
			continue
		}
		if r >= utf8.RuneSelf || r >= 'A' && r <= 'Z' {
			r = unicode.ToLower(r)
		}
		l.runes[l.n] = r
		l.n++
	}
}

// differByOne reports whether one letter more, less or different, or two neighbours
// in the other order, make one name of the other.
func differByOne(a, b []rune) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 {
		return false
	}
	same := 0
	for same < len(a) && a[same] == b[same] {
		same++
	}
	a, b = a[same:], b[same:]
	if len(a) < len(b) {
		return slices.Equal(a, b[1:])
	}
	return len(a) == 0 || slices.Equal(a[1:], b[1:]) ||
		len(a) > 1 && a[0] == b[1] && a[1] == b[0] && slices.Equal(a[2:], b[2:])
}
