package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fiscalhub/fiscalhub/internal/api"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func TestNewChecksItsOptions(t *testing.T) {
	t.Parallel()
	e := newEnv(t, storetest.Address(t, "sqlite"), envOptions{})
	for name, change := range map[string]func(*api.Options){
		"Store":       func(o *api.Options) { o.Store = nil },
		"Pipeline":    func(o *api.Options) { o.Pipeline = nil },
		"Keyring":     func(o *api.Options) { o.Keyring = nil },
		"Environment": func(o *api.Options) { o.Environment = "moon" },
		"BaseURL":     func(o *api.Options) { o.BaseURL = "https://invoices.example/" },
		"RateLimit":   func(o *api.Options) { o.RateLimit = -1 },
		"Now":         func(o *api.Options) { o.Now = nil },
		"Log":         func(o *api.Options) { o.Log = nil },
	} {
		opt := e.apiOptions(prometheus.NewRegistry())
		change(&opt)
		if _, err := api.New(opt); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestCreateThenRead(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		inv := e.created(e.create("k1", invoiceBody("A-1")))
		again := e.create("k1", invoiceBody("A-1"))
		if again.status != http.StatusAccepted || again.header.Get("Idempotency-Replayed") != "true" {
			t.Fatalf("want a replay, got %s", again)
		}
		wantStatus(t, "read", e.send(request{path: "invoices/" + inv.ID}), http.StatusOK)
		if a := e.send(request{path: "fiscal-documents/" + inv.FiscalDocumentID + "/xml"}); a.code() != "artifact_not_ready" {
			t.Errorf("xml: %s", a)
		}
	})
}

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
		wantCode(t, "after the sunset", e.send(read), http.StatusNotFound, "not_found")
	})
}
