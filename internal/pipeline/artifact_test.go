package pipeline_test

import (
	"errors"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live/livetest"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/printed"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// A document has its signed bytes and its printed page once it is valid. The first page of
// a format stays, and what was asked for can be read from the request.
func TestArtifactsOfAValidDocument(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w, ctx := livetest.New(t, address, livetest.Options{}), t.Context()
		inv := w.Create(fiscal.FiscalCredit, 1000)
		_, errXML := w.XML(ctx, inv)
		if _, err := w.PDF(ctx, inv); !errors.Is(err, pipeline.ErrNoArtifact) || !errors.Is(errXML, pipeline.ErrNoArtifact) {
			t.Errorf("before the number: %v, %v", err, errXML)
		}
		w.Drive(time.Hour)
		inv = w.Read(inv)
		xml, err := w.XML(ctx, inv)
		if w.Must(err); xml.Name != livetest.IssuerRNC+inv.ENCF || string(xml.Bytes) != w.Bytes(inv) {
			t.Errorf("the document %s has %d other bytes", xml.Name, len(xml.Bytes))
		}
		for _, format := range []printed.Format{printed.Letter, printed.Receipt} {
			first, err := w.PDFIn(ctx, inv, format)
			w.Must(err)
			again, err := w.PDFIn(ctx, inv, format)
			if w.Must(err); len(first.Bytes) == 0 || string(first.Bytes) != string(again.Bytes) {
				t.Errorf("format %s: the page has changed", format)
			}
		}
		requested, err := w.Requested(ctx, inv)
		if w.Must(err); requested.ExternalID != inv.ExternalID {
			t.Errorf("the request is of %s, want %s", requested.ExternalID, inv.ExternalID)
		}
	})
}
