package xmlsig_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig/xmlsigtest"
)

// Examples of the specifications of Canonical XML 1.0 and of Exclusive XML
// Canonicalization 1.0, and rules of theirs.
func TestCanonicalForms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, document, inclusive, exclusive string
		prefixes                             []string
	}{
		{
			name:      "attributes and namespaces are sorted",
			document:  `<e5 a:attr="out" b:attr="sorted" attr2="all" attr="I'm" xmlns:b="http://www.ietf.org" xmlns:a="http://www.w3.org" xmlns="http://example.org"/>`,
			inclusive: `<e5 xmlns="http://example.org" xmlns:a="http://www.w3.org" xmlns:b="http://www.ietf.org" attr="I'm" attr2="all" b:attr="sorted" a:attr="out"></e5>`,
			exclusive: `<e5 xmlns="http://example.org" xmlns:a="http://www.w3.org" xmlns:b="http://www.ietf.org" attr="I'm" attr2="all" b:attr="sorted" a:attr="out"></e5>`,
		},
		{
			name:      "superfluous declarations are left out",
			document:  `<e6 xmlns=""><e7 xmlns="http://www.ietf.org"><e8 xmlns=""><e9 xmlns="" xmlns:a="http://www.ietf.org"/></e8><e7 xmlns="http://www.ietf.org"/></e7></e6>`,
			inclusive: `<e6><e7 xmlns="http://www.ietf.org"><e8 xmlns=""><e9 xmlns:a="http://www.ietf.org"></e9></e8><e7></e7></e7></e6>`,
			exclusive: `<e6><e7 xmlns="http://www.ietf.org"><e8 xmlns=""><e9></e9></e8><e7></e7></e7></e6>`,
		},
		{
			name:      "exclusive form declares a prefix where it is used",
			document:  `<r xmlns:a="urn:a" xmlns:b="urn:b"><a:x><b:y b:z="1"/></a:x><a:x/></r>`,
			inclusive: `<r xmlns:a="urn:a" xmlns:b="urn:b"><a:x><b:y b:z="1"></b:y></a:x><a:x></a:x></r>`,
			exclusive: `<r><a:x xmlns:a="urn:a"><b:y xmlns:b="urn:b" b:z="1"></b:y></a:x><a:x xmlns:a="urn:a"></a:x></r>`,
		},
		{
			name:      "exclusive form with a prefix list",
			document:  `<r xmlns:a="urn:a" xmlns:b="urn:b"><a:x/></r>`,
			inclusive: `<r xmlns:a="urn:a" xmlns:b="urn:b"><a:x></a:x></r>`,
			exclusive: `<r xmlns:b="urn:b"><a:x xmlns:a="urn:a"></a:x></r>`,
			prefixes:  []string{"b", "c"},
		},
		{
			name:      "a prefix is bound again",
			document:  `<a:r xmlns:a="urn:a"><a:r xmlns:a="urn:b"><a:r xmlns:a="urn:b"/></a:r></a:r>`,
			inclusive: `<a:r xmlns:a="urn:a"><a:r xmlns:a="urn:b"><a:r></a:r></a:r></a:r>`,
			exclusive: `<a:r xmlns:a="urn:a"><a:r xmlns:a="urn:b"><a:r></a:r></a:r></a:r>`,
		},
		{
			name:      "white space and references in attributes",
			document:  "<r a='x\ty\r\nz\n' b='&#9;&#10;&#13;&#x20;\"&lt;&gt;&amp;&apos;' xml:space=\"preserve\"> &gt;\r\n&#13;</r>",
			inclusive: "<r a=\"x y z \" b=\"&#x9;&#xA;&#xD; &quot;&lt;>&amp;'\" xml:space=\"preserve\"> &gt;\n&#xD;</r>",
			exclusive: "<r a=\"x y z \" b=\"&#x9;&#xA;&#xD; &quot;&lt;>&amp;'\" xml:space=\"preserve\"> &gt;\n&#xD;</r>",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d, err := xmlsig.Parse([]byte(c.document), xmlsig.SmallLimits())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.inclusive, string(d.Canonical(true))); diff != "" {
				t.Errorf("inclusive:\n%s", diff)
			}
			if diff := cmp.Diff(c.exclusive, string(d.CanonicalExclusive(c.prefixes...))); diff != "" {
				t.Errorf("exclusive:\n%s", diff)
			}
		})
	}
}

