package xmlsig_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"math/big"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig/xmlsigtest"
)

var weakKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		panic(err)
	}
	return key
})

var curveKey = sync.OnceValue(func() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
})

// A hugeKey claims to have 16,384 bits. It is refused before it is used.
type hugeKey struct{ crypto.Signer }

func (hugeKey) Public() crypto.PublicKey {
	n := new(big.Int).Lsh(big.NewInt(1), 16_383)
	return &rsa.PublicKey{N: n.Add(n, big.NewInt(1)), E: 65_537}
}

const namespacesInOrder = ` xmlns:xsd="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"`

// Each document is signed by the key in its certificate, so that only the form in
// its name can be the reason for a refusal. Without err, it must be accepted.
var forgeries = []struct {
	name  string
	forge func(*testing.T, *forgery)
	err   error
	cause error // beside err
}{
	{name: "nothing", forge: func(*testing.T, *forgery) {}},
	{name: "namespaces of the root", forge: func(_ *testing.T, f *forgery) { f.namespaces = namespacesInOrder }},
	{name: "namespace repeated on SignedInfo", forge: func(_ *testing.T, f *forgery) { f.open = `<SignedInfo xmlns="` + dsig + `">` }},
	{name: "another namespace on SignedInfo", forge: func(_ *testing.T, f *forgery) { f.open = `<SignedInfo xmlns="urn:x">` }, err: xmlsig.ErrSignature},
	{name: "canonicalization as second transform", forge: edit(`</Transform></Transforms>`, `</Transform><Transform Algorithm="`+c14n10+`"></Transform></Transforms>`)},
	{name: "indented before signing", forge: func(_ *testing.T, f *forgery) {
		f.content = "\n  <Encabezado>\n    <RNCEmisor>131880681</RNCEmisor>\n\t</Encabezado>\n  "
	}},
	{name: "SignedInfo indented before signing", forge: func(_ *testing.T, f *forgery) {
		f.info = "\n  " + strings.ReplaceAll(f.info, "><", ">\n  <") + "\n"
		f.info = strings.NewReplacer(">\n  </C", "></C", ">\n  </S", "></S", ">\n  </Transform>", "></Transform>", ">\n  </DigestM", "></DigestM").Replace(f.info)
	}},
	{name: "value of spaces only", forge: func(_ *testing.T, f *forgery) { f.content = "<a>  </a>" }},
	{name: "TAB and line end in a value", forge: func(_ *testing.T, f *forgery) { f.content = "<a>x\ty\nz</a>" }},
	{name: "carriage return in a value", forge: func(_ *testing.T, f *forgery) { f.content = "<a>x&#xD;\ny</a>" }},
	{name: "empty element", forge: func(_ *testing.T, f *forgery) { f.content = "<a></a>" }},
	{name: "characters of every kind", forge: func(_ *testing.T, f *forgery) {
		f.content = "<a>\"'&amp;&lt;&gt;©€®ñ😀]]&gt;&amp;amp;\u200b\u202e\u0085\u2028</a>"
	}},

	{name: "exclusive canonicalization", forge: edit(`<CanonicalizationMethod Algorithm="`+c14n10, `<CanonicalizationMethod Algorithm="`+exclusive)},
	{name: "exclusive canonicalization as second transform", forge: edit(`</Transform></Transforms>`, `</Transform><Transform Algorithm="`+exclusive+`"></Transform></Transforms>`)},
	{name: "the same certificate twice", forge: func(_ *testing.T, f *forgery) {
		f.keyInfo = strings.Replace(f.keyInfo, "<X509Certificate>", "<X509Certificate>CERTIFICATE</X509Certificate><X509Certificate>", 1)
	}},
	{name: "two X509Data with the same certificate", forge: func(_ *testing.T, f *forgery) {
		f.keyInfo = strings.Replace(f.keyInfo, "<X509Data>", "<X509Data><X509Certificate>CERTIFICATE</X509Certificate></X509Data><X509Data>", 1)
	}},

	{name: "SHA-1 digest", forge: func(t *testing.T, f *forgery) {
		f.hash = crypto.SHA1
		edit("http://www.w3.org/2001/04/xmlenc#sha256", dsig+"sha1")(t, f)
	}, err: xmlsig.ErrSignature},
	{name: "SHA-512 digest", forge: func(t *testing.T, f *forgery) {
		f.hash = crypto.SHA512
		edit("xmlenc#sha256", "xmlenc#sha512")(t, f)
	}, err: xmlsig.ErrSignature},
	{name: "SHA-256 digest that is said to be SHA-1", forge: edit("http://www.w3.org/2001/04/xmlenc#sha256", dsig+"sha1"), err: xmlsig.ErrSignature},
	{name: "RSA with SHA-1", forge: func(t *testing.T, f *forgery) {
		edit("http://www.w3.org/2001/04/xmldsig-more#rsa-sha256", dsig+"rsa-sha1")(t, f)
		f.sign = func(t testing.TB, info []byte) []byte {
			sum := sha1.Sum(info)
			return must(t)(f.leaf.Key.Sign(nil, sum[:], crypto.SHA1))
		}
	}, err: xmlsig.ErrSignature},
	{name: "RSA-PSS", forge: func(t *testing.T, f *forgery) {
		edit("http://www.w3.org/2001/04/xmldsig-more#rsa-sha256", "http://www.w3.org/2007/05/xmldsig-more#sha256-rsa-MGF1")(t, f)
		f.sign = pss(f)
	}, err: xmlsig.ErrSignature},
	{name: "RSA-PSS that is said to be PKCS#1", forge: func(_ *testing.T, f *forgery) { f.sign = pss(f) }, err: xmlsig.ErrSignature},
	{name: "HMAC with the public key", forge: func(t *testing.T, f *forgery) {
		edit("http://www.w3.org/2001/04/xmldsig-more#rsa-sha256", "http://www.w3.org/2001/04/xmldsig-more#hmac-sha256")(t, f)
		f.sign = func(_ testing.TB, info []byte) []byte {
			mac := hmac.New(sha256.New, f.leaf.Certificate.RawSubjectPublicKeyInfo)
			mac.Write(info)
			return mac.Sum(nil)
		}
	}, err: xmlsig.ErrSignature},
	{name: "canonicalization with comments", forge: edit(c14n10, c14n10+"#WithComments"), err: xmlsig.ErrSignature},
	{name: "canonicalization 1.1", forge: edit(c14n10, "http://www.w3.org/2006/12/xml-c14n11"), err: xmlsig.ErrSignature},
	{name: "canonicalization as first transform", forge: edit(`<Transforms>`, `<Transforms><Transform Algorithm="`+c14n10+`"></Transform>`), err: xmlsig.ErrSignature},
	{name: "no enveloped transform", forge: edit(dsig+"enveloped-signature", c14n10), err: xmlsig.ErrSignature},
	{name: "three transforms", forge: edit(`</Transform></Transforms>`, `</Transform><Transform Algorithm="`+c14n10+`"></Transform><Transform Algorithm="`+c14n10+`"></Transform></Transforms>`), err: xmlsig.ErrSignature},
	{name: "no transforms", forge: edit(`<Transforms><Transform Algorithm="`+dsig+`enveloped-signature"></Transform></Transforms>`, ""), err: xmlsig.ErrSignature},
	{name: "exclusive canonicalization with comments", forge: edit(c14n10, exclusive+"WithComments"), err: xmlsig.ErrSignature},
	{name: "exclusive canonicalization with comments as second transform", forge: edit(`</Transform></Transforms>`, `</Transform><Transform Algorithm="`+exclusive+`WithComments"></Transform></Transforms>`), err: xmlsig.ErrSignature},
	{name: "inclusive canonicalization with a prefix list", forge: edit(`></CanonicalizationMethod>`, `><InclusiveNamespaces xmlns="`+exclusive+`" PrefixList="a"></InclusiveNamespaces></CanonicalizationMethod>`), err: xmlsig.ErrSignature},
	{name: "prefix list of another namespace", forge: edit(c14n10+`"></CanonicalizationMethod>`, exclusive+`"><InclusiveNamespaces PrefixList="a"></InclusiveNamespaces></CanonicalizationMethod>`), err: xmlsig.ErrSignature},
	{name: "prefix list that is no list of prefixes", forge: edit(c14n10+`"></CanonicalizationMethod>`, exclusive+`"><InclusiveNamespaces xmlns="`+exclusive+`" PrefixList="a:b"></InclusiveNamespaces></CanonicalizationMethod>`), err: xmlsig.ErrSignature},
	{name: "enveloped transform twice", forge: edit(`</Transform></Transforms>`, `</Transform><Transform Algorithm="`+dsig+`enveloped-signature"></Transform></Transforms>`), err: xmlsig.ErrSignature},
	{name: "Base64 transform", forge: edit(`</Transform></Transforms>`, `</Transform><Transform Algorithm="`+dsig+`base64"></Transform></Transforms>`), err: xmlsig.ErrSignature},
	{name: "XSLT transform", forge: edit(`</Transform></Transforms>`, `</Transform><Transform Algorithm="http://www.w3.org/TR/1999/REC-xslt-19991116"></Transform></Transforms>`), err: xmlsig.ErrSignature},
	{name: "XPath transform", forge: edit(`</Transform></Transforms>`, `</Transform><Transform Algorithm="http://www.w3.org/TR/1999/REC-xpath-19991116"><XPath>false()</XPath></Transform></Transforms>`), err: xmlsig.ErrSignature},
	{name: "something in a transform", forge: edit(`enveloped-signature"></Transform>`, `enveloped-signature"><XPath>false()</XPath></Transform>`), err: xmlsig.ErrSignature},
	{name: "text in a method", forge: edit(`</DigestMethod>`, `x</DigestMethod>`), err: xmlsig.ErrSignature},
	{name: "HMACOutputLength", forge: edit(`</SignatureMethod>`, `<HMACOutputLength>8</HMACOutputLength></SignatureMethod>`), err: xmlsig.ErrSignature},

	{name: "attribute on Transforms", forge: edit(`<Transforms>`, `<Transforms Id="x">`), err: xmlsig.ErrSignature},
	{name: "attribute on DigestValue", forge: edit(`<DigestValue>`, `<DigestValue Id="x">`), err: xmlsig.ErrSignature},
	{name: "root that holds nothing else", forge: func(_ *testing.T, f *forgery) { f.content = "" }, err: xmlsig.ErrSignature},
	{name: "reference to an Id that no element has", forge: edit(`URI=""`, `URI="#x"`), err: xmlsig.ErrSignature},
	{name: "reference to a file", forge: edit(`URI=""`, `URI="file:///etc/passwd"`), err: xmlsig.ErrSignature},
	{name: "reference without URI", forge: edit(` URI=""`, ``), err: xmlsig.ErrSignature},
	{name: "reference with a type", forge: edit(`URI=""`, `Type="`+dsig+`Manifest" URI=""`), err: xmlsig.ErrSignature},
	{name: "reference with Id in canonical order", forge: edit(`URI=""`, `Id="x" URI=""`)},
	{name: "two references", forge: func(_ *testing.T, f *forgery) {
		i := strings.Index(f.info, "<Reference")
		f.info += f.info[i:]
	}, err: xmlsig.ErrSignature},
	{name: "no reference", forge: func(_ *testing.T, f *forgery) { f.info = f.info[:strings.Index(f.info, "<Reference")] }, err: xmlsig.ErrSignature},
	{name: "Id on SignedInfo after signing", forge: func(_ *testing.T, f *forgery) { f.open = `<SignedInfo Id="x">` }, err: xmlsig.ErrSignature},

	{name: "KeyInfo before SignatureValue", forge: func(_ *testing.T, f *forgery) { f.order = []string{"info", "key", "value"} }, err: xmlsig.ErrSignature},
	{name: "SignedInfo twice", forge: func(_ *testing.T, f *forgery) { f.order = []string{"info", "info", "value", "key"} }, err: xmlsig.ErrSignature},
	{name: "SignatureValue twice", forge: func(_ *testing.T, f *forgery) { f.order = []string{"info", "value", "value", "key"} }, err: xmlsig.ErrSignature},
	{name: "Object", forge: func(_ *testing.T, f *forgery) { f.extra = "<Object><ECF></ECF></Object>" }, err: xmlsig.ErrSignature},
	{name: "second signature in an Object", forge: func(_ *testing.T, f *forgery) { f.extra = "<Object><Signature></Signature></Object>" }, err: xmlsig.ErrSignature},
	{name: "KeyValue only", forge: func(_ *testing.T, f *forgery) {
		n := f.leaf.Key.Public().(*rsa.PublicKey).N.Bytes()
		f.keyInfo = "<KeyInfo><KeyValue><RSAKeyValue><Modulus>" + base64.StdEncoding.EncodeToString(n) + "</Modulus><Exponent>AQAB</Exponent></RSAKeyValue></KeyValue></KeyInfo>"
	}, err: xmlsig.ErrSignature},
	{name: "certificate of another key", forge: func(t *testing.T, f *forgery) {
		other := base64.StdEncoding.EncodeToString(f.leaf.CA.Certificate.Raw)
		f.keyInfo = strings.Replace(f.keyInfo, "CERTIFICATE", other, 1)
	}, err: xmlsig.ErrSignature},
	{name: "something after the certificate", forge: func(_ *testing.T, f *forgery) {
		longer := base64.StdEncoding.EncodeToString(append(f.leaf.Certificate.Raw[:len(f.leaf.Certificate.Raw):len(f.leaf.Certificate.Raw)], 0))
		f.keyInfo = strings.Replace(f.keyInfo, "CERTIFICATE", longer, 1)
	}, err: xmlsig.ErrCertificate},
	{name: "RSA of 1024 bits", forge: func(t *testing.T, f *forgery) { f.leaf = xmlsigtest.Must(t, xmlsigtest.Options{Key: weakKey()}) }, err: xmlsig.ErrCertificate, cause: xmlsig.ErrWeakKey},
	{name: "RSA that takes too long", forge: func(t *testing.T, f *forgery) {
		f.leaf = xmlsigtest.Must(t, xmlsigtest.Options{Key: hugeKey{f.leaf.Key}})
	}, err: xmlsig.ErrCertificate},
	{name: "elliptic curve", forge: func(t *testing.T, f *forgery) { f.leaf = xmlsigtest.Must(t, xmlsigtest.Options{Key: curveKey()}) }, err: xmlsig.ErrCertificate, cause: xmlsig.ErrWeakKey},

	{name: "SignatureValue with spaces", forge: func(_ *testing.T, f *forgery) {
		f.value = func(s string) string { return " " + s[:7] + " \n" + s[7:] + "\t" }
	}},
	{name: "SignatureValue truncated", forge: func(_ *testing.T, f *forgery) { f.value = func(s string) string { return s[:len(s)-8] } }, err: xmlsig.ErrSignature},
	{name: "SignatureValue with a zero before it", forge: func(_ *testing.T, f *forgery) {
		f.value = func(s string) string {
			b, _ := base64.StdEncoding.DecodeString(s)
			return base64.StdEncoding.EncodeToString(append([]byte{0}, b...))
		}
	}, err: xmlsig.ErrSignature},
	{name: "SignatureValue empty", forge: func(_ *testing.T, f *forgery) { f.value = func(string) string { return "" } }, err: xmlsig.ErrSignature},
	{name: "SignatureValue of white space", forge: func(_ *testing.T, f *forgery) { f.value = func(string) string { return "\n" } }, err: xmlsig.ErrSignature},
	{name: "SignatureValue without padding", forge: func(_ *testing.T, f *forgery) {
		f.value = func(s string) string { return strings.TrimRight(s, "=") }
	}, err: xmlsig.ErrSignature},
	{name: "SignatureValue with bits beyond its end", forge: func(_ *testing.T, f *forgery) {
		f.value = func(s string) string { // 256 bytes leave four bits, which are zero: A, Q, g or w
			i := len(s) - len("A==")
			return s[:i] + string(s[i]+1) + "=="
		}
	}, err: xmlsig.ErrSignature},
	{name: "SignatureValue of the URL alphabet", forge: func(_ *testing.T, f *forgery) {
		f.value = func(s string) string { return "-_" + s[2:] }
	}, err: xmlsig.ErrSignature},
	{name: "SignatureValue with something after the padding", forge: func(_ *testing.T, f *forgery) { f.value = func(s string) string { return s + "AAAA" } }, err: xmlsig.ErrSignature},
	{name: "DigestValue of another document", forge: func(_ *testing.T, f *forgery) {
		sum := sha256.Sum256([]byte("<ECF></ECF>"))
		f.digest = sum[:]
	}, err: xmlsig.ErrSignature},
	{name: "DigestValue too short", forge: func(_ *testing.T, f *forgery) { f.digest = make([]byte, 20) }, err: xmlsig.ErrSignature},
	{name: "DigestValue empty", forge: func(_ *testing.T, f *forgery) { f.digest = []byte{} }, err: xmlsig.ErrSignature},
	{name: "DigestValue with white space", forge: edit("DIGEST", "\nDIGEST\n")},
}

