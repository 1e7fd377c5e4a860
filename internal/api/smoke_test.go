package api_test

import (
	"net/http"
	"testing"
)

func TestCreateThenRead(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		inv := w.created(w.create("k1", body("A-1")))
		again := w.create("k1", body("A-1"))
		if again.status != http.StatusAccepted || again.header.Get("Idempotency-Replayed") != "true" {
			t.Fatalf("want a replay, got %s", again)
		}
		if a := w.send(request{path: "invoices/" + inv.ID}); a.status != http.StatusOK {
			t.Errorf("read: %s", a)
		}
		if a := w.send(request{path: "fiscal-documents/" + inv.FiscalDocumentID + "/xml"}); a.code() != "artifact_not_ready" {
			t.Errorf("xml: %s", a)
		}
	})
}
