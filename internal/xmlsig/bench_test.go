package xmlsig_test

import (
	"strconv"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// invoice returns a document of the size of an invoice with lines.
func invoice(t testing.TB, lines int) []byte {
	t.Helper()
	w := xmlsig.NewWriter("ECF", 900*lines)
	w.Open("DetallesItems")
	for i := range lines {
		w.Open("Item")
		w.Text("NumeroLinea", strconv.Itoa(i+1))
		for k := range 18 {
			w.Text("CampoDeLaLinea"+strconv.Itoa(k), "Valor de texto")
		}
		w.Close("Item")
	}
	w.Close("DetallesItems")
	document, _, err := w.Sign(signer().Identity)
	if err != nil {
		t.Fatal(err)
	}
	return document
}

func TestLargeDocumentIsVerified(t *testing.T) {
	t.Parallel()
	document := invoice(t, 1000)
	v, err := xmlsig.Verify(document, xmlsig.InvoiceLimits())
	if err != nil {
		t.Fatal(err)
	}
	judge(t, document, v)
}

func BenchmarkVerify(b *testing.B) {
	for _, lines := range []int{1, 20, 1000} {
		document := invoice(b, lines)
		b.Run(strconv.Itoa(lines), func(b *testing.B) {
			b.SetBytes(int64(len(document)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := xmlsig.Verify(document, xmlsig.InvoiceLimits()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
