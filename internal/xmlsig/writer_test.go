package xmlsig_test

import (
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

func TestWriterEscapesText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                      "<r></r>",
		"\x00\uFFFE\xff\x1f":    "<r></r>",
		"a\x00b\xed\xa0\x80c":   "<r><e>abc</e></r>",
		"\"'&<>\t\n\r©ñ😀\uFFFD": "<r><e>\"'&amp;&lt;&gt;\t\n&#xD;©ñ😀\uFFFD</e></r>",
		"]]>&amp;":              "<r><e>]]&gt;&amp;amp;</e></r>",
	} {
		w := xmlsig.NewWriter("r", 64)
		w.Text("e", text)
		if got, want := string(w.Unsigned()), `<?xml version="1.0" encoding="utf-8"?>`+want; got != want {
			t.Errorf("%q is written %q, want %q", text, got, want)
		}
	}
}