func edit(old, with string) func(*testing.T, *forgery) {
	return func(t *testing.T, f *forgery) {
		if !strings.Contains(f.info, old) {
			t.Fatalf("nothing to change: %s", old)
		}
		f.info = strings.Replace(f.info, old, with, 1)
	}
}

func pss(f *forgery) func(testing.TB, []byte) []byte {
	return func(t testing.TB, info []byte) []byte {
		sum := sha256.Sum256(info)
		return must(t)(f.leaf.Key.Sign(rand.Reader, sum[:], &rsa.PSSOptions{SaltLength: 32, Hash: crypto.SHA256}))
	}
}

func TestForgedSignaturesAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range forgeries {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newForgery()
			c.forge(t, f)
			document := []byte(f.document(t))
			v, err := xmlsig.Verify(document, xmlsig.SmallLimits())
			checkRefusal(t, err, c.err)
			if c.cause != nil && !errors.Is(err, c.cause) {
				t.Errorf("error %v, want %v", err, c.cause)
			}
			if err != nil {
				return
			}
			if v.Indented {
				t.Error("verified only without white space")
			}
			judge(t, document, v)
		})
	}
}

// White space must be ignored in the whole document or not at all.
func TestWhiteSpaceIsNotMixed(t *testing.T) {
	t.Parallel()
	f := newForgery()
	f.content = "<a>\n<b>1</b></a>"
	document := strings.Replace(f.document(t), "<SignatureMethod", " <SignatureMethod", 1)
	_, err := xmlsig.Verify([]byte(document), xmlsig.SmallLimits())
	checkRefusal(t, err, xmlsig.ErrSignature)

	f = newForgery()
	f.info = strings.Replace(f.info, "<SignatureMethod", "\n<SignatureMethod", 1)
	document = strings.Replace(f.document(t), "<Encabezado>", "\n<Encabezado>", 1)
	_, err = xmlsig.Verify([]byte(document), xmlsig.SmallLimits())
	checkRefusal(t, err, xmlsig.ErrSignature)
}

