package xmlsig_test

import (
	"bytes"
	"encoding/base64"
	"regexp"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig/xmlsigtest"
)

// compact verifies a document and returns its compact form, which it checks.
func compact(t *testing.T, document []byte) []byte {
	t.Helper()
	v, err := xmlsig.Verify(document, xmlsig.SmallLimits())
	if err != nil {
		t.Fatal(err)
	}
	want := dump(v.Root())
	short, err := v.Compact(document, xmlsig.SmallLimits())
	if err != nil {
		t.Fatalf("%v\n%s", err, document)
	}
	again, err := xmlsig.Verify(short, xmlsig.SmallLimits())
	if err != nil {
		t.Fatalf("%v\n%s", err, short)
	}
	if got := dump(again.Root()); got != want && !v.Indented || again.Indented {
		t.Errorf("read\n%swant\n%s", got, want)
	}
	twice, err := again.Compact(short, xmlsig.SmallLimits())
	if err != nil || !bytes.Equal(twice, short) {
		t.Errorf("compact twice: %v\n%s\nonce\n%s", err, twice, short)
	}
	return short
}

// The compact form of every signature that is accepted is accepted too, and has the
// same values.
func TestCompactDocumentsVerify(t *testing.T) {
	t.Parallel()
	for _, f := range xmlsigtest.Forms() {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			compact(t, f.Sign(t, signer(), foreignXML))
		})
	}
}

// Padding that is not signed is not kept.
func TestCompactDropsPadding(t *testing.T) {
	t.Parallel()
	plain := string(xmlsigtest.Form{}.Sign(t, signer(), "<ECF><a>1</a><b>2</b></ECF>"))
	want := len(compact(t, []byte(plain)))
	spaces := strings.Repeat(" \n", 50_000)
	certificate := base64.StdEncoding.EncodeToString(signer().Certificate.Raw)
	for name, document := range map[string]string{
		"after the root":         plain + spaces,
		"before the root":        strings.Replace(plain, "<ECF", spaces+"<ECF", 1),
		"between elements":       strings.Replace(plain, "<b>", spaces+"<b>", 1),
		"before SignatureValue":  strings.Replace(plain, "<SignatureValue>", spaces+"<SignatureValue>", 1),
		"in SignatureValue":      regexp.MustCompile(`<SignatureValue>(....)`).ReplaceAllString(plain, "<SignatureValue>$1"+spaces),
		"in KeyInfo":             strings.Replace(plain, "</KeyInfo>", spaces+"</KeyInfo>", 1),
		"at the end of it":       strings.Replace(plain, "</Signature>", spaces+"</Signature>", 1),
		"in the certificate":     strings.Replace(plain, certificate[:20], certificate[:20]+spaces[:1000], 1),
		"before the certificate": strings.Replace(plain, "<X509Certificate>", spaces+"<X509Certificate>", 1),
	} {
		if !strings.Contains(document, spaces[:1000]) {
			t.Fatalf("%s: nothing was added", name)
		}
		if got := len(compact(t, []byte(document))); got > want {
			t.Errorf("%s: %d bytes of %d are kept, want %d", name, got, len(document), want)
		}
	}
}

func TestCompactRefusesAnotherDocument(t *testing.T) {
	t.Parallel()
	one, other := xmlsigtest.Form{}.Sign(t, signer(), "<ECF><a>1</a></ECF>"), xmlsigtest.Form{}.Sign(t, signer(), "<ECF><a>2</a></ECF>")
	v, err := xmlsig.Verify(one, xmlsig.SmallLimits())
	if err != nil {
		t.Fatal(err)
	}
	_, err = v.Compact(other, xmlsig.SmallLimits())
	checkRefusal(t, err, xmlsig.ErrSignature)
}
