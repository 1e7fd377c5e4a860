package xmlsig_test

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig/xmlsigtest"
)

// write returns the document that most tests change.
func write(t testing.TB, id *xmlsig.Identity, namespaces ...xmlsig.Namespace) string {
	t.Helper()
	w := xmlsig.NewWriter("ECF", 1<<10, namespaces...)
	w.Open("Encabezado")
	w.Text("Version", "1.0")
	w.Text("RNCEmisor", "131880681")
	w.Text("RazonSocial", `Peña & Garzón <"Hijos">`)
	w.Text("MontoTotal", "35400.00")
	w.Close("Encabezado")
	w.Text("FechaHoraFirma", "14-11-2026 10:00:00")
	document, _, err := w.Sign(id)
	if err != nil {
		t.Fatal(err)
	}
	return string(document)
}

var written = sync.OnceValue(func() string {
	return write(&testing.B{}, signer().Identity)
})

const tree = `ECF=
 Encabezado=
  Version=1.0
  RNCEmisor=131880681
  RazonSocial=Peña & Garzón <"Hijos">
  MontoTotal=35400.00
 FechaHoraFirma=14-11-2026 10:00:00
`

func TestChangesAfterSigningAreRefusedOrHarmless(t *testing.T) {
	t.Parallel()
	for _, c := range changes {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			document := []byte(c.change(written()))
			kept := bytes.Clone(document)
			v, err := xmlsig.Verify(document, xmlsig.SmallLimits())
			checkRefusal(t, err, c.err)
			if !bytes.Equal(document, kept) {
				t.Error("Verify changes what it reads")
			}
			if err != nil {
				return
			}
			if got := dump(v.Root()); got != tree {
				t.Errorf("read\n%swant\n%s", got, tree)
			}
			if v.Indented != c.indented {
				t.Errorf("Indented = %t", v.Indented)
			}
			judge(t, document, v)
		})
	}
}

// checkRefusal checks that an error is of one kind and of no other, and that its
// text is short.
func checkRefusal(t *testing.T, err, want error) {
	t.Helper()
	for _, kind := range []error{xmlsig.ErrMalformed, xmlsig.ErrNotSigned, xmlsig.ErrSignature, xmlsig.ErrCertificate} {
		if is := errors.Is(err, kind); is != errors.Is(want, kind) {
			t.Fatalf("error %v, want %v", err, want)
		}
	}
	if want == nil && err != nil {
		t.Fatalf("error %v, want none", err)
	}
	if err != nil {
		t.Log(err)
		if text := err.Error(); !strings.HasPrefix(text, "xmlsig: ") || strings.Count(text, "xmlsig: ") > 1 || len(text) > 300 {
			t.Errorf("error text: %q", text)
		}
	}
}

func TestVerifiedHasNoSignature(t *testing.T) {
	t.Parallel()
	v, err := xmlsig.Verify([]byte(written()), xmlsig.SmallLimits())
	if err != nil {
		t.Fatal(err)
	}
	if !v.Root().Child("Signature").IsZero() {
		t.Error("the signature can be reached")
	}
	if !bytes.Equal(v.Certificate.Raw, signer().Certificate.Raw) {
		t.Error("another certificate")
	}
	if !strings.Contains(written(), "<SignatureValue>"+v.Value+"<") {
		t.Errorf("Value = %q", v.Value)
	}
	before, _, after := body(written())
	if got := string(v.Canonical(true)); got != before+after {
		t.Errorf("verified %q, signed %q", got, before+after)
	}
	again, err := signer().Identity.SignDocument(&v.Document)
	if err != nil || string(again) != written() {
		t.Errorf("signed again: %v, %q", err, again)
	}
}