func TestTrustedSigners(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 14, 12, 0, 0, 0, time.UTC)
	ca := signer().CA
	other, err := xmlsigtest.NewCA("Otra Autoridad")
	if err != nil {
		t.Fatal(err)
	}
	from, until := now.Add(-time.Hour), now.Add(time.Hour)
	for _, c := range []struct {
		name    string
		options xmlsigtest.Options
		roots   *x509.CertPool
		at      time.Time
		cause   error
		refused bool
	}{
		{name: "known", roots: ca.Pool(), at: now},
		{name: "at its first instant", roots: ca.Pool(), at: from},
		{name: "at its last instant", roots: ca.Pool(), at: until},
		{name: "not yet valid", roots: ca.Pool(), at: from.Add(-time.Second), refused: true, cause: xmlsig.ErrNotYetValid},
		{name: "expired", roots: ca.Pool(), at: until.Add(time.Second), refused: true, cause: xmlsig.ErrExpired},
		{name: "another authority", roots: other.Pool(), at: now, refused: true},
		{name: "no authority", roots: x509.NewCertPool(), at: now, refused: true},
		{name: "nil, which is not the roots of the system", at: now, refused: true},
		{name: "digitalSignature alone", options: xmlsigtest.Options{KeyUsage: x509.KeyUsageDigitalSignature}, roots: ca.Pool(), at: now},
		{name: "nonRepudiation alone", options: xmlsigtest.Options{KeyUsage: x509.KeyUsageContentCommitment}, roots: ca.Pool(), at: now},
		{name: "neither", options: xmlsigtest.Options{KeyUsage: x509.KeyUsageKeyEncipherment}, roots: ca.Pool(), at: now, refused: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.options.CA, c.options.NotBefore, c.options.NotAfter = ca, from, until
			leaf := xmlsigtest.Must(t, c.options)
			v, err := xmlsig.Verify([]byte(write(t, leaf.Identity)), xmlsig.SmallLimits())
			if err != nil {
				t.Fatal(err)
			}
			err = v.Trusted(c.roots, c.at)
			if !c.refused {
				checkRefusal(t, err, nil)
				return
			}
			checkRefusal(t, err, xmlsig.ErrCertificate)
			if c.cause != nil && !errors.Is(err, c.cause) {
				t.Errorf("error %v, want %v", err, c.cause)
			}
		})
	}
}

func TestPersonOfACertificate(t *testing.T) {
	t.Parallel()
	for serial, want := range map[string]string{
		"IDCDO-00112345678": "00112345678",
		"PASDO-AB123456":    "AB123456",
		"TINDO-131880681":   "131880681",
		"001-1234567-8":     "00112345678",
		"":                  "",
	} {
		leaf := xmlsigtest.Must(t, xmlsigtest.Options{Subject: "Otra", SerialNumber: serial, CA: signer().CA})
		if got := xmlsig.Person(leaf.Certificate); got != want {
			t.Errorf("%q is %q, want %q", serial, got, want)
		}
	}
}
