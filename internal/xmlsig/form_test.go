package xmlsig_test

import (
	"crypto/x509"
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig/xmlsigtest"
)

const (
	foreignXML = "<?xml version='1.0' encoding=\"utf-8\"?>\r\n<ECF xmlns:xsd=\"http://www.w3.org/2001/XMLSchema\">\r\n  <Encabezado><RNCEmisor>131880681</RNCEmisor>" +
		"<RazonSocial>Pe&#xF1;a &amp; &quot;Hijos&quot;&#13;</RazonSocial></Encabezado><Vacio/>\r\n</ECF>"
	foreignTree = "ECF=\n Encabezado=\n  RNCEmisor=131880681\n  RazonSocial=Peña & \"Hijos\"\r\n Vacio=\n"
)

// checkForm checks that xmlsec1, helium and we accept a document, with the values
// of foreignXML and a trusted signer.
func checkForm(t *testing.T, ca *xmlsigtest.CA, document []byte, args ...string) *xmlsig.Verified {
	t.Helper()
	if err := xmlsigtest.Xmlsec(t, ca, document, args...); err != nil {
		t.Fatalf("xmlsec1 refuses its own signature: %v\n%s", err, document)
	}
	v, err := xmlsig.Verify(document, xmlsig.SmallLimits())
	if err != nil {
		t.Fatalf("%v\n%s", err, document)
	}
	if got := dump(v.Root()); got != foreignTree {
		t.Errorf("read\n%swant\n%s", got, foreignTree)
	}
	if v.Indented {
		t.Error("verified only without white space")
	}
	if err := v.Trusted(ca.Pool(), time.Now()); err != nil {
		t.Error(err)
	}
	return v
}

func TestFormsOfOtherSoftwareAreAccepted(t *testing.T) {
	t.Parallel()
	for _, f := range xmlsigtest.Forms() {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			document := f.Sign(t, signer(), foreignXML)
			v := checkForm(t, signer().CA, document)
			// helium does not read an empty X509IssuerSerial.
			if err := heliumVerify(t.Context(), document, v); err != nil && !strings.Contains(f.KeyInfo, "<X509IssuerSerial/>") {
				t.Errorf("helium: %v", err)
			}
			changed := strings.Replace(string(document), "131880681", "131880682", 1)
			_, err := xmlsig.Verify([]byte(changed), xmlsig.SmallLimits())
			checkRefusal(t, err, xmlsig.ErrSignature)
		})
	}
}

func TestReferenceToTheIdOfTheRoot(t *testing.T) {
	t.Parallel()
	for attribute, args := range map[string][]string{
		` Id="doc"`: {"--id-attr:Id", "ECF"}, ` ID="doc"`: {"--id-attr:ID", "ECF"}, ` id="doc"`: {"--id-attr:id", "ECF"}, ` xml:id="doc"`: nil,
	} {
		for _, transform := range []string{"", xmlsigtest.Inclusive, xmlsigtest.Exclusive} {
			f := xmlsigtest.Form{Root: attribute, URI: "#doc", Transform: transform}
			checkForm(t, signer().CA, f.Sign(t, signer(), foreignXML, args...), args...)
		}
	}
	for name, c := range map[string]struct{ root, attribute, content, uri string }{
		"of another element":               {` x="y"`, "", `<a Id="doc">1</a>`, "#doc"},
		"of the root and another element":  {` Id="doc"`, "", `<a id="doc">1</a>`, "#doc"},
		"of the root and the signature":    {` Id="doc"`, ` Id="doc"`, "", "#doc"},
		"of an attribute of another name":  {` Name="doc"`, "", "", "#doc"},
		"of an attribute with a namespace": {` xmlns:x="urn:x" x:Id="doc"`, "", "", "#doc"},
		"by an XPointer":                   {` Id="doc"`, "", "", "#xpointer(id('doc'))"},
		"to the root by an XPointer":       {` Id="doc"`, "", "", "#xpointer(/)"},
		"without a name":                   {` Id=""`, "", "", "#"},
		"with a part before the fragment":  {` Id="doc"`, "", "", "a.xml#doc"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := xmlsigtest.Form{Root: c.root, Attribute: c.attribute}
			document := string(f.Sign(t, signer(), strings.Replace(foreignXML, "<Vacio/>", "<Vacio/>"+c.content, 1)))
			_, err := xmlsig.Verify([]byte(strings.Replace(document, `URI=""`, `URI="`+c.uri+`"`, 1)), xmlsig.SmallLimits())
			checkRefusal(t, err, xmlsig.ErrSignature)
			if !strings.Contains(err.Error(), "URI of Reference") {
				t.Errorf("refused for another reason: %v", err)
			}
		})
	}
}

// chain returns a leaf under an intermediate authority of the signer's root.
func chain(t *testing.T) *xmlsigtest.Leaf {
	t.Helper()
	intermediate, err := signer().CA.Intermediate("Autoridad Intermedia")
	if err != nil {
		t.Fatal(err)
	}
	return xmlsigtest.Must(t, xmlsigtest.Options{CA: intermediate})
}

// withCertificates replaces the certificates in a document.
func withCertificates(document []byte, certificates ...*x509.Certificate) []byte {
	s := string(document)
	i, j := strings.Index(s, "<X509Data>"), strings.LastIndex(s, "</X509Data>")
	var b strings.Builder
	b.WriteString(s[:i] + "<X509Data>")
	for _, c := range certificates {
		b.WriteString("<X509Certificate>" + base64.StdEncoding.EncodeToString(c.Raw) + "</X509Certificate>")
	}
	return []byte(b.String() + s[j:])
}

