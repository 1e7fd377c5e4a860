package ecf_test

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// TestCheckLooksAtTheDocumentThatIsWritten compares the document that Check builds with
// the XML of the same draft, for random invoices.
func TestCheckLooksAtTheDocumentThatIsWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawRequest(t).made(t)
		built, err := d.Tree()
		sameDocument(t, d.Unsigned(), built, err)
		summary, built, err := d.Summaries()
		sameDocument(t, summary, built, err)
	})
}

func sameDocument(t *rapid.T, xml []byte, built *xmlsig.Document, err error) {
	t.Helper()
	parsed, parseErr := xmlsig.Parse(xml, xmlsig.InvoiceLimits())
	if err != nil || parseErr != nil {
		t.Fatal(err, parseErr)
	}
	if !reflect.DeepEqual(built, parsed) {
		t.Fatalf("Check looks at %+v, the XML is %+v", built, parsed)
	}
}
