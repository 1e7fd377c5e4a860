package xmlsig_test

import (
	"regexp"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

var tags = regexp.MustCompile(`><([A-Za-z])`)

// indent puts every start tag on a line of its own.
func indent(s string) string {
	declaration, rest, _ := strings.Cut(s, "?>")
	return declaration + "?>\n" + strings.TrimPrefix(tags.ReplaceAllString(rest, ">\n  <$1"), "\n")
}

type change struct {
	name     string
	change   func(string) string
	err      error // nil when it verifies, with the original values
	indented bool
}

func replace(old, with string) func(string) string {
	return func(s string) string {
		if !strings.Contains(s, old) {
			panic("nothing to change: " + old)
		}
		return strings.Replace(s, old, with, 1)
	}
}

func replaceAll(old, with string) func(string) string {
	return func(s string) string { return strings.ReplaceAll(s, old, with) }
}

func prefix(p string) func(string) string { return func(s string) string { return p + s } }

func suffix(p string) func(string) string { return func(s string) string { return s + p } }

// body returns the parts of a document before, in and after its signature,
// without the XML declaration.
func body(s string) (before, signature, after string) {
	_, s, _ = strings.Cut(s, "?>")
	i, j := strings.Index(s, "<Signature"), strings.LastIndex(s, "</Signature>")+len("</Signature>")
	if i < 0 || j < i {
		return s, "", ""
	}
	return s[:i], s[i:j], s[j:]
}

const doctype = `<!DOCTYPE ECF [`

// changes are changes of a signed document.
var changes = []change{
	{name: "nothing", change: func(s string) string { return s }},

	// Outside the root.
	{name: "byte order mark", change: prefix("\uFEFF")},
	{name: "newline after the declaration", change: replace("?>", "?>\n")},
	{name: "trailing newline", change: suffix("\r\n")},
	{name: "declaration removed", change: replace(`<?xml version="1.0" encoding="utf-8"?>`, "")},
	{name: "declaration with single quotes and standalone", change: replace(`<?xml version="1.0" encoding="utf-8"?>`, `<?xml version='1.0' encoding = 'UTF-8' standalone="yes" ?>`)},
	{name: "declaration without encoding", change: replace(` encoding="utf-8"`, "")},
	{name: "two byte order marks", change: prefix("\uFEFF\uFEFF"), err: xmlsig.ErrMalformed},
	{name: "white space before the declaration", change: prefix(" "), err: xmlsig.ErrMalformed},
	{name: "text before the root", change: replace("?>", "?>x"), err: xmlsig.ErrMalformed},
	{name: "text after the root", change: suffix("x"), err: xmlsig.ErrMalformed},
	{name: "second root", change: suffix("<ECF></ECF>"), err: xmlsig.ErrMalformed},
	{name: "comment before the root", change: replace("?>", "?><!-- x -->"), err: xmlsig.ErrMalformed},
	{name: "comment after the root", change: suffix("<!-- x -->"), err: xmlsig.ErrMalformed},
	{name: "instruction before the root", change: replace("?>", "?><?x y?>"), err: xmlsig.ErrMalformed},
	{name: "instruction after the root", change: suffix("<?x y?>"), err: xmlsig.ErrMalformed},
	{name: "XML 1.1", change: replace(`version="1.0"`, `version="1.1"`), err: xmlsig.ErrMalformed},
	{name: "declaration without version", change: replace(` version="1.0"`, ""), err: xmlsig.ErrMalformed},
	{name: "declaration in another order", change: replace(`version="1.0" encoding="utf-8"`, `encoding="utf-8" version="1.0"`), err: xmlsig.ErrMalformed},
	{name: "declaration of nothing", change: replace(` version="1.0" encoding="utf-8"`, " "), err: xmlsig.ErrMalformed},
	{name: "reference in the declaration", change: replace("utf-8", "u&#116;f-8"), err: xmlsig.ErrMalformed},
	{name: "declaration that does not end", change: func(string) string { return `<?xml version="1.0"` }, err: xmlsig.ErrMalformed},

	// The same text in another form.
	{name: "character reference of the same text", change: replace("35400.00", "&#51;&#x35;400.00")},
	{name: "quotes as entities", change: replaceAll(`"Hijos"`, "&quot;Hijos&#34;")},
	{name: "raw greater-than sign", change: replace("&gt;", ">")},
	{name: "white space in tags", change: replace("<Version>1.0</Version>", "<Version\n >1.0</Version\t>")},
	{name: "start and end of an empty element", change: replaceAll("></CanonicalizationMethod>", " />")},
	{name: "reference in an attribute", change: replace(`Algorithm="http`, `Algorithm="&#104;ttp`)},
	{name: "attribute in single quotes", change: replace(`URI=""`, `URI = ''`)},
	{name: "double escaping", change: replace("&amp;", "&amp;amp;"), err: xmlsig.ErrSignature},

	// Values.
	{name: "value changed", change: replace("35400.00", "35400.01"), err: xmlsig.ErrSignature},
	{name: "element renamed", change: replaceAll("MontoTotal", "MontoOtro"), err: xmlsig.ErrSignature},
	{name: "element removed", change: replace("<Version>1.0</Version>", ""), err: xmlsig.ErrSignature},
	{name: "elements swapped", change: replace("<Version>1.0</Version><RNCEmisor>131880681</RNCEmisor>", "<RNCEmisor>131880681</RNCEmisor><Version>1.0</Version>"), err: xmlsig.ErrSignature},
	{name: "element emptied", change: replace("<Version>1.0</Version>", "<Version/>"), err: xmlsig.ErrSignature},
	{name: "space at the end of a value", change: replace("35400.00", "35400.00 "), err: xmlsig.ErrSignature},
	{name: "TAB in a value", change: replace("Peña &amp;", "Peña\t&amp;"), err: xmlsig.ErrSignature},
	{name: "line end in a value", change: replace("Peña ", "Peña\r\n"), err: xmlsig.ErrSignature},
	{name: "decomposed letter", change: replace("ñ", "n\u0303"), err: xmlsig.ErrSignature},
	{name: "zero-width space in a value", change: replace("131880681", "1318\u200b80681"), err: xmlsig.ErrSignature},
	{name: "bidirectional override in a value", change: replace("131880681", "\u202e131880681"), err: xmlsig.ErrSignature},
	{name: "value of spaces only", change: replace("<Version>1.0<", "<Version>   <"), err: xmlsig.ErrSignature},
	{name: "reference to carriage return", change: replace("35400.00", "35400.00&#13;"), err: xmlsig.ErrSignature},

	// Injection.
	{name: "comment in a value", change: replace("131880681", "1318<!--x-->80681"), err: xmlsig.ErrMalformed},
	{name: "comment in an amount", change: replace("35400.00", "35400<!---->.00"), err: xmlsig.ErrMalformed},
	{name: "comment in the signature", change: replace("<SignatureValue>", "<SignatureValue><!--x-->"), err: xmlsig.ErrMalformed},
	{name: "instruction in a value", change: replace("131880681", "1318<?x?>80681"), err: xmlsig.ErrMalformed},
	{name: "instruction between elements", change: replace("<Version>", "<?x?><Version>"), err: xmlsig.ErrMalformed},
	{name: "CDATA of a value", change: replace("131880681", "<![CDATA[131880681]]>"), err: xmlsig.ErrMalformed},
	{name: "CDATA of a part of a value", change: replace("131880681", "1318<![CDATA[80681]]>"), err: xmlsig.ErrMalformed},
	{name: "end of CDATA in text", change: replace("35400.00", "]]>"), err: xmlsig.ErrMalformed},
	{name: "NUL", change: replace("131880681", "1318\x0080681"), err: xmlsig.ErrMalformed},
	{name: "NUL as a reference", change: replace("131880681", "1318&#0;80681"), err: xmlsig.ErrMalformed},
	{name: "control character", change: replace("131880681", "1318\x0b80681"), err: xmlsig.ErrMalformed},
	{name: "control character as a reference", change: replace("131880681", "1318&#xb;80681"), err: xmlsig.ErrMalformed},
	{name: "surrogate as a reference", change: replace("131880681", "&#xD800;"), err: xmlsig.ErrMalformed},
	{name: "noncharacter", change: replace("131880681", "\uFFFF"), err: xmlsig.ErrMalformed},
	{name: "noncharacter as a reference", change: replace("131880681", "&#xFFFE;"), err: xmlsig.ErrMalformed},
	{name: "reference beyond Unicode", change: replace("131880681", "&#x110000;"), err: xmlsig.ErrMalformed},
	{name: "reference that wraps around", change: replace("131880681", "&#4294967345;"), err: xmlsig.ErrMalformed},
	{name: "reference with a sign", change: replace("131880681", "&#+49;"), err: xmlsig.ErrMalformed},
	{name: "reference without digits", change: replace("131880681", "&#;"), err: xmlsig.ErrMalformed},
	{name: "reference with a capital X", change: replace("131880681", "&#X31;"), err: xmlsig.ErrMalformed},
	{name: "reference without an end", change: replace("131880681", "&#49"), err: xmlsig.ErrMalformed},
	{name: "ampersand alone", change: replace("&amp;", "&"), err: xmlsig.ErrMalformed},
	{name: "entity of HTML", change: replace("Peña", "&copy;"), err: xmlsig.ErrMalformed},
	{name: "overlong UTF-8", change: replace("131880681", "\xc0\xb1"), err: xmlsig.ErrMalformed},
	{name: "surrogate in UTF-8", change: replace("131880681", "\xed\xa0\x80"), err: xmlsig.ErrMalformed},
	{name: "Latin-1 that says UTF-8", change: replaceAll("ñ", "\xf1"), err: xmlsig.ErrMalformed},
	{name: "UTF-8 that says Latin-1", change: replace("utf-8", "iso-8859-1"), err: xmlsig.ErrMalformed},
	{name: "UTF-8 that says UTF-16", change: replace("utf-8", "utf-16"), err: xmlsig.ErrMalformed},
	{name: "UTF-16", change: utf16, err: xmlsig.ErrMalformed},

	// Document types, and references that a parser might fetch.
	{name: "external entity", change: replace("?>", "?>"+doctype+`<!ENTITY x SYSTEM "file:///etc/passwd">]>`), err: xmlsig.ErrMalformed},
	{name: "parameter entity", change: replace("?>", "?>"+doctype+`<!ENTITY % x SYSTEM "http://127.0.0.1/x"> %x;]>`), err: xmlsig.ErrMalformed},
	{name: "entity expansion", change: replace("?>", "?>"+doctype+`<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>`), err: xmlsig.ErrMalformed},
	{name: "entity of the same text", change: func(s string) string {
		return replace("?>", "?>"+doctype+`<!ENTITY x "131880681">]>`)(replace("131880681", "&x;")(s))
	}, err: xmlsig.ErrMalformed},
	{name: "document type without a subset", change: replace("?>", "?><!DOCTYPE ECF>"), err: xmlsig.ErrMalformed},
	{name: "entity without a declaration", change: replace("131880681", "&x;"), err: xmlsig.ErrMalformed},
	{name: "schema location", change: replace("<ECF>", `<ECF xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="http://127.0.0.1/x.xsd">`), err: xmlsig.ErrSignature},
	{name: "XInclude", change: replace("<Version>", `<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="file:///etc/passwd"/><Version>`), err: xmlsig.ErrSignature},
	{name: "style sheet", change: replace("?>", `?><?xml-stylesheet href="x.xsl"?>`), err: xmlsig.ErrMalformed},

	// Namespaces and attributes.
	{name: "namespace added to the root", change: replace("<ECF>", `<ECF xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">`), err: xmlsig.ErrSignature},
	{name: "default namespace on the root", change: replace("<ECF>", `<ECF xmlns="urn:x">`), err: xmlsig.ErrSignature},
	{name: "empty default namespace on the root", change: replace("<ECF>", `<ECF xmlns="">`)},
	{name: "relative namespace", change: replace("<ECF>", `<ECF xmlns:x="x">`), err: xmlsig.ErrMalformed},
	{name: "namespace with an ampersand, which libxml2 does not write as it is", change: replace("<ECF>", `<ECF xmlns:x="http://example.org/?a&amp;b">`), err: xmlsig.ErrMalformed},
	{name: "empty namespace", change: replace("<ECF>", `<ECF xmlns:x="">`), err: xmlsig.ErrMalformed},
	{name: "namespace twice", change: replace("<ECF>", `<ECF xmlns:x="urn:x" xmlns:x="urn:x">`), err: xmlsig.ErrMalformed},
	{name: "namespace of XML itself", change: replace("<ECF>", `<ECF xmlns:xml="http://www.w3.org/XML/1998/namespace">`), err: xmlsig.ErrMalformed},
	{name: "namespace of XML under another prefix", change: replace("<ECF>", `<ECF xmlns:x="http://www.w3.org/XML/1998/namespace">`), err: xmlsig.ErrMalformed},
	{name: "too many namespaces", change: func(s string) string {
		var b strings.Builder
		for c := 'a'; c <= 'z'; c++ {
			b.WriteString(" xmlns:" + string(c) + `="urn:x"`)
		}
		return replace("<ECF>", "<ECF"+b.String()+">")(s)
	}, err: xmlsig.ErrMalformed},
	{name: "prefix that starts with xml", change: replace("<ECF>", `<ECF xmlns:XmlX="urn:x">`), err: xmlsig.ErrMalformed},
	{name: "attribute after the signature", change: replace("</ECF>", `<a x="y"></a></ECF>`), err: xmlsig.ErrSignature},
	{name: "attribute on the root", change: replace("<ECF>", `<ECF Id="x">`), err: xmlsig.ErrSignature},
	{name: "attribute in the content", change: replace("<Version>", `<Version x="y">`), err: xmlsig.ErrSignature},
	{name: "xml:space in the content", change: replace("<Version>", `<Version xml:space="preserve">`), err: xmlsig.ErrSignature},
	{name: "namespace in the content", change: replace("<Version>", `<Version xmlns="urn:x">`), err: xmlsig.ErrSignature},
	{name: "prefix in the content", change: replaceAll("Version>", "x:Version>"), err: xmlsig.ErrMalformed},
	{name: "accent in a name", change: replaceAll("Version>", "Versión>"), err: xmlsig.ErrMalformed},
	{name: "attributes without white space between", change: replace(`<ECF>`, `<ECF xmlns:a="urn:a"xmlns:b="urn:b">`), err: xmlsig.ErrMalformed},
	{name: "attribute without quotes", change: replace(`URI=""`, `URI=x`), err: xmlsig.ErrMalformed},
	{name: "attribute without value", change: replace(`URI=""`, `URI`), err: xmlsig.ErrMalformed},
	{name: "line end in an attribute", change: replace(`URI=""`, "URI=\"\n\""), err: xmlsig.ErrSignature},
	{name: "less-than sign in an attribute", change: replace(`URI=""`, `URI="<"`), err: xmlsig.ErrMalformed},

	// Structure.
	{name: "text next to elements", change: replace("<Version>", "x<Version>"), err: xmlsig.ErrMalformed},
	{name: "text after elements", change: replace("</Encabezado>", "x</Encabezado>"), err: xmlsig.ErrMalformed},
	{name: "reference to white space between elements", change: replace("<Version>", "&#32;<Version>"), err: xmlsig.ErrMalformed},
	{name: "no-break space between elements", change: replace("<Version>", "\u00a0<Version>"), err: xmlsig.ErrMalformed},
	{name: "wrong end tag", change: replace("</Version>", "</Versio>"), err: xmlsig.ErrMalformed},
	{name: "longer end tag", change: replace("</Version>", "</VersionX>"), err: xmlsig.ErrMalformed},
	{name: "no end", change: replace("</ECF>", ""), err: xmlsig.ErrMalformed},
	{name: "cut inside a tag", change: replace("></ECF>", "><Signature"), err: xmlsig.ErrMalformed},
	{name: "nothing at all", change: func(string) string { return "" }, err: xmlsig.ErrMalformed},
	{name: "only a declaration", change: func(string) string { return `<?xml version="1.0"?>` }, err: xmlsig.ErrMalformed},
	{name: "JSON", change: func(string) string { return `{"a":1}` }, err: xmlsig.ErrMalformed},
	{name: "less-than sign alone", change: replace("35400.00", "< 3"), err: xmlsig.ErrMalformed},
	{name: "no signature", change: func(s string) string { a, _, c := body(s); return a + c }, err: xmlsig.ErrNotSigned},

	// White space. In values it is signed; between elements it may be added after
	// signing.
	{name: "newline between two elements", change: replace("<Version>", "\n<Version>"), indented: true},
	{name: "indented after signing", change: indent, indented: true},
	{name: "indented after signing with CRLF", change: func(s string) string { return strings.ReplaceAll(indent(s), "\n", "\r\n") }, indented: true},
	{name: "byte order mark and indentation", change: func(s string) string { return "\uFEFF" + indent(s) }, indented: true},
	{name: "white space before the signature", change: replace("<Signature ", " <Signature "), indented: true},
	{name: "white space after the signature", change: replace("</ECF>", "\n</ECF>"), indented: true},
	{name: "white space inside SignedInfo", change: replace("<SignatureMethod", "\n<SignatureMethod"), indented: true},
	{name: "indented and a value changed", change: func(s string) string { return indent(replace("35400.00", "35400.01")(s)) }, err: xmlsig.ErrSignature},
	{name: "line breaks inside SignatureValue", change: func(s string) string {
		i := strings.Index(s, "<SignatureValue>") + len("<SignatureValue>")
		return s[:i] + "\n " + s[i:i+64] + "\r\n" + s[i+64:i+128] + "&#13;\n\t" + s[i+128:]
	}},
	{name: "line breaks inside the certificate", change: replace("<X509Certificate>", "<X509Certificate>\n")},

	// Wrapping.
	{name: "new root around the signed one", change: func(s string) string { a, b, c := body(s); return "<Sobre>" + a + b + c + "</Sobre>" }, err: xmlsig.ErrSignature},
	{name: "signed root in a new one with the signature moved up", change: func(s string) string {
		a, b, c := body(s)
		return "<ECF>" + a + c + b + "</ECF>"
	}, err: xmlsig.ErrSignature},
	{name: "signed root moved into Object", change: func(s string) string {
		a, b, c := body(s)
		return "<ECF><Encabezado><RNCEmisor>1</RNCEmisor></Encabezado>" + strings.Replace(b, "</Signature>", "<Object>"+a+c+"</Object></Signature>", 1) + "</ECF>"
	}, err: xmlsig.ErrSignature},
	{name: "second document as a sibling", change: replace("<Encabezado>", "<ECF><Encabezado></Encabezado></ECF><Encabezado>"), err: xmlsig.ErrSignature},
	{name: "two signatures", change: func(s string) string { a, b, c := body(s); return a + b + b + c }, err: xmlsig.ErrSignature},
	{name: "signature as the first child", change: func(s string) string {
		a, b, c := body(s)
		return strings.Replace(a, "<ECF>", "<ECF>"+b, 1) + c
	}, err: xmlsig.ErrSignature},
	{name: "signature not last", change: replace("</ECF>", "<MontoTotal>1</MontoTotal></ECF>"), err: xmlsig.ErrSignature},
	{name: "signature inside the content", change: func(s string) string {
		a, b, c := body(s)
		return strings.Replace(a, "</Encabezado>", b+"</Encabezado>", 1) + c
	}, err: xmlsig.ErrSignature},
	{name: "signature as the root", change: func(s string) string { _, b, _ := body(s); return b }, err: xmlsig.ErrSignature},
	{name: "signature next to text", change: func(s string) string { _, b, _ := body(s); return "<ECF>x" + b + "</ECF>" }, err: xmlsig.ErrMalformed},
	{name: "signature and nothing else", change: func(s string) string { _, b, _ := body(s); return "<ECF>" + b + "</ECF>" }, err: xmlsig.ErrSignature},
	{name: "signature of no namespace", change: replace(`<Signature xmlns="`+dsig+`">`, "<Signature>"), err: xmlsig.ErrSignature},
	{name: "signature of another namespace", change: replace(`<Signature xmlns="`+dsig+`">`, `<Signature xmlns="urn:x">`), err: xmlsig.ErrSignature},
	{name: "signature element with a prefix and children without", change: func(s string) string {
		return strings.NewReplacer("<Signature xmlns=", "<ds:Signature xmlns:ds=", "</Signature>", "</ds:Signature>").Replace(s)
	}, err: xmlsig.ErrSignature},
	{name: "SignedInfo of another namespace", change: replace("<SignedInfo>", `<SignedInfo xmlns="urn:x">`), err: xmlsig.ErrSignature},
	{name: "X509Data of no namespace", change: replace("<X509Data>", `<X509Data xmlns="">`), err: xmlsig.ErrSignature},
	{name: "second Signature of another namespace", change: replace("<Version>", `<x:Signature xmlns:x="urn:x"></x:Signature><Version>`), err: xmlsig.ErrSignature},

	// Inside the signature, where only SignedInfo is signed.
	{name: "Object added", change: replace("</Signature>", "<Object>x</Object></Signature>"), err: xmlsig.ErrSignature},
	{name: "Id on the signature", change: replace("<Signature ", `<Signature Id="x" `)},
	{name: "Id on SignatureValue", change: replace("<SignatureValue>", `<SignatureValue Id="x">`)},
	{name: "Id on X509Data", change: replace("<X509Data>", `<X509Data Id="x">`), err: xmlsig.ErrSignature},
	{name: "Id on X509Certificate", change: replace("<X509Certificate>", `<X509Certificate Id="x">`), err: xmlsig.ErrSignature},
	{name: "Id on KeyInfo", change: replace("<KeyInfo>", `<KeyInfo Id="x">`)},
	{name: "attribute twice", change: replace(`URI=""`, `URI="" URI=""`), err: xmlsig.ErrMalformed},
	{name: "namespace on SignatureValue", change: replace("<SignatureValue>", `<SignatureValue xmlns:x="urn:x">`)},
	{name: "prefixed attribute", change: replace("<SignatureValue>", `<SignatureValue xmlns:x="urn:x" x:Id="y">`), err: xmlsig.ErrSignature},
	{name: "attribute with a prefix that is not declared", change: replace("<SignatureValue>", `<SignatureValue x:Id="y">`), err: xmlsig.ErrMalformed},
	{name: "attribute twice by two prefixes", change: replace("<Version>", `<Version xmlns:a="urn:x" xmlns:b="urn:x" a:y="1" b:y="1">`), err: xmlsig.ErrMalformed},
	{name: "element with the prefix xml", change: replaceAll("Version>", "xml:Version>"), err: xmlsig.ErrMalformed},
	{name: "element with two prefixes", change: replaceAll("Version>", "a:b:Version>"), err: xmlsig.ErrMalformed},
	{name: "element with an empty prefix", change: replaceAll("Version>", ":Version>"), err: xmlsig.ErrMalformed},
	{name: "element with a prefix alone", change: replaceAll("Version>", "Version:>"), err: xmlsig.ErrMalformed},
	{name: "empty default namespace in the content", change: replace("<Version>", `<Version xmlns="">`)},
	{name: "empty KeyValue next to the certificate", change: replace("<X509Data>", "<KeyValue></KeyValue><X509Data>"), err: xmlsig.ErrSignature},
	{name: "KeyName", change: replace("<X509Data>", "<KeyName>x</KeyName><X509Data>")},
	{name: "subject name next to the certificate", change: replace("<X509Certificate>", "<X509SubjectName>x</X509SubjectName><X509Certificate>")},
	{name: "elements in KeyName", change: replace("<X509Data>", "<KeyName><a></a></KeyName><X509Data>"), err: xmlsig.ErrSignature},
	{name: "retrieval method", change: replace("<X509Data>", `<RetrievalMethod URI="http://127.0.0.1/"></RetrievalMethod><X509Data>`), err: xmlsig.ErrSignature},
	{name: "revocation list next to the certificate", change: replace("<X509Certificate>", "<X509CRL>AAAA</X509CRL><X509Certificate>"), err: xmlsig.ErrSignature},
	{name: "issuer and serial number", change: replace("<X509Certificate>", "<X509IssuerSerial><X509IssuerName>CN=x</X509IssuerName><X509SerialNumber>1</X509SerialNumber></X509IssuerSerial><X509Certificate>")},
	{name: "serial number that is not one", change: replace("<X509Certificate>", "<X509IssuerSerial><X509IssuerName>CN=x</X509IssuerName><X509SerialNumber>x</X509SerialNumber></X509IssuerSerial><X509Certificate>"), err: xmlsig.ErrSignature},
	{name: "KeyInfo without a certificate", change: func(s string) string {
		i, j := strings.Index(s, "<X509Certificate>"), strings.Index(s, "</X509Data>")
		return s[:i] + "<X509SubjectName>CN=x</X509SubjectName>" + s[j:]
	}, err: xmlsig.ErrSignature},
	{name: "no KeyInfo", change: func(s string) string {
		return s[:strings.Index(s, "<KeyInfo>")] + s[strings.Index(s, "</KeyInfo>")+len("</KeyInfo>"):]
	}, err: xmlsig.ErrSignature},
	{name: "empty certificate", change: func(s string) string {
		return s[:strings.Index(s, "<X509Certificate>")+len("<X509Certificate>")] + s[strings.Index(s, "</X509Certificate>"):]
	}, err: xmlsig.ErrCertificate},
	{name: "certificate that is not Base64", change: replace("<X509Certificate>", "<X509Certificate>*"), err: xmlsig.ErrCertificate},
	{name: "certificate that is no certificate", change: replace("<X509Certificate>", "<X509Certificate>AAAA"), err: xmlsig.ErrCertificate},
	{name: "huge certificate", change: replace("<X509Certificate>", "<X509Certificate>"+strings.Repeat("AAAA", 10_000)), err: xmlsig.ErrCertificate},
	{name: "huge SignatureValue", change: replace("<SignatureValue>", "<SignatureValue>"+strings.Repeat("AAAA", 50_000)), err: xmlsig.ErrSignature},
	{name: "elements in SignatureValue", change: replace("<SignatureValue>", "<SignatureValue><a></a>"), err: xmlsig.ErrMalformed},
	{name: "SignatureValue of elements", change: func(s string) string {
		return s[:strings.Index(s, "<SignatureValue>")] + "<SignatureValue><a></a></SignatureValue>" + s[strings.Index(s, "<KeyInfo>"):]
	}, err: xmlsig.ErrSignature},
}

func utf16(s string) string {
	b := []byte{0xff, 0xfe}
	for _, r := range s {
		b = append(b, byte(r), byte(r>>8))
	}
	return string(b)
}
