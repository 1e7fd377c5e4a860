package api_test

import (
	"net/http"
	"slices"
	"testing"
	"time"
)

// A retired operation announces its end on every answer, and answers 404 from its
// sunset on.
func TestRetiredOperationAnnouncesItsEnd(t *testing.T) {
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		deprecated := e.clock.now().Add(-24 * time.Hour)
		sunset := e.clock.now().Add(365 * 24 * time.Hour)
		e.api.Retire("/v1/taxpayers/{taxpayer_id}/invoices/{invoice_id}", deprecated, sunset, "https://invoices.example/changes", "https://invoices.example/v2")
		inv := e.created(e.create("k", invoiceBody("A")))
		read := request{path: "invoices/" + inv.ID}

		a := e.send(read)
		links := []string{
			`<https://invoices.example/changes>; rel="deprecation"`, `<https://invoices.example/changes>; rel="sunset"`,
			`<https://invoices.example/v2>; rel="successor-version"`,
		}
		if a.status != http.StatusOK || a.header.Get("Deprecation") != "@1794657600" ||
			a.header.Get("Sunset") != "Mon, 15 Nov 2027 12:00:00 GMT" || !slices.Equal(a.header.Values("Link"), links) {
			t.Errorf("got %s with %v", a, a.header)
		}
		if a := e.send(request{path: read.path, key: "-"}); a.status != http.StatusUnauthorized || a.header.Get("Sunset") == "" {
			t.Errorf("a refusal does not announce the end: %v", a.header)
		}
		if a := e.send(request{path: "invoices"}); a.header.Get("Deprecation") != "" || a.header.Get("Sunset") != "" {
			t.Errorf("another operation announces an end: %v", a.header)
		}
		e.clock.set(sunset)
		if a := e.send(read); a.status != http.StatusNotFound || a.code() != "not_found" {
			t.Errorf("after the sunset: %s", a)
		}
	})
}