// foreign returns a random document, as software of other parties writes it: with
// prefixes, attributes, default namespaces, white space and references.
func (r random) foreign() string {
	var b strings.Builder
	space := func() string { return r.pick([]string{"", "", " ", "\n", "\r\n\t", "\r"}) }
	uris := []string{"urn:a", "urn:b", "http://example.org/x#y", "http://www.w3.org/2001/XMLSchema-instance", "https://example.org/?q=1"}
	prefixes := []string{"a", "b", "Z", "_c", "xsi", "ds"}
	var element func(depth int, scope map[string]bool)
	element = func(depth int, scope map[string]bool) {
		inner := map[string]bool{}
		for p := range scope {
			inner[p] = true
		}
		var attributes []string
		for range r.IntN(3) {
			if p := r.pick(prefixes); r.IntN(2) == 0 && !strings.Contains(strings.Join(attributes, ""), "xmlns:"+p+"=") {
				attributes = append(attributes, "xmlns:"+p+"="+r.quoted(r.pick(uris)))
				inner[p] = true
			}
		}
		if r.IntN(4) == 0 {
			attributes = append(attributes, "xmlns="+r.quoted(r.pick(append(uris, ""))))
		}
		for _, name := range []string{"z", "A", "xml:lang", "xml:space", "Id"} {
			if r.IntN(5) == 0 {
				attributes = append(attributes, name+"="+r.quoted(r.value()))
			}
		}
		bound := make([]string, 0, len(inner))
		for _, p := range prefixes {
			if inner[p] {
				bound = append(bound, p)
			}
		}
		name := r.pick([]string{"e", "E1", "campo"})
		if len(bound) > 0 {
			if r.IntN(3) == 0 {
				name = r.pick(bound) + ":" + name
			}
			if r.IntN(3) == 0 {
				attributes = append(attributes, r.pick(bound)+":"+r.pick([]string{"k", "K"})+"="+r.quoted(r.value()))
			}
		}
		r.Shuffle(len(attributes), func(i, j int) { attributes[i], attributes[j] = attributes[j], attributes[i] })
		if depth == 0 {
			name = "Raiz"
		}
		b.WriteString("<" + name)
		for _, a := range attributes {
			b.WriteString(r.pick([]string{" ", "\n", "\t\r\n"}) + a)
		}
		b.WriteString(space() + ">")
		switch {
		case depth == 0 || depth < 4 && r.IntN(2) == 0:
			for range 1 + r.IntN(3) {
				b.WriteString(space())
				element(depth+1, inner)
			}
			b.WriteString(space())
		case r.IntN(4) > 0:
			b.WriteString(r.escaped())
		}
		b.WriteString("</" + name + space() + ">")
	}
	element(0, nil)
	return b.String()
}

// quoted returns a value in quotes that it does not have.
func (r random) quoted(s string) string {
	q := r.pick([]string{`"`, `'`})
	return q + strings.ReplaceAll(s, q, "&#39;&#34;") + q
}

// value returns the value of an attribute, escaped.
func (r random) value() string {
	return strings.Join([]string{r.pick([]string{"", "x", "ñ", "😀"}), r.pick([]string{"", " ", "\t", "\r\n", "\r", "&#13;", "&#xA;", "&#9;"}),
		r.pick([]string{"", "&amp;", "&lt;", ">", "&quot;", "&apos;", "]]>", "'", `"`})}, r.pick([]string{"", " "}))
}

// escaped returns a text with references and line ends.
func (r random) escaped() string {
	var b strings.Builder
	for range 1 + r.IntN(4) {
		b.WriteString(r.pick([]string{"x", " ", "\t", "\n", "\r\n", "\r", "&#13;", "&#x0a;", "&amp;", "&lt;", "&gt;", ">", `"`, "'", "ñ", "&#241;", "😀", "\u2028"}))
	}
	return b.String()
}

// form returns a random form of a signature.
func (r random) form() xmlsigtest.Form {
	f := xmlsigtest.Form{
		Prefix:    r.pick([]string{"", "", "ds", "a"}),
		Attribute: r.pick([]string{"", ` Id="s"`}),
		Method:    r.pick([]string{xmlsigtest.Inclusive, xmlsigtest.Exclusive}),
		Transform: r.pick([]string{"", xmlsigtest.Inclusive, xmlsigtest.Exclusive}),
		Prefixes:  r.pick([]string{"", "", "a", "a b Z", "#default", "#default ds xsi _c"}),
		KeyInfo:   r.pick([]string{"", "<KeyValue/><X509Data/>", "<X509Data><X509SubjectName>CN=x</X509SubjectName><X509SKI>AAEC</X509SKI><X509Certificate/></X509Data>"}),
		Indented:  r.IntN(2) == 0,
	}
	return f
}

