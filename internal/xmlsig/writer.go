// Package xmlsig owns XML signatures: documents written in canonical form and
// signed as they are written, the strict verification of what others have
// signed, and the certificates that come as PKCS#12 files. It knows no tax
// authority: one profile, enveloped RSA-SHA256 over inclusive C14N 1.0.
package xmlsig

import (
	"crypto/sha256"
	"hash"
	"slices"
	"strings"
	"unicode/utf8"
)

// declaration stands before the root and is not signed.
const declaration = `<?xml version="1.0" encoding="utf-8"?>`

// block is how much is written before it is digested, while it is still in the
// processor's cache.
const block = 16 << 10

// A Writer writes one document directly in canonical form, which is then its
// only form: what is digested, what is sent and what is stored are the same
// bytes. Names are the caller's constants and are written as they are; text is
// escaped, and what XML cannot carry is left out.
type Writer struct {
	root       string
	namespaces string // of the root, as they stand in a canonical start tag
	buf        []byte
	digest     hash.Hash
	digested   int // where the bytes end that the digest has seen
}

// A Namespace is a declaration on the root of a document.
type Namespace struct{ Prefix, URI string }

// NewWriter starts a document with its root element. size is how many bytes it
// is likely to have.
func NewWriter(root string, size int, namespaces ...Namespace) *Writer {
	w := &Writer{root: root, buf: make([]byte, 0, len(declaration)+size+signatureSize), digest: sha256.New()}
	w.buf = append(w.buf, declaration...)
	w.digested = len(w.buf)
	w.namespaces = declarations(namespaces)
	w.buf = append(w.buf, '<')
	w.buf = append(w.buf, root...)
	w.buf = append(w.buf, w.namespaces...)
	w.buf = append(w.buf, '>')
	return w
}

// declarations writes namespaces in canonical order, by prefix.
func declarations(namespaces []Namespace) string {
	var b []byte
	for _, n := range slices.SortedFunc(slices.Values(namespaces), func(a, b Namespace) int { return strings.Compare(a.Prefix, b.Prefix) }) {
		b = append(b, " xmlns:"...)
		b = append(b, n.Prefix...)
		b = append(b, '=', '"')
		b = appendAttribute(b, n.URI)
		b = append(b, '"')
	}
	return string(b)
}

// Open starts an element that holds elements.
func (w *Writer) Open(name string) {
	w.buf = append(w.buf, '<')
	w.buf = append(w.buf, name...)
	w.buf = append(w.buf, '>')
}

// Close ends an element.
func (w *Writer) Close(name string) {
	w.buf = append(w.buf, '<', '/')
	w.buf = append(w.buf, name...)
	w.buf = append(w.buf, '>')
	w.flush()
}

// flush digests what has been written, once it is worth it.
func (w *Writer) flush() {
	if len(w.buf)-w.digested >= block {
		w.digest.Write(w.buf[w.digested:])
		w.digested = len(w.buf)
	}
}

// Text writes an element that holds text, and nothing when there is no text: no
// document of ours has an empty element.
func (w *Writer) Text(name, text string) {
	if text == "" {
		return
	}
	start := len(w.buf)
	w.Open(name)
	body := len(w.buf)
	w.buf = AppendText(w.buf, text)
	if len(w.buf) == body { // it had nothing but what XML cannot carry
		w.buf = w.buf[:start]
		return
	}
	w.Close(name)
}

// Append writes what a function appends, which must be in canonical form: tags
// written out, numbers, and text by AppendText. It is the fast way for what
// there is much of.
func (w *Writer) Append(content func([]byte) []byte) {
	w.buf = content(w.buf)
	w.flush()
}

// Unsigned ends the document without a signature.
func (w *Writer) Unsigned() []byte {
	w.end()
	return w.buf
}

func (w *Writer) end() {
	w.buf = append(w.buf, '<', '/')
	w.buf = append(w.buf, w.root...)
	w.buf = append(w.buf, '>')
}

// AppendText appends text, escaped as canonical XML does. What XML cannot carry
// is left out.
func AppendText(b []byte, s string) []byte {
	start := 0
	for i := plainRun(s, 0); i < len(s); i = plainRun(s, i) {
		c := s[i]
		if c < utf8.RuneSelf {
			b = append(b, s[start:i]...)
			i++
			start = i
			switch c {
			case '&':
				b = append(b, "&amp;"...)
			case '<':
				b = append(b, "&lt;"...)
			case '>':
				b = append(b, "&gt;"...)
			case '\r':
				b = append(b, "&#xD;"...)
			case '\t', '\n':
				b = append(b, c)
			}
			continue
		}
		if c >= 0xc2 && c <= 0xdf && i+1 < len(s) && s[i+1]&0xc0 == 0x80 {
			i += 2 // the accents of Spanish
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 || r == 0xfffe || r == 0xffff {
			b = append(b, s[start:i]...)
			start = i + size
		}
		i += size
	}
	return append(b, s[start:]...)
}

// plainRun returns where a run of plain ASCII that begins at i ends: where a
// byte has to be looked at.
func plainRun(s string, i int) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	// Eight bytes at a time. A byte below another has its high bit set by the
	// subtraction; one above it may be taken for one as well, and is only
	// looked at.
	for ; i+8 <= len(s); i += 8 {
		x := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
			uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
		odd := x | (x - ones*0x20) | ((x ^ ones*'&') - ones) | ((x ^ ones*'<') - ones) | ((x ^ ones*'>') - ones)
		if odd&high != 0 {
			break
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c >= utf8.RuneSelf || c == '&' || c == '<' || c == '>' {
			break
		}
	}
	return i
}

// appendAttribute escapes the value of an attribute as canonical XML does.
func appendAttribute(b []byte, s string) []byte {
	for i := range len(s) {
		switch c := s[i]; c {
		case '&':
			b = append(b, "&amp;"...)
		case '<':
			b = append(b, "&lt;"...)
		case '"':
			b = append(b, "&quot;"...)
		case '\t':
			b = append(b, "&#x9;"...)
		case '\n':
			b = append(b, "&#xA;"...)
		case '\r':
			b = append(b, "&#xD;"...)
		default:
			b = append(b, c)
		}
	}
	return b
}
