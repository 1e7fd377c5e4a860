package xmlsig_test

import (
	"crypto"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/xmlsig/xmlsigtest"
)

const (
	dsig   = "http://www.w3.org/2000/09/xmldsig#"
	c14n10 = "http://www.w3.org/TR/2001/REC-xml-c14n-20010315"

	exclusive = "http://www.w3.org/2001/10/xml-exc-c14n#"
)

// A forgery is a signed document with one wrong part. Its digest and its signature
// match, so that only the rule under test can refuse it.
type forgery struct {
	leaf       *xmlsigtest.Leaf
	namespaces string // of the root, in canonical order
	content    string // of the root, in canonical form
	digest     []byte // instead of that of the content
	hash       crypto.Hash
	open       string // the start tag of SignedInfo
	info       string // what SignedInfo holds; DIGEST stands for the digest
	sign       func(t testing.TB, info []byte) []byte
	value      func(string) string // changes SignatureValue
	keyInfo    string              // CERTIFICATE stands for the certificate
	extra      string              // at the end of Signature
	tag        string              // the start tag of Signature
	order      []string            // of the children of Signature
}

const profileInfo = `<CanonicalizationMethod Algorithm="` + c14n10 + `"></CanonicalizationMethod>` +
	`<SignatureMethod Algorithm="http://www.w3.org/2001/04/xmldsig-more#rsa-sha256"></SignatureMethod>` +
	`<Reference URI=""><Transforms><Transform Algorithm="` + dsig + `enveloped-signature"></Transform></Transforms>` +
	`<DigestMethod Algorithm="http://www.w3.org/2001/04/xmlenc#sha256"></DigestMethod>` +
	`<DigestValue>DIGEST</DigestValue></Reference>`

func newForgery() *forgery {
	return &forgery{
		leaf:    signer(),
		content: `<Encabezado><RNCEmisor>131880681</RNCEmisor><RazonSocial>Peña &amp; Hijos</RazonSocial></Encabezado>`,
		hash:    crypto.SHA256,
		open:    "<SignedInfo>",
		info:    profileInfo,
		value:   func(s string) string { return s },
		keyInfo: "<KeyInfo><X509Data><X509Certificate>CERTIFICATE</X509Certificate></X509Data></KeyInfo>",
		tag:     `<Signature xmlns="` + dsig + `">`,
		order:   []string{"info", "value", "key"},
	}
}

func (f *forgery) document(t testing.TB) string {
	t.Helper()
	root := "<ECF" + f.namespaces + ">"
	if f.digest == nil {
		h := f.hash.New()
		h.Write([]byte(root + f.content + "</ECF>"))
		f.digest = h.Sum(nil)
	}
	info := strings.ReplaceAll(f.info, "DIGEST", base64.StdEncoding.EncodeToString(f.digest))
	canonical := []byte(`<SignedInfo xmlns="` + dsig + `"` + f.namespaces + `>` + info + `</SignedInfo>`)
	if f.sign == nil {
		f.sign = func(t testing.TB, info []byte) []byte {
			sum := sha256.Sum256(info)
			return must(t)(f.leaf.Key.Sign(nil, sum[:], crypto.SHA256))
		}
	}
	parts := map[string]string{
		"info":  f.open + info + "</SignedInfo>",
		"value": "<SignatureValue>" + f.value(base64.StdEncoding.EncodeToString(f.sign(t, canonical))) + "</SignatureValue>",
		"key":   strings.ReplaceAll(f.keyInfo, "CERTIFICATE", base64.StdEncoding.EncodeToString(f.leaf.Certificate.Raw)),
	}
	document := root + f.content + f.tag
	for _, part := range f.order {
		document += parts[part]
	}
	return document + f.extra + "</Signature></ECF>"
}

func must(t testing.TB) func([]byte, error) []byte {
	return func(b []byte, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
}
