package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/openapi"
)

// operation is an operation of the OpenAPI document.
type operation struct {
	method, path string
	scopes       []apikey.Scope // that a credential needs; none when the operation needs no credential
}

func (o operation) String() string { return fmt.Sprintf("%s %s", o.method, o.path) }

// operations lists the operations of the document, so that tests cover new ones. Those
// that delete come last.
func operations(t *testing.T) []operation {
	t.Helper()
	text, err := openapi.JSON()
	must(t, err)
	var document struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	decode(t, text, &document)
	var all []operation
	for path, item := range document.Paths {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			if described, ok := item[strings.ToLower(method)]; ok {
				all = append(all, operation{method, path, documentedScopes(t, described)})
			}
		}
	}
	if len(all) < 19 {
		t.Fatalf("only %d operations", len(all))
	}
	position := func(o operation) string { return fmt.Sprint(o.method == http.MethodDelete, o) }
	slices.SortFunc(all, func(a, b operation) int { return strings.Compare(position(a), position(b)) })
	return all
}

// documentedScopes returns the scopes that the document requires for an operation.
func documentedScopes(t *testing.T, described json.RawMessage) []apikey.Scope {
	t.Helper()
	var o struct {
		ID       string                       `json:"operationId"`
		Security *[]map[string][]apikey.Scope `json:"security"`
	}
	decode(t, described, &o)
	if o.Security == nil {
		t.Fatalf("%s has no security", o.ID)
	}
	security := *o.Security
	if len(security) == 0 {
		return nil
	}
	if len(security) > 1 || len(security[0]) != 1 || len(security[0]["bearer"]) == 0 {
		t.Fatalf("%s: security is %v, want none or bearer with its scopes", o.ID, security)
	}
	for _, s := range security[0]["bearer"] {
		if _, err := apikey.ParseScope(string(s)); err != nil {
			t.Fatalf("%s: %v", o.ID, err)
		}
	}
	return security[0]["bearer"]
}

// pathFor fills in the parameters of the path.
func (o operation) pathFor(taxpayer, resource string) string {
	return strings.NewReplacer("{taxpayer_id}", taxpayer, "{invoice_id}", resource, "{document_id}", resource,
		"{endpoint_id}", resource, "{source_id}", resource).Replace(o.path)
}

// ofTaxpayer reports whether the path has a taxpayer, named whether it names one
// resource, and webhooks whether it manages webhook endpoints.
func (o operation) ofTaxpayer() bool { return strings.Contains(o.path, "{taxpayer_id}") }
func (o operation) webhooks() bool   { return strings.Contains(o.path, "/webhook-endpoints") }
func (o operation) named() bool      { return strings.Count(o.path, "{") > 1 }

// uselessScope returns a scope that does not allow the operation.
func (o operation) uselessScope() apikey.Scope {
	if o.webhooks() {
		return apikey.InvoicesRead
	}
	return apikey.WebhooksManage
}

// validRequest returns a valid request of the operation.
func (o operation) validRequest(path string) request {
	r := request{method: o.method, path: path}
	switch {
	case strings.HasSuffix(o.path, "/replay"):
		r.body = []byte(`{"failed":true}`)
	case strings.Contains(o.path, "{endpoint_id}"), strings.HasSuffix(o.path, "/events"):
	case o.method == http.MethodPost && o.webhooks():
		r.idem, r.body = "complete", endpointBody("https://complete.example/hook")
	case o.method == http.MethodPost:
		r.idem, r.body = "complete", invoiceBody("complete")
	case strings.HasSuffix(o.path, "/fiscal-documents"):
		r.path += "?external_id=complete"
	}
	return r
}
