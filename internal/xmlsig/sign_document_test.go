package xmlsig_test

import (
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// The namespaces are in the order of the authority, which is not the canonical
// one.
const seed = "\uFEFF" + `<?xml version="1.0" encoding="utf-8"?>
<SemillaModel xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:xsd="http://www.w3.org/2001/XMLSchema">
  <valor>q3J+/w== &amp; &quot;ñ&quot;&#13;</valor>
  <fecha>2026-11-14T10:00:00.1234567-04:00</fecha>
</SemillaModel>
`

func TestSignDocumentSignsTheCanonicalForm(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, document, want string
		err                  error
	}{
		{name: "seed", document: seed, want: `<SemillaModel xmlns:xsd="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">` +
			`<valor>q3J+/w== &amp; "ñ"&#xD;</valor><fecha>2026-11-14T10:00:00.1234567-04:00</fecha></SemillaModel>`},
		{name: "no namespaces", document: "<a><b>x</b><c/><d> </d></a>", want: "<a><b>x</b><c></c><d> </d></a>"},
		{name: "namespace with a query", document: `<a xmlns:x='http://example.org/?a=b'><b/></a>`, want: `<a xmlns:x="http://example.org/?a=b"><b></b></a>`},
		{name: "names of many kinds", document: `<a xmlns:Z='urn:x:y' xmlns:b="https://example.org" xmlns:a='http://example.org/x#y'><b_-.1/></a>`,
			want: `<a xmlns:Z="urn:x:y" xmlns:a="http://example.org/x#y" xmlns:b="https://example.org"><b_-.1></b_-.1></a>`},
		{name: "namespace of signatures under a prefix", document: `<a xmlns:ds='` + dsig + `'><b/></a>`, want: `<a xmlns:ds="` + dsig + `"><b></b></a>`},
		{name: "signed already", document: "<a><b/><Signature/></a>", err: xmlsig.ErrSignature},
		{name: "signed inside", document: "<a><b><Signature/></b></a>", err: xmlsig.ErrSignature},
		{name: "attribute", document: `<a><b x="y"/></a>`, err: xmlsig.ErrMalformed},
		{name: "default namespace", document: `<a xmlns="urn:x"><b/></a>`, err: xmlsig.ErrMalformed},
		{name: "namespace on a child", document: `<a><b xmlns:x="urn:x"/></a>`, err: xmlsig.ErrMalformed},
		{name: "text alone", document: "<a>b</a>", err: xmlsig.ErrMalformed},
		{name: "nothing", document: "<a/>", err: xmlsig.ErrMalformed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d, err := xmlsig.Parse([]byte(c.document), xmlsig.SmallLimits())
			if err != nil {
				t.Fatal(err)
			}
			signed, err := signer().Identity.SignDocument(d)
			checkRefusal(t, err, c.err)
			if err != nil {
				return
			}
			if before, _, after := body(string(signed)); before+after != c.want {
				t.Errorf("signed\n%s\nwant\n%s", before+after, c.want)
			}
			v, err := xmlsig.Verify(signed, xmlsig.SmallLimits())
			if err != nil {
				t.Fatal(err)
			}
			if v.Indented || dump(v.Root()) != dump(d.Root()) {
				t.Errorf("read\n%s\nof\n%s", dump(v.Root()), dump(d.Root()))
			}
			judge(t, signed, v)
		})
	}
}

func TestWriterSortsNamespaces(t *testing.T) {
	t.Parallel()
	document := write(t, signer().Identity,
		xmlsig.Namespace{Prefix: "xsi", URI: "http://www.w3.org/2001/XMLSchema-instance"},
		xmlsig.Namespace{Prefix: "xsd", URI: "http://www.w3.org/2001/XMLSchema"})
	// Another order of the declarations changes nothing.
	root, rest, _ := strings.Cut(document, `<ECF`+namespacesInOrder)
	if rest == "" {
		t.Fatalf("not in canonical order: %s", root)
	}
	swapped := root + `<ECF xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance'  xmlns:xsd="http://www.w3.org/2001/XMLSchema"` + rest
	for _, d := range []string{document, swapped} {
		v, err := xmlsig.Verify([]byte(d), xmlsig.SmallLimits())
		if err != nil {
			t.Fatal(err)
		}
		judge(t, []byte(d), v)
	}
}
