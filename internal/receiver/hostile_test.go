package receiver_test

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/xmlsig/xmlsigtest"
)

const (
	dsig = "http://www.w3.org/2000/09/xmldsig#"
	c14n = "http://www.w3.org/TR/2001/REC-xml-c14n-20010315"
	xslt = `<Transform Algorithm="http://www.w3.org/TR/1999/REC-xslt-19991116"><stylesheet></stylesheet></Transform>`
)

// A forgery has a signature whose digest is right, but that breaks a rule of the
// signature profile. It is refused because of the rule and not because of the digest.
type forgery struct {
	leaf       *xmlsigtest.Leaf
	hash       crypto.Hash
	digest     string // the name of the algorithm
	signature  string // the name of the algorithm
	transforms string // after the first one
}

func (f forgery) sign(t testing.TB, document string) string {
	t.Helper()
	root := document[1:strings.IndexAny(document, " >")]
	sum := func(text string) []byte {
		if f.hash == crypto.SHA1 {
			s := sha1.Sum([]byte(text))
			return s[:]
		}
		s := sha256.Sum256([]byte(text))
		return s[:]
	}
	info := `<CanonicalizationMethod Algorithm="` + c14n + `"></CanonicalizationMethod><SignatureMethod Algorithm="` + f.signature + `"></SignatureMethod>` +
		`<Reference URI=""><Transforms><Transform Algorithm="` + dsig + `enveloped-signature"></Transform>` + f.transforms + `</Transforms>` +
		`<DigestMethod Algorithm="` + f.digest + `"></DigestMethod><DigestValue>` + base64.StdEncoding.EncodeToString(sum(document)) + `</DigestValue></Reference></SignedInfo>`
	value, err := f.leaf.Key.Sign(rand.Reader, sum(`<SignedInfo xmlns="`+dsig+`">`+info), f.hash)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(document, "</"+root+">") + `<Signature xmlns="` + dsig + `"><SignedInfo>` + info + `<SignatureValue>` +
		base64.StdEncoding.EncodeToString(value) + `</SignatureValue><KeyInfo><X509Data><X509Certificate>` +
		base64.StdEncoding.EncodeToString(f.leaf.Certificate.Raw) + `</X509Certificate></X509Data></KeyInfo></Signature></` + root + `>`
}

// inject replaces the text of an element that all test documents have.
func inject(document, text string) string {
	return leaf.ReplaceAllLiteralString(document, "<Version>"+text+"</Version>")
}

var leaf = regexp.MustCompile(`<(Version|fecha)>[^<]*</(Version|fecha)>`)