func TestCertificateChains(t *testing.T) {
	t.Parallel()
	leaf := chain(t)
	intermediate, root := leaf.CA.Certificate, signer().CA.Certificate
	signed := xmlsigtest.Form{}.Sign(t, leaf, foreignXML)
	if !slices.Equal(checkForm(t, signer().CA, signed).Certificate.Raw, leaf.Certificate.Raw) {
		t.Error("the certificate is not that of the signer")
	}
	curve := xmlsigtest.Must(t, xmlsigtest.Options{CA: signer().CA, Key: curveKey()}).Certificate
	weak := xmlsigtest.Must(t, xmlsigtest.Options{CA: signer().CA, Key: weakKey()}).Certificate
	for name, certificates := range map[string][]*x509.Certificate{
		"signer first":                  {leaf.Certificate, intermediate, root},
		"signer last":                   {root, intermediate, leaf.Certificate},
		"signer in the middle":          {intermediate, leaf.Certificate, root},
		"without the root":              {intermediate, leaf.Certificate},
		"every certificate twice":       {leaf.Certificate, intermediate, leaf.Certificate, intermediate},
		"certificates of other persons": {curve, leaf.Certificate, weak, intermediate},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, err := xmlsig.Verify(withCertificates(signed, certificates...), xmlsig.SmallLimits())
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(v.Certificate.Raw, leaf.Certificate.Raw) || v.Trusted(signer().CA.Pool(), time.Now()) != nil {
				t.Errorf("certificate of %s, %v", v.Certificate.Subject, v.Trusted(signer().CA.Pool(), time.Now()))
			}
		})
	}
}

// A certificate in the signature helps to build the chain, and is never trusted
// itself.
func TestCertificatesInTheSignatureAreNoRoots(t *testing.T) {
	t.Parallel()
	leaf := chain(t)
	other, err := xmlsigtest.NewCA("Otra Autoridad")
	if err != nil {
		t.Fatal(err)
	}
	signed := xmlsigtest.Form{}.Sign(t, leaf, foreignXML)
	for name, c := range map[string]struct {
		certificates []*x509.Certificate
		roots        *x509.CertPool
	}{
		"intermediate missing":  {[]*x509.Certificate{leaf.Certificate}, signer().CA.Pool()},
		"root in the signature": {[]*x509.Certificate{leaf.Certificate, leaf.CA.Certificate, signer().CA.Certificate}, other.Pool()},
		"no roots":              {[]*x509.Certificate{leaf.Certificate, leaf.CA.Certificate, signer().CA.Certificate}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, err := xmlsig.Verify(withCertificates(signed, c.certificates...), xmlsig.SmallLimits())
			if err != nil {
				t.Fatal(err)
			}
			checkRefusal(t, v.Trusted(c.roots, time.Now()), xmlsig.ErrCertificate)
		})
	}
}

func TestKeyInfoThatContradictsTheSignatureIsRefused(t *testing.T) {
	t.Parallel()
	same := xmlsigtest.Must(t, xmlsigtest.Options{CA: signer().CA, Subject: "Otra Persona", SerialNumber: "IDCDO-00100000000"})
	signed := xmlsigtest.Form{KeyInfo: "<X509Data/><KeyValue/>"}.Sign(t, signer(), foreignXML)
	many := make([]*x509.Certificate, 9)
	for i := range many {
		many[i] = xmlsigtest.Must(t, xmlsigtest.Options{CA: signer().CA}).Certificate
	}
	otherKey := base64.StdEncoding.EncodeToString(append([]byte{0xff}, make([]byte, 255)...))
	i, j := strings.Index(string(signed), "<Modulus>")+len("<Modulus>"), strings.Index(string(signed), "</Modulus>")
	k := strings.Index(string(signed), "<Exponent>") // a certificate may contain AQAB as well
	for name, c := range map[string]struct {
		document []byte
		err      error
	}{
		"two certificates with the key": {withCertificates(signed, signer().Certificate, same.Certificate), xmlsig.ErrSignature},
		"no certificate with the key":   {withCertificates(signed, signer().CA.Certificate), xmlsig.ErrSignature},
		"more certificates than 8":      {withCertificates(signed, many...), xmlsig.ErrCertificate},
		"another key value":             {[]byte(string(signed[:i]) + otherKey + string(signed[j:])), xmlsig.ErrSignature},
		"another exponent":              {[]byte(string(signed[:k]) + strings.Replace(string(signed[k:]), "AQAB", "AQAD", 1)), xmlsig.ErrSignature},
		"key value twice":               {[]byte(strings.Replace(string(signed), "</KeyValue>", "</KeyValue>"+string(signed[strings.Index(string(signed), "<KeyValue>"):strings.Index(string(signed), "</KeyInfo>")]), 1)), xmlsig.ErrSignature},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := xmlsig.Verify(c.document, xmlsig.SmallLimits())
			checkRefusal(t, err, c.err)
		})
	}
}

// An element in a namespace is never read as an element of a format, which has
// none.
func TestElementsInANamespaceHaveAnotherName(t *testing.T) {
	t.Parallel()
	d, err := xmlsig.Parse([]byte(`<ECF xmlns:x="urn:x"><x:a>1</x:a><a xmlns="urn:y">2</a><b xmlns="urn:y"><a xmlns="">3</a></b></ECF>`), xmlsig.SmallLimits())
	if err != nil {
		t.Fatal(err)
	}
	const want = "ECF=\n {urn:x}a=1\n {urn:y}a=2\n {urn:y}b=\n  a=3\n"
	if got := dump(d.Root()); got != want {
		t.Errorf("read\n%swant\n%s", got, want)
	}
	if a := d.Root().Child("a"); !a.IsZero() {
		t.Errorf("a namespaced element is found as a: %q", a.Text())
	}
	if got := d.Root().Child("{urn:y}b").Child("a").Text(); got != "3" {
		t.Errorf("a in b is %q", got)
	}
}
