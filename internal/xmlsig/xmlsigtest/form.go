package xmlsigtest

import (
	"strings"
	"testing"
)

// The canonicalization methods of a Form.
const (
	Inclusive = "http://www.w3.org/TR/2001/REC-xml-c14n-20010315"
	Exclusive = "http://www.w3.org/2001/10/xml-exc-c14n#"
)

const dsig = "http://www.w3.org/2000/09/xmldsig#"

// A Form is one form of an enveloped signature, as software of other parties
// makes it. The zero Form is that of xmlsig itself.
type Form struct {
	Name      string
	Root      string // attributes and namespace declarations that are added to the root
	Prefix    string // of the elements of the signature
	Attribute string // of the Signature element
	Method    string // the canonicalization of SignedInfo; Inclusive when it is ""
	Transform string // the canonicalization of the document, or "" for no second transform
	Prefixes  string // the PrefixList of both, when they are exclusive
	URI       string // of the reference
	KeyInfo   string // the template of the content of KeyInfo; X509Data when it is ""
	Indented  bool   // the signature is indented before signing
}

// Forms returns the forms that xmlsec1 verifies and that xmlsig must accept.
func Forms() []Form {
	const schema = ` xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="a b.xsd"`
	const all = "<X509Data><X509SubjectName>CN=Persona,C=DO</X509SubjectName><X509IssuerSerial><X509IssuerName>CN=Autoridad,C=DO</X509IssuerName>" +
		"<X509SerialNumber>123456789012345678901234567890</X509SerialNumber></X509IssuerSerial><X509SKI>mGrq0vXz2Ma9jyo+jnYbmOxcy8U=</X509SKI><X509Certificate/></X509Data>"
	return []Form{
		{Name: "inclusive"},
		{Name: "inclusive as second transform", Transform: Inclusive},
		{Name: "exclusive SignedInfo", Method: Exclusive},
		{Name: "exclusive", Method: Exclusive, Transform: Exclusive},
		{Name: "exclusive second transform", Transform: Exclusive},
		{Name: "inclusive after exclusive SignedInfo", Method: Exclusive, Transform: Inclusive},
		{Name: "exclusive with a schema", Root: schema, Method: Exclusive, Transform: Exclusive},
		{Name: "exclusive with a prefix list", Root: schema, Method: Exclusive, Transform: Exclusive, Prefixes: "xsd xsi absent"},
		{Name: "exclusive with the default namespace listed", Root: schema, Method: Exclusive, Transform: Exclusive, Prefixes: "#default xsi"},
		{Name: "schema on the root", Root: schema},
		{Name: "attributes on the root", Root: ` z="1" a="&#9;2 &amp;&lt;&quot;" Id="doc" xml:lang="es"`},
		{Name: "prefix", Prefix: "ds"},
		{Name: "prefix, exclusive", Prefix: "ds", Method: Exclusive, Transform: Exclusive},
		{Name: "prefix that the root declares", Root: ` xmlns:ds="` + dsig + `"`, Prefix: "ds", Method: Exclusive},
		{Name: "unusual prefix", Prefix: "_x-1.y"},
		{Name: "Id on the signature", Attribute: ` Id="xmldsig-1"`},
		{Name: "indented signature", Prefix: "ds", Indented: true},
		{Name: "names of the certificate", KeyInfo: all},
		{Name: "empty names of the certificate", KeyInfo: "<X509Data><X509Certificate/><X509SubjectName/><X509IssuerSerial/><X509SKI/></X509Data>"},
		{Name: "key value after the certificate", KeyInfo: "<X509Data/><KeyValue/>"},
		{Name: "key value before the certificate", KeyInfo: "<KeyValue/><X509Data/>"},
		{Name: "key name", KeyInfo: "<KeyName>clave</KeyName><X509Data/>"},
		{Name: "everything", Root: schema, Prefix: "ds", Attribute: ` Id="s1"`, Method: Exclusive, Transform: Exclusive, KeyInfo: "<KeyName>clave</KeyName><KeyValue/>" + all, Indented: true},
	}
}

// Sign signs a document without a signature with xmlsec1. The arguments are added
// to the command.
func (f Form) Sign(t testing.TB, leaf *Leaf, document string, args ...string) []byte {
	t.Helper()
	return XmlsecSign(t, leaf, f.Template(t, document), args...)
}

// Template returns a document with the template of its signature as the last
// child of its root.
func (f Form) Template(t testing.TB, document string) string {
	t.Helper()
	start, end := strings.Index(document, "<"), strings.LastIndex(document, "</")
	if strings.HasPrefix(document, "<?xml") {
		start = strings.Index(document, "?>") + strings.Index(document[strings.Index(document, "?>"):], "<")
	}
	name := start + 1 + strings.IndexAny(document[start+1:], " \t\r\n>")
	if start < 0 || end < name {
		t.Fatalf("the document has no root with children:\n%s", document)
	}
	return document[:name] + f.Root + document[name:end] + f.signature() + document[end:]
}

func (f Form) signature() string {
	method := f.Method
	if method == "" {
		method = Inclusive
	}
	transforms := `<Transform Algorithm="` + dsig + `enveloped-signature"/>`
	if f.Transform != "" {
		transforms += f.canonicalization("Transform", f.Transform)
	}
	keyInfo := f.KeyInfo
	if keyInfo == "" {
		keyInfo = "<X509Data/>"
	}
	s := `<Signature` + f.Attribute + `><SignedInfo>` + f.canonicalization("CanonicalizationMethod", method) +
		`<SignatureMethod Algorithm="http://www.w3.org/2001/04/xmldsig-more#rsa-sha256"/><Reference URI="` + f.URI + `"><Transforms>` + transforms +
		`</Transforms><DigestMethod Algorithm="http://www.w3.org/2001/04/xmlenc#sha256"/><DigestValue/></Reference></SignedInfo><SignatureValue/><KeyInfo>` +
		keyInfo + `</KeyInfo></Signature>`
	if f.Indented {
		s = strings.ReplaceAll(s, "><", ">\r\n\t<")
	}
	declaration := ` xmlns="` + dsig + `"`
	if f.Prefix != "" {
		s = strings.NewReplacer("</", "</"+f.Prefix+":", "<ec:", "<ec:", "<", "<"+f.Prefix+":").Replace(s)
		declaration = ` xmlns:` + f.Prefix + `="` + dsig + `"`
		return strings.Replace(s, "<"+f.Prefix+":Signature", "<"+f.Prefix+":Signature"+declaration, 1)
	}
	return strings.Replace(s, "<Signature", "<Signature"+declaration, 1)
}

func (f Form) canonicalization(element, algorithm string) string {
	if algorithm != Exclusive || f.Prefixes == "" {
		return `<` + element + ` Algorithm="` + algorithm + `"/>`
	}
	return `<` + element + ` Algorithm="` + algorithm + `"><ec:InclusiveNamespaces xmlns:ec="` + Exclusive + `" PrefixList="` + f.Prefixes + `"/></` + element + `>`
}
