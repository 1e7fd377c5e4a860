// Package xmlsig owns XML signatures. A Writer writes documents in canonical form
// and signs them with an enveloped RSA-SHA256 signature over inclusive
// Canonical XML 1.0. Verify verifies signatures of other parties, in the forms
// that are safe and common. OpenP12 reads certificates and keys from PKCS#12
// files. The package knows nothing of a tax authority.
package xmlsig

import (
	"crypto/sha256"
	"hash"
	"slices"
	"strings"
	"unicode/utf8"
)

// declarationXML comes before the root and is not signed.
const declarationXML = `<?xml version="1.0" encoding="utf-8"?>`

// block is the number of bytes that are written before they are digested, so that
// they are still in the processor's cache.
const block = 16 << 10

// A Writer writes one document directly in canonical form, so that the bytes that
// are digested, sent and stored are the same. It writes names without a check,
// escapes text, and leaves out characters that XML cannot carry.
type Writer struct {
	root       string
	namespaces string // of the root, in canonical form
	buf        []byte
	digest     hash.Hash
	digested   int   // the end of the bytes that the digest has seen
	tree       *tree // is built instead of XML, unless it is nil
}

// A Namespace is a namespace declaration with a prefix on the root of a document.
type Namespace struct{ Prefix, URI string }

// NewWriter starts a document with its root element. size is the expected number
// of bytes.
func NewWriter(root string, size int, namespaces ...Namespace) *Writer {
	w := &Writer{root: root, buf: make([]byte, 0, len(declarationXML)+size+signatureSize), digest: sha256.New()}
	w.buf = append(w.buf, declarationXML...)
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

// Open writes the start tag of an element.
func (w *Writer) Open(name string) {
	if w.tree != nil {
		w.tree.open(name)
		return
	}
	b := append(w.buf, '<')
	b = append(b, name...)
	w.set(append(b, '>'))
}

// Close writes the end tag of an element.
func (w *Writer) Close(name string) {
	if w.tree != nil {
		w.tree.close()
		return
	}
	b := append(w.buf, '<', '/')
	b = append(b, name...)
	w.set(append(b, '>'))
	w.flush()
}

// flush digests the written bytes when there are enough of them.
func (w *Writer) flush() {
	if len(w.buf)-w.digested >= block {
		w.digest.Write(w.buf[w.digested:])
		w.digested = len(w.buf)
	}
}

// Text writes an element with a text. It writes nothing when the text is empty,
// because our documents have no empty elements.
func (w *Writer) Text(name, text string) {
	if text == "" || text[0] >= utf8.RuneSelf || text[0] < ' ' {
		if text = carried(text); text == "" { // XML can carry no character of the text
			return
		}
	}
	w.Element(name, text)
}

// Element writes an element with a text, even when the text is empty.
func (w *Writer) Element(name, text string) {
	if w.tree != nil {
		w.tree.leaf(name, carried(text))
		return
	}
	w.Open(name)
	w.set(AppendText(w.buf, text))
	w.Close(name)
}

// Value writes an element with the text that a function appends. The text must need
// no escape, as a number or a date.
func (w *Writer) Value(name string, value func([]byte) []byte) {
	if w.tree != nil {
		w.tree.value(name, value)
		return
	}
	w.Open(name)
	w.set(value(w.buf))
	w.Close(name)
}

// set replaces the buffer by one that was appended to. While the buffer does not grow, only
// its length changes.
func (w *Writer) set(b []byte) {
	if cap(b) == cap(w.buf) {
		w.buf = w.buf[:len(b)]
		return
	}
	w.buf = b
}

// Append writes what a function appends, which must be in canonical form: tags,
// numbers, and text of AppendText. A Writer of NewDocumentWriter cannot do so.
func (w *Writer) Append(content func([]byte) []byte) {
	if w.tree != nil {
		w.tree.raw = true
		return
	}
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

// AppendText appends text with the escapes of canonical XML. It leaves out
// characters that XML cannot carry.
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

// plainRun returns the end of a run of plain ASCII that begins at i. Plain bytes
// need no escape.
func plainRun(s string, i int) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	// Eight bytes at a time: the subtraction sets the high bit of every byte that
	// is smaller than the one subtracted. A borrow may also set the high bit of
	// the next byte, which the second loop then checks.
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

// appendAttribute appends the value of an attribute with the escapes of canonical
// XML.
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
