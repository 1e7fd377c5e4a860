package api_test

import (
	"net/http"
	"testing"
)

func TestCreateThenRead(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		inv := e.created(e.create("k1", invoiceBody("A-1")))
		again := e.create("k1", invoiceBody("A-1"))
		if again.status != http.StatusAccepted || again.header.Get("Idempotency-Replayed") != "true" {
			t.Fatalf("want a replay, got %s", again)
		}
		if a := e.send(request{path: "invoices/" + inv.ID}); a.status != http.StatusOK {
			t.Errorf("read: %s", a)
		}
		if a := e.send(request{path: "fiscal-documents/" + inv.FiscalDocumentID + "/xml"}); a.code() != "artifact_not_ready" {
			t.Errorf("xml: %s", a)
		}
	})
}
