package xmlsig_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/lestrrat-go/helium"
	"github.com/lestrrat-go/helium/c14n"
	"github.com/lestrrat-go/helium/xmldsig1"

	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig/xmlsigtest"
)

// signer is the identity that signs in most tests.
var signer = sync.OnceValue(func() *xmlsigtest.Leaf {
	leaf, err := xmlsigtest.New(xmlsigtest.Options{})
	if err != nil {
		panic(err)
	}
	return leaf
})

// judge checks that xmlsec1 and helium accept a document that we accept. When we
// ignored the white space between elements, they get the document without it.
func judge(t testing.TB, document []byte, v *xmlsig.Verified) {
	t.Helper()
	if v.Indented {
		document = strip(t, document)
	}
	if err := xmlsigtest.Xmlsec(t, signer().CA, document); err != nil {
		t.Errorf("we accept what xmlsec1 refuses: %v\n%q", err, document)
	}
	if err := heliumVerify(t.Context(), document, v); err != nil {
		t.Errorf("we accept what helium refuses: %v\n%q", err, document)
	}
}

func heliumVerify(ctx context.Context, document []byte, v *xmlsig.Verified) error {
	doc, err := helium.NewParser().Parse(ctx, document)
	if err != nil {
		return err
	}
	_, err = xmldsig1.NewVerifier(xmldsig1.X509CertKeySource(v.Certificate)).Verify(ctx, doc)
	return err
}

// heliumCanonical returns the inclusive canonical form of a document by helium.
func heliumCanonical(ctx context.Context, document []byte) ([]byte, error) {
	return heliumForm(ctx, document, false, nil)
}

// lineFeeds replaces every line end by a line feed, as every XML parser must do.
// helium does not do it in attributes, where it writes two spaces for CR LF.
func lineFeeds(document []byte) []byte {
	return bytes.ReplaceAll(bytes.ReplaceAll(document, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))
}

// heliumForm returns the inclusive or exclusive canonical form of a document by
// helium.
func heliumForm(ctx context.Context, document []byte, exclusive bool, prefixes []string) ([]byte, error) {
	doc, err := helium.NewParser().Parse(ctx, document)
	if err != nil {
		return nil, err
	}
	if exclusive {
		form, err := c14n.NewCanonicalizer(c14n.ExclusiveC14N10).InclusiveNamespaces(prefixes).CanonicalizeTo(doc)
		// helium declares the prefix xml, which the specification and xmlsec1 do not.
		return bytes.ReplaceAll(form, []byte(` xmlns:xml="http://www.w3.org/XML/1998/namespace"`), nil), err
	}
	return c14n.NewCanonicalizer(c14n.C14N10).CanonicalizeTo(doc)
}

// strip removes the white space between elements with another XML parser.
func strip(t testing.TB, document []byte) []byte {
	t.Helper()
	document = bytes.TrimPrefix(document, []byte("\uFEFF"))
	type piece struct {
		kind       rune
		start, end int64
	}
	var pieces []piece
	decoder := xml.NewDecoder(bytes.NewReader(document))
	for {
		start := decoder.InputOffset()
		token, err := decoder.RawToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("strip: %v", err)
		}
		kind := 'x'
		switch token := token.(type) {
		case xml.StartElement:
			kind = 's'
		case xml.EndElement:
			kind = 'e'
		case xml.CharData:
			if strings.Trim(string(token), " \t\r\n") == "" {
				kind = ' '
			}
		}
		pieces = append(pieces, piece{kind, start, decoder.InputOffset()})
	}
	var out []byte
	for i, p := range pieces {
		value := i > 0 && i+1 < len(pieces) && pieces[i-1].kind == 's' && pieces[i+1].kind == 'e'
		if p.kind != ' ' || value {
			out = append(out, document[p.start:p.end]...)
		}
	}
	return out
}

// dump writes a tree for comparisons.
func dump(e xmlsig.Element) string {
	var b strings.Builder
	var walk func(xmlsig.Element, int)
	walk = func(e xmlsig.Element, depth int) {
		b.WriteString(strings.Repeat(" ", depth) + e.Name() + "=" + strings.ReplaceAll(e.Text(), "\n", "\\n") + "\n")
		for c := range e.Children() {
			walk(c, depth+1)
		}
	}
	walk(e, 0)
	return b.String()
}
