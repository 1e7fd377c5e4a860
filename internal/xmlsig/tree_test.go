package xmlsig_test

import (
	"reflect"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// TestDocumentWriterBuildsWhatParseReads writes random documents twice: as XML that Parse
// reads, and as a document without XML. Both must be equal.
func TestDocumentWriterBuildsWhatParseReads(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		asXML, asTree := xmlsig.NewWriter("Raiz", 64), xmlsig.NewDocumentWriter("Raiz", 1)
		writeRandom(t, 0, asXML, asTree)
		want, err := xmlsig.Parse(asXML.Unsigned(), xmlsig.InvoiceLimits())
		if err != nil {
			t.Fatal(err)
		}
		got, err := asTree.Document()
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("built %+v, parsed %+v", got, want)
		}
	})
}

// writeRandom writes the same children with both writers.
func writeRandom(t *rapid.T, depth int, writers ...*xmlsig.Writer) {
	names := rapid.SampledFrom([]string{"A", "Bc", "Signature", "Item"})
	texts := rapid.SampledFrom([]string{"", " ", "a", "a&b<c>d", "]]>", "\r\n\t", "\x00", "ñandú\uFFFE", "\xff\uFFFD", "\x01x\x02", "é\x1f"})
	for range rapid.IntRange(0, 4).Draw(t, "children") {
		kind, name, text := rapid.IntRange(0, 3).Draw(t, "kind"), names.Draw(t, "name"), texts.Draw(t, "text")
		if kind == 3 && depth < 4 {
			for _, w := range writers {
				w.Open(name)
			}
			writeRandom(t, depth+1, writers...)
			for _, w := range writers {
				w.Close(name)
			}
			continue
		}
		n := rapid.Int64().Draw(t, "number")
		for _, w := range writers {
			switch kind {
			case 0:
				w.Text(name, text)
			case 1:
				w.Element(name, text)
			default:
				w.Value(name, func(b []byte) []byte { return strconv.AppendInt(b, n, 10) })
			}
		}
	}
}

func TestDocumentWriterRefusesRawXML(t *testing.T) {
	t.Parallel()
	raw := xmlsig.NewDocumentWriter("r", 1)
	raw.Append(func(b []byte) []byte { return append(b, "<a></a>"...) })
	for _, w := range []*xmlsig.Writer{raw, xmlsig.NewWriter("r", 64)} {
		if _, err := w.Document(); err == nil {
			t.Error("a document without the raw XML was returned")
		}
	}
}