// xmlsec1 signs random documents in random forms. We accept each of them, our
// canonical forms are those of helium, and xmlsec1 accepts every change that we
// accept.
func TestXmlsecAndWeAgreeOnForeignDocuments(t *testing.T) {
	t.Parallel()
	const documents, mutations = 12, 100
	const judgments = 2 // of the changes of a document; each starts a process of xmlsec1
	s1, s2 := rand.Uint64(), rand.Uint64()
	t.Logf("seeds %d, %d", s1, s2)
	r := random{rand.New(rand.NewPCG(s1, s2))}
	accepted := 0
	for n := range documents {
		judged := 0
		plain := r.foreign()
		checkCanonical(t, plain)
		document := r.form().Sign(t, signer(), plain)
		original, err := xmlsig.Verify(document, xmlsig.SmallLimits())
		if err != nil {
			t.Fatalf("document %d: %v\n%q", n, err, document)
		}
		if err := xmlsigtest.Xmlsec(t, signer().CA, document); err != nil {
			t.Fatalf("document %d: %v\n%q", n, err, document)
		}
		for range mutations {
			changed := r.mutate(document)
			v, err := xmlsig.Verify(changed, xmlsig.SmallLimits())
			if err != nil || !v.Certificate.Equal(signer().Certificate) {
				continue
			}
			accepted++
			if got, want := dump(v.Root()), dump(original.Root()); got != want {
				t.Fatalf("a change of the values is accepted:\n%s\n%q", cmp.Diff(want, got), changed)
			}
			if v.Indented || judged == judgments || r.IntN(4) > 0 {
				continue
			}
			judged++
			if err := xmlsigtest.Xmlsec(t, signer().CA, changed); err != nil {
				t.Fatalf("we accept what xmlsec1 refuses: %v\n%q\n%q", err, document, changed)
			}
		}
	}
	t.Logf("%d changes accepted of %d", accepted, documents*mutations)
}

// checkCanonical compares our canonical forms of a document with those of helium,
// and checks that a canonical form is parsed to the same tree.
func checkCanonical(t *testing.T, document string) {
	t.Helper()
	d, err := xmlsig.Parse([]byte(document), xmlsig.SmallLimits())
	if err != nil {
		t.Fatalf("%v\n%q", err, document)
	}
	for name, prefixes := range map[string][]string{"inclusive": nil, "exclusive": {}, "exclusive with prefixes": {"a", "Z"}} {
		ours := d.Canonical(true)
		if prefixes != nil {
			ours = d.CanonicalExclusive(prefixes...)
		}
		theirs, err := heliumForm(t.Context(), lineFeeds([]byte(document)), prefixes != nil, prefixes)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(theirs), string(ours)); diff != "" {
			t.Fatalf("%s canonical form of %q, helium's and ours:\n%s", name, document, diff)
		}
		again, err := xmlsig.Parse(ours, xmlsig.InvoiceLimits())
		if err != nil {
			t.Fatal(err)
		}
		if got, want := dump(again.Root()), dump(d.Root()); got != want {
			t.Fatalf("the %s canonical form of %q is read as\n%swant\n%s", name, document, got, want)
		}
	}
}

func BenchmarkVerifyForeign(b *testing.B) {
	var lines strings.Builder
	lines.WriteString(`<ECF xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="a.xsd">`)
	for i := range 1000 {
		fmt.Fprintf(&lines, `<Item n="%d">%s</Item>`, i, strings.Repeat("<Campo>Valor de texto</Campo>", 18))
	}
	form := xmlsigtest.Form{Method: xmlsigtest.Exclusive, Transform: xmlsigtest.Exclusive, Prefix: "ds"}
	document := form.Sign(b, signer(), lines.String()+"</ECF>")
	b.SetBytes(int64(len(document)))
	for b.Loop() {
		if _, err := xmlsig.Verify(document, xmlsig.InvoiceLimits()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkExclusiveFormOfManyNamespaces(b *testing.B) {
	var open, end strings.Builder
	var prefixes []string
	for depth := range 14 {
		open.WriteString("<e")
		for k := range 16 {
			prefix := fmt.Sprintf("p%d-%d", depth, k)
			open.WriteString(" xmlns:" + prefix + `="urn:x"`)
			prefixes = append(prefixes, prefix)
		}
		open.WriteString(">")
		end.WriteString("</e>")
	}
	d, err := xmlsig.Parse([]byte(open.String()+strings.Repeat("<a/>", 60_000)+end.String()), xmlsig.InvoiceLimits())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		d.CanonicalExclusive(prefixes[:16]...)
	}
}
