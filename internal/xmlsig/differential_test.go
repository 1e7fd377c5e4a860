package xmlsig_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// snippets are the parts of random texts.
var snippets = []string{
	"a", "Z", "0", " ", "\t", "\n", "\r", "\r\n", "&", "<", ">", `"`, "'", "]]>", "&amp;", "<!--", "ñ", "n\u0303", "©", "€",
	"\u00a0", "\u0085", "\u2028", "\u200b", "\u202e", "\uFEFF", "\uFFFD", "\ud7ff", "\ue000", "😀", "\U0010FFFF", "\x7f",
	"\x00", "\x1f", "\uFFFE", "\xff", // these are left out
}

// insertions are texts that a mutation inserts.
var insertions = []string{
	" ", "\n", "\t", "\r", "<!---->", "<!--x-->", "<?x?>", "<![CDATA[]]>", "<![CDATA[x]]>", "&#65;", "&#x20;", "&#13;", "&amp;", "&x;", "&",
	"<a/>", "<a></a>", "</a>", "<Signature/>", ` xmlns=""`, ` xmlns:x="urn:x"`, ` xmlns="` + dsig + `"`, ` Id="x"`, "\uFEFF", "\x00", "\xff", "<", ">", "/",
	`"`, "=", "x", "]]>", "<!DOCTYPE a>",
}

type random struct{ *rand.Rand }

func (r random) pick(from []string) string { return from[r.IntN(len(from))] }

func (r random) text() string {
	var b strings.Builder
	for range 1 + r.IntN(6) {
		b.WriteString(r.pick(snippets))
	}
	return b.String()
}

func (r random) document(t *testing.T) []byte {
	t.Helper()
	var namespaces []xmlsig.Namespace
	for _, prefix := range []string{"xsi", "xsd", "a"}[:r.IntN(4)] {
		namespaces = append(namespaces, xmlsig.Namespace{Prefix: prefix, URI: "urn:" + prefix + ":x"})
	}
	w := xmlsig.NewWriter("Raiz", 1<<10, namespaces...)
	w.Text("primero", "x")
	var fill func(depth int)
	fill = func(depth int) {
		for range r.IntN(4) {
			name := fmt.Sprintf("e%d", r.IntN(3))
			if depth < 4 && r.IntN(3) == 0 {
				w.Open(name)
				fill(depth + 1)
				w.Close(name)
			} else {
				w.Text(name, r.text())
			}
		}
	}
	fill(1)
	document, _, err := w.Sign(signer().Identity)
	if err != nil {
		t.Fatal(err)
	}
	return document
}

// mutate changes a document in one or two positions. Half of the changes are next
// to a tag, where the result is more often well-formed.
func (r random) mutate(document []byte) []byte {
	d := append([]byte(nil), document...)
	for range 1 + r.IntN(2) {
		at := r.IntN(len(d))
		if r.IntN(2) == 0 {
			for at > 0 && d[at] != '<' && d[at-1] != '>' {
				at--
			}
		}
		switch end := min(at+1+r.IntN(4), len(d)); r.IntN(5) {
		case 0:
			d[at] ^= 1 << r.IntN(8)
		case 1:
			d = append(d[:at:at], append([]byte(r.pick(insertions)), d[at:]...)...)
		case 2:
			d = append(d[:at:at], d[end:]...)
		case 3:
			other := r.IntN(len(d))
			d[at], d[other] = d[other], d[at]
		case 4: // the same character as a reference
			d = append(d[:at:at], append(fmt.Appendf(nil, "&#%d;", d[at]), d[at+1:]...)...)
		}
		if len(d) == 0 {
			return d
		}
	}
	return d
}

// Every document of a Writer is verified by us, xmlsec1 and helium. Every change of
// it is refused, or is accepted by all of them and changes no value.
func TestOtherVerifiersAgreeOnOurDocuments(t *testing.T) {
	t.Parallel()
	const documents, mutations = 8, 600
	const judgments = 20 // or up to twice as many; each starts a process of xmlsec1
	s1, s2 := rand.Uint64(), rand.Uint64()
	t.Logf("seeds %d, %d", s1, s2)
	r := random{rand.New(rand.NewPCG(s1, s2))}
	accepted, judged := 0, 0
	for range documents {
		document := r.document(t)
		original, err := xmlsig.Verify(document, xmlsig.SmallLimits())
		if err != nil {
			t.Fatalf("%v\n%q", err, document)
		}
		judge(t, document, original)
		before, _, after := body(string(document))
		canonical, err := heliumCanonical(t.Context(), []byte(before+after))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(canonical), string(original.Canonical(true))); diff != "" {
			t.Errorf("canonical form, helium's and ours:\n%s", diff)
		}
		for range mutations {
			changed := r.mutate(document)
			v, err := xmlsig.Verify(changed, xmlsig.SmallLimits())
			if err != nil {
				continue
			}
			// A signature covers only the key of its certificate; the authority
			// covers the rest.
			untouched := bytes.Equal(v.Certificate.Raw, signer().Certificate.Raw)
			if trusted := v.Trusted(signer().CA.Pool(), time.Now()) == nil; trusted != untouched {
				t.Errorf("a changed certificate is trusted, or the original is not:\n%q", changed)
			}
			if !untouched {
				continue
			}
			accepted++
			if got, want := dump(v.Root()), dump(original.Root()); got != want {
				t.Errorf("accepted after a change, and other values:\n%s\n%q", cmp.Diff(want, got), changed)
			}
			if r.IntN(accepted) < judgments && judged < 2*judgments {
				judged++
				judge(t, changed, v)
			}
			if t.Failed() {
				return
			}
		}
	}
	t.Logf("%d changes accepted of %d, %d judged", accepted, documents*mutations, judged)
	if accepted == 0 {
		t.Error("no change was accepted: the test proves nothing")
	}
}