func TestElementsOfADocument(t *testing.T) {
	t.Parallel()
	d, err := xmlsig.Parse([]byte("<a>\n <b>1</b> <b>2</b><c/>\r\n<d> </d></a>"), xmlsig.SmallLimits())
	if err != nil {
		t.Fatal(err)
	}
	root := d.Root()
	if root.Name() != "a" || root.Text() != "" || !root.HasChildren() || root.IsZero() {
		t.Errorf("root %q %q", root.Name(), root.Text())
	}
	if b := root.Child("b"); b.Text() != "1" || b.HasChildren() {
		t.Errorf("b %q", b.Text())
	}
	if c := root.Child("c"); c.IsZero() || c.Text() != "" || c.HasChildren() {
		t.Error("c")
	}
	if got := root.Child("d").Text(); got != " " {
		t.Errorf("d %q", got)
	}
	none := root.Child("x").Child("y")
	if !none.IsZero() || none.Name() != "" || none.Text() != "" || none.HasChildren() || !none.Child("z").IsZero() {
		t.Error("the zero Element is not empty")
	}
	for range none.Children() {
		t.Error("the zero Element has children")
	}
	for b := range root.Children() {
		if b.Name() == "b" {
			break
		}
	}
	if !new(xmlsig.Document).Root().IsZero() {
		t.Error("a document without elements has a root")
	}
}

func TestDocumentsBeyondTheLimitsAreRefused(t *testing.T) {
	t.Parallel()
	small := xmlsig.SmallLimits()
	deep := func(n int) string { return strings.Repeat("<a>", n) + strings.Repeat("</a>", n) }
	wide := func(n int) string { return "<r>" + strings.Repeat("<a/>", n-1) + "</r>" }
	attributes := func(n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(" a" + strconv.Itoa(i) + "=''")
		}
		return b.String()
	}
	padded := func(n int) string { return "<r></r>" + strings.Repeat(" ", n-len("<r></r>")) }
	for _, c := range []struct {
		name, document string
		limits         xmlsig.Limits
		err            error
	}{
		{"depth 16", deep(16), small, nil},
		{"depth 17", deep(17), small, xmlsig.ErrMalformed},
		{"2,000 nodes", wide(2_000), small, nil},
		{"2,001 nodes", wide(2_001), small, xmlsig.ErrMalformed},
		{"attributes count", "<r xmlns:a='urn:a'>" + strings.Repeat("<a/>", 1_999) + "</r>", small, xmlsig.ErrMalformed},
		{"attributes of an element", "<r" + attributes(16) + "/>", small, nil},
		{"too many attributes of an element", "<r" + attributes(17) + "/>", small, xmlsig.ErrMalformed},
		{"64,000 nodes", wide(64_000), xmlsig.InvoiceLimits(), nil},
		{"64,001 nodes", wide(64_001), xmlsig.InvoiceLimits(), xmlsig.ErrMalformed},
		{"256 KiB", padded(256 << 10), small, nil},
		{"256 KiB and a byte", padded(256<<10 + 1), small, xmlsig.ErrMalformed},
		{"8 MiB", padded(8 << 20), xmlsig.InvoiceLimits(), nil},
		{"8 MiB and a byte", padded(8<<20 + 1), xmlsig.InvoiceLimits(), xmlsig.ErrMalformed},
		{"no limits", "<a/>", xmlsig.Limits{}, xmlsig.ErrMalformed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := xmlsig.Parse([]byte(c.document), c.limits)
			checkRefusal(t, err, c.err)
		})
	}
}

func TestSignaturesInParallelAreEqual(t *testing.T) {
	t.Parallel()
	var wait sync.WaitGroup
	documents := make([]string, 100)
	for i := range documents {
		wait.Go(func() { documents[i] = write(t, signer().Identity) })
	}
	wait.Wait()
	for _, d := range documents {
		if d != written() { // the signature is deterministic
			t.Fatal("two signatures of one document differ")
		}
	}
	if err := xmlsigtest.Xmlsec(t, signer().CA, []byte(documents[99])); err != nil {
		t.Error(err)
	}
}