// Every service refuses hostile documents. The memory that an answer needs is limited by
// the size of the request, not by its expanded content.
func TestHostileDocumentsAreRefusedCheaply(t *testing.T) { // not parallel: it measures the memory of the process
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	const (
		sha256Name, rsaName = "http://www.w3.org/2001/04/xmlenc#sha256", "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256"
	)
	good := forgery{leaf: peer(), hash: crypto.SHA256, digest: sha256Name, signature: rsaName}
	change := func(f func(*forgery)) func(string) string {
		forged := good
		f(&forged)
		return func(document string) string { return forged.sign(t, document) }
	}
	laughs := `<!DOCTYPE lolz [<!ENTITY a "lol">`
	for _, pair := range []string{"ba", "cb", "dc", "ed", "fe", "gf", "hg", "ih"} {
		laughs += `<!ENTITY ` + pair[:1] + ` "` + strings.Repeat("&"+pair[1:]+";", 10) + `">`
	}
	laughs += "]>"
	e := newEnv(t)
	for _, c := range []struct {
		name  string
		spoil func(document string) string
		good  bool
	}{
		{name: "valid", spoil: change(func(*forgery) {}), good: true},
		{name: "document type", spoil: func(d string) string { return "<!DOCTYPE x>" + good.sign(t, d) }},
		{name: "billion laughs", spoil: func(d string) string { return laughs + inject(good.sign(t, d), "&i;") }},
		{name: "undeclared entity", spoil: func(d string) string { return inject(good.sign(t, d), "&i;") }},
		{name: "quadratic blow-up", spoil: func(d string) string {
			return `<!DOCTYPE x [<!ENTITY a "` + strings.Repeat("x", 50_000) + `">]>` + inject(d, strings.Repeat("&a;", 20_000))
		}},
		{name: "external entity", spoil: func(d string) string {
			return `<!DOCTYPE x [<!ENTITY i SYSTEM "file:///etc/hostname">]>` + inject(good.sign(t, d), "&i;")
		}},
		{name: "external entity over the network", spoil: func(d string) string {
			return `<!DOCTYPE x SYSTEM "` + e.url + seedPath + `">` + good.sign(t, d)
		}},
		{name: "10,000 deep", spoil: func(d string) string {
			return inject(d, strings.Repeat("<a>", 10_000)+strings.Repeat("</a>", 10_000))
		}},
		{name: "10,000 deep, without an end", spoil: func(string) string { return strings.Repeat("<a>", 10_000) }},
		{name: "10,000 attributes", spoil: func(d string) string {
			return strings.Replace(d, ">", strings.Repeat(` xmlns:a="urn:a"`, 10_000)+">", 1)
		}},
		{name: "a name of 200 kB", spoil: func(d string) string {
			name := strings.Repeat("a", 100_000)
			return inject(d, "<"+name+">1</"+name+">")
		}},
		{name: "XSLT transform", spoil: change(func(f *forgery) { f.transforms = xslt })},
		{name: "XPath transform", spoil: change(func(f *forgery) {
			f.transforms = `<Transform Algorithm="http://www.w3.org/TR/1999/REC-xpath-19991116"><XPath>//*[count(//*)]</XPath></Transform>`
		})},
		{name: "1,000 transforms", spoil: change(func(f *forgery) {
			f.transforms = strings.Repeat(`<Transform Algorithm="`+c14n+`"></Transform>`, 900)
		})},
		{name: "SHA-1 digest and signature", spoil: change(func(f *forgery) {
			f.hash, f.digest, f.signature = crypto.SHA1, dsig+"sha1", dsig+"rsa-sha1"
		})},
		{name: "SHA-1 declared as SHA-256", spoil: change(func(f *forgery) { f.hash = crypto.SHA1 })},
		{name: "HMAC", spoil: change(func(f *forgery) { f.signature = dsig + "hmac-sha1" })},
		{name: "RSA of 1024 bits", spoil: change(func(f *forgery) {
			f.leaf = xmlsigtest.Must(t, xmlsigtest.Options{Key: weak, CA: peer().CA})
		})},
		{name: "wrong digest", spoil: func(d string) string { return edit(t, good.sign(t, d), "<DigestValue>", "<DigestValue>AAAA") }},
		{name: "another root", spoil: change(func(f *forgery) { f.leaf = own() })},
		{name: "signed twice", spoil: func(d string) string { return good.sign(t, good.sign(t, d)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			seed := e.seed()
			for path, document := range map[string]string{
				receptionPath: invoiceXML, approvalPath: responseXML,
				tokenPath: "<SemillaModel><valor>" + valueOf(t, seed, "valor") + "</valor><fecha>" + valueOf(t, seed, "fecha") + "</fecha></SemillaModel>",
			} {
				body := c.spoil(document)
				want := http.StatusBadRequest
				if c.good {
					want = http.StatusOK
				}
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
				r.Header.Set("Content-Type", "text/xml")
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				answer := e.serve(r, want)
				runtime.ReadMemStats(&after)
				if taken, ceiling := after.TotalAlloc-before.TotalAlloc, uint64(1<<20+16*len(body)); taken > ceiling {
					t.Errorf("%s: %d bytes for a body of %d, want at most %d", path, taken, len(body), ceiling)
				}
				if signed := bytes.Contains(answer.Body.Bytes(), []byte("<ARECF>")); signed != (c.good && path == receptionPath) {
					t.Errorf("%.500s", answer.Body)
				}
			}
		})
	}
	if len(e.responses) != 1 || len(e.used) != 1 {
		t.Errorf("%d responses, %d seeds", len(e.responses), len(e.used))
	}
}
