package api_test

import (
	"net/http"
	"slices"
	"testing"
	"time"
)

// What is retired says so on every answer, and is gone when its day has come.
func TestP66ARetiredOperationSaysSo(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		deprecated := w.clock.now().Add(-24 * time.Hour)
		sunset := w.clock.now().Add(365 * 24 * time.Hour)
		w.api.Retire("/v1/taxpayers/{taxpayer_id}/invoices/{invoice_id}", deprecated, sunset, "https://invoices.example/changes", "https://invoices.example/v2")
		inv := w.created(w.create("k", body("A")))
		read := request{path: "invoices/" + inv.ID}

		a := w.send(read)
		links := []string{
			`<https://invoices.example/changes>; rel="deprecation"`, `<https://invoices.example/changes>; rel="sunset"`,
			`<https://invoices.example/v2>; rel="successor-version"`,
		}
		if a.status != http.StatusOK || a.header.Get("Deprecation") != "@1794657600" ||
			a.header.Get("Sunset") != "Mon, 15 Nov 2027 12:00:00 GMT" || !slices.Equal(a.header.Values("Link"), links) {
			t.Errorf("got %s with %v", a, a.header)
		}
		if a := w.send(request{path: read.path, key: "-"}); a.status != http.StatusUnauthorized || a.header.Get("Sunset") == "" {
			t.Errorf("a refusal says nothing of it: %v", a.header)
		}
		if a := w.send(request{path: "invoices"}); a.header.Get("Deprecation") != "" || a.header.Get("Sunset") != "" {
			t.Errorf("another operation is announced too: %v", a.header)
		}
		w.clock.set(sunset)
		if a := w.send(read); a.status != http.StatusNotFound || a.code() != "not_found" {
			t.Errorf("after its day it answers %s", a)
		}
	})
}
