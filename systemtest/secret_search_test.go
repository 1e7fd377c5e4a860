package systemtest

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// A secretSearch finds secrets in files, logs and answers: as they are, and in every form
// in which a program may write bytes.
type secretSearch struct {
	values  map[string][][]byte // the secrets by name; a name may have several
	needles map[uint64][]needle // by their first 8 bytes
	starts  [1 << 16]bool       // the first two bytes of all needles
}

// A needle is a form of a piece of a secret.
type needle struct {
	bytes      []byte
	name, form string
}

func newSecretSearch() *secretSearch {
	return &secretSearch{values: make(map[string][][]byte), needles: make(map[uint64][]needle)}
}

// pieceSize is the size of the pieces in which a long secret is searched: a page of a
// database, a line of a PEM file or a limit of a log may split it. 16 bytes are a third of
// a line of a PEM file.
const pieceSize = 16

// add adds a secret. It fails the test when the secret is too short to be found without
// doubt.
func (s *secretSearch) add(t *testing.T, name string, value []byte) {
	t.Helper()
	if len(value) < 12 {
		t.Fatalf("the secret %s has only %d bytes", name, len(value))
	}
	if slices.ContainsFunc(s.values[name], func(known []byte) bool { return bytes.Equal(known, value) }) {
		return
	}
	s.values[name] = append(s.values[name], value)
	for _, piece := range pieces(value, pieceSize) {
		for form, text := range encodings(piece) {
			s.addNeedle(t, needle{text, name, form})
		}
	}
	for form, text := range escapes(value) {
		for _, piece := range pieces(text, 2*pieceSize) {
			s.addNeedle(t, needle{piece, name, form})
		}
	}
}

func (s *secretSearch) addNeedle(t *testing.T, n needle) {
	t.Helper()
	if len(n.bytes) < 8 {
		t.Fatalf("the form %s of the secret %s has only %d bytes", n.form, n.name, len(n.bytes))
	}
	start := binary.BigEndian.Uint64(n.bytes)
	s.needles[start] = append(s.needles[start], n)
	s.starts[start>>48] = true
}

// pieces splits a value into pieces of a size. The last piece may have twice the size.
func pieces(value []byte, size int) [][]byte {
	var all [][]byte
	for len(value) >= 2*size {
		all, value = append(all, value[:size]), value[size:]
	}
	return append(all, value)
}

// encodings returns the forms of bytes in which each byte stands for itself.
func encodings(b []byte) map[string][]byte {
	forms := map[string][]byte{
		"raw":     b,
		"hex":     []byte(hex.EncodeToString(b)),
		"HEX":     []byte(strings.ToUpper(hex.EncodeToString(b))),
		"% x":     fmt.Appendf(nil, "% x", b),
		"%v":      bytes.Trim(fmt.Append(nil, b), "[]"),
		"%#v":     []byte(strings.Trim(strings.TrimPrefix(fmt.Sprintf("%#v", b), "[]byte"), "{}")),
		"numbers": bytes.ReplaceAll(bytes.Trim(fmt.Append(nil, b), "[]"), []byte(" "), []byte(",")),
		"query":   []byte(url.QueryEscape(string(b))),
		"path":    []byte(url.PathEscape(string(b))),
	}
	for alignment := range 3 {
		for name, encoding := range map[string]*base64.Encoding{"base64": base64.RawStdEncoding, "base64url": base64.RawURLEncoding} {
			// The first and the last character may also have bits of other bytes.
			encoded := encoding.EncodeToString(append(make([]byte, alignment), b...))
			forms[fmt.Sprintf("%s+%d", name, alignment)] = []byte(encoded)[(alignment*8+5)/6 : (alignment+len(b))*8/6]
		}
	}
	return forms
}

// escapes returns the forms of a value in which an escape may stand for several bytes.
func escapes(value []byte) map[string][]byte {
	forms := map[string][]byte{
		"quoted": []byte(strings.Trim(strconv.Quote(string(value)), `"`)),
		"ascii":  []byte(strings.Trim(strconv.QuoteToASCII(string(value)), `"`)),
	}
	if !utf8.Valid(value) {
		return forms
	}
	for name, html := range map[string]bool{"JSON": false, "JSON+HTML": true} {
		var out bytes.Buffer
		e := json.NewEncoder(&out)
		e.SetEscapeHTML(html)
		_ = e.Encode(string(value)) // a text can always be encoded
		forms[name] = bytes.Trim(bytes.TrimSpace(out.Bytes()), `"`)
	}
	var out bytes.Buffer
	_ = xml.EscapeText(&out, value) // a buffer can always be written
	forms["XML"] = out.Bytes()
	return forms
}

// find returns the first place of each secret that the content has, by name.
func (s *secretSearch) find(content []byte) map[string]string {
	found := map[string]string{}
	for at := 0; at+8 <= len(content); at++ {
		if !s.starts[binary.BigEndian.Uint16(content[at:])] {
			continue
		}
		for _, n := range s.needles[binary.BigEndian.Uint64(content[at:])] {
			if found[n.name] == "" && bytes.HasPrefix(content[at:], n.bytes) {
				found[n.name] = fmt.Sprintf("as %s at byte %d: %q", n.form, at, content[max(0, at-150):min(len(content), at+len(n.bytes)+20)])
			}
		}
	}
	return found
}

// writings returns the texts in which a program could write a secret, by the name of the
// form: each form of the whole secret, and base64 of a larger text.
func writings(value []byte) map[string][]byte {
	all := encodings(value)
	maps.Copy(all, escapes(value))
	for _, around := range []string{"", "a", "ab"} {
		all["base64 of a text after "+strconv.Quote(around)] = []byte(base64.StdEncoding.EncodeToString([]byte(around + string(value) + around)))
		all["base64url of a text after "+strconv.Quote(around)] = []byte(base64.URLEncoding.EncodeToString([]byte(around + string(value) + around)))
	}
	return all
}

// The search must be able to fail: it finds each secret in each form, also in the middle
// of other bytes.
func TestSearchFindsEveryFormOfASecret(t *testing.T) {
	t.Parallel()
	for name, value := range map[string][]byte{
		"a key of a service": {0, 1, 2, 0xff, 0xfe, 200, 7, 0, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32},
		"a password":         []byte(`cláve "de" <prueba> & \más/ %7c`),
		"an API key":         []byte("kT7vQm2XbN8cRz4LpW1sYf6HdJ9gAeUo3iV5tKxBqMnC0w"),
		"a short secret":     []byte("0123456789ab"),
	} {
		s := newSecretSearch()
		s.add(t, name, value)
		for form, text := range writings(value) {
			for _, content := range []string{string(text), "before " + string(text) + " after", strings.Repeat("x", 4096) + string(text)} {
				if s.find([]byte(content))[name] == "" {
					t.Errorf("%s is not found as %s: %q", name, form, text)
				}
			}
		}
		if found := s.find([]byte(strings.Repeat("0123456789a kT7vQm2XbN8cRz4 ", 100))); len(found) != 0 {
			t.Errorf("%s is found where it is not: %v", name, found)
		}
	}
}
