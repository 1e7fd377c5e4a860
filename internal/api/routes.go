package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/fiscalhub/fiscalhub/internal/apikey"
)

// route is one operation of the API.
type route struct {
	method     string
	name       string   // pattern of the path; segments in braces are parameters
	parts      []string // segments of name
	scopes     []apikey.Scope
	named      bool // the path names one resource; without access the answer is 404, not 403
	webhooks   bool // it manages webhook endpoints, which the sandbox does not have
	bodyFirst  bool // the handler reads the body before it needs a slot
	handle     func(*exchange) error
	public     func(*exchange) error // handles the request without a credential
	retirement *retirement           // nil: the operation stays
}

// table lists every operation. A test compares it with the OpenAPI document.
func (a *API) table() []route {
	const (
		taxpayer  = "/v1/taxpayers/{taxpayer_id}"
		invoices  = taxpayer + "/invoices"
		documents = taxpayer + "/fiscal-documents"
		endpoints = taxpayer + "/webhook-endpoints"
		endpoint  = endpoints + "/{endpoint_id}"
	)
	manage := []apikey.Scope{apikey.WebhooksManage}
	routes := []route{
		{method: http.MethodPost, name: invoices, handle: a.createInvoice, bodyFirst: true,
			scopes: []apikey.Scope{apikey.InvoicesWrite, apikey.ECFSubmit}},
		{method: http.MethodGet, name: invoices, handle: a.listInvoices,
			scopes: []apikey.Scope{apikey.InvoicesRead}},
		{method: http.MethodGet, name: invoices + "/{invoice_id}", handle: a.readInvoice, named: true,
			scopes: []apikey.Scope{apikey.InvoicesRead}},
		{method: http.MethodGet, name: documents, handle: a.findDocument,
			scopes: []apikey.Scope{apikey.ECFRead}},
		{method: http.MethodGet, name: documents + "/{document_id}", handle: a.readDocument, named: true,
			scopes: []apikey.Scope{apikey.ECFRead}},
		{method: http.MethodGet, name: documents + "/{document_id}/xml", handle: a.readXML, named: true,
			scopes: []apikey.Scope{apikey.ECFRead}},
		{method: http.MethodGet, name: documents + "/{document_id}/pdf", handle: a.readPDF, named: true,
			scopes: []apikey.Scope{apikey.ECFRead}},
		{method: http.MethodGet, name: taxpayer + "/events", handle: a.listEvents,
			scopes: []apikey.Scope{apikey.ECFRead}},
		{method: http.MethodPost, name: endpoints, handle: a.createEndpoint, webhooks: true, bodyFirst: true, scopes: manage},
		{method: http.MethodGet, name: endpoints, handle: a.listEndpoints, webhooks: true, scopes: manage},
		{method: http.MethodGet, name: endpoint, handle: a.withEndpoint(a.readEndpoint), webhooks: true, named: true, scopes: manage},
		{method: http.MethodDelete, name: endpoint, handle: a.withEndpoint(a.deleteEndpoint), webhooks: true, named: true, scopes: manage},
		{method: http.MethodPost, name: endpoint + "/rotate-secret", handle: a.withCommand(a.rotateEndpoint), webhooks: true, named: true, scopes: manage},
		{method: http.MethodPost, name: endpoint + "/enable", handle: a.withCommand(a.enableEndpoint), webhooks: true, named: true, scopes: manage},
		{method: http.MethodPost, name: endpoint + "/test", handle: a.withCommand(a.testEndpoint), webhooks: true, named: true, scopes: manage},
		{method: http.MethodPost, name: endpoint + "/replay", handle: a.withEndpoint(a.replayEvents), webhooks: true, named: true, scopes: manage},
		{method: http.MethodGet, name: endpoint + "/deliveries", handle: a.withEndpoint(a.listDeliveries), webhooks: true, named: true, scopes: manage},
		{method: http.MethodPost, name: "/v1/events/inbound/{source_id}", public: a.receiveInbound},
		{method: http.MethodGet, name: "/v1/openapi.json", public: a.readOpenAPI},
	}
	for i := range routes {
		routes[i].parts = strings.Split(routes[i].name[1:], "/")
	}
	return routes
}

// match finds the operation of a request. Each path has exactly one spelling:
// match does not clean or decode paths, and does not redirect. A parameter with
// percent signs is not decoded either: it is a malformed id.
func (a *API) match(x *exchange) (*route, map[string]string, error) {
	path := x.r.URL.EscapedPath()
	if !strings.HasPrefix(path, "/") || hidesStructure(path) {
		return nil, nil, notFound()
	}
	parts := strings.Split(path[1:], "/")
	method := x.r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	var allow []string
	for i := range a.routes {
		params, ok := a.routes[i].params(parts)
		if !ok {
			continue
		}
		if a.routes[i].method == method {
			return &a.routes[i], params, nil
		}
		x.route = a.routes[i].name
		allow = append(allow, a.routes[i].method)
		if a.routes[i].method == http.MethodGet {
			allow = append(allow, http.MethodHead)
		}
	}
	if len(allow) > 0 {
		slices.Sort(allow)
		return nil, nil, methodNotAllowed(strings.Join(allow, ", "))
	}
	return nil, nil, notFound()
}

// hidesStructure reports whether an escaped path has a semicolon, or an escaped slash,
// dot, semicolon or zero byte. Programs differ in which segments they see in such a path.
func hidesStructure(path string) bool {
	path = strings.ToLower(path)
	return strings.Contains(path, ";") || strings.Contains(path, "%2f") || strings.Contains(path, "%2e") ||
		strings.Contains(path, "%3b") || strings.Contains(path, "%00")
}

// params returns the parameters of a path, or false when the path does not belong to
// the route.
func (r *route) params(parts []string) (map[string]string, bool) {
	if len(parts) != len(r.parts) {
		return nil, false
	}
	var params map[string]string
	for i, want := range r.parts {
		switch {
		case want[0] == '{' && parts[i] != "" && parts[i] != "." && parts[i] != "..":
			if params == nil {
				params = make(map[string]string, 2)
			}
			params[want[1:len(want)-1]] = parts[i]
		case want != parts[i]:
			return nil, false
		}
	}
	return params, true
}

// namesIDs reports whether a path differs from the pattern of its route only by ids.
func namesIDs(path, pattern string) bool {
	parts, want := strings.Split(path, "/"), strings.Split(pattern, "/")
	return slices.EqualFunc(parts, want, func(part, want string) bool {
		_, id := parseUUID(part)
		return id || part == want
	})
}

// parseUUID parses a UUID in either letter case and returns it in lower case. It
// accepts versions 1 to 8 of the variant of RFC 9562, all zeros and all ones.
func parseUUID(s string) (string, bool) {
	if len(s) != 36 {
		return "", false // uuid.Parse accepts longer forms with braces or urn:uuid:
	}
	id, err := uuid.Parse(s)
	if err != nil {
		return "", false
	}
	ordinary := id != uuid.Nil && id != uuid.Max
	if ordinary && (id.Variant() != uuid.RFC4122 || id.Version() < 1 || id.Version() > 8) {
		return "", false
	}
	return id.String(), true
}

func (a *API) readOpenAPI(x *exchange) error {
	if !a.countAnonymous(x) {
		return a.addressExceeded(x)
	}
	if !x.ifMatch("") {
		return preconditionFailed()
	}
	x.send(http.StatusOK, a.openapi)
	return nil
}

// retirement announces the end of an operation on each of its answers, a year
// or more ahead (RFC 9745, RFC 8594).
type retirement struct {
	deprecated time.Time // from then on clients should not use it
	sunset     time.Time // from then on it is not served
	page       string    // address of a page that explains the change
	successor  string    // address of the operation to use instead
}

// announce sets the headers. It returns true from the sunset on. A nil
// retirement announces nothing.
func (r *retirement) announce(h http.Header, now time.Time) (ended bool) {
	if r == nil {
		return false
	}
	h.Set("Deprecation", fmt.Sprintf("@%d", r.deprecated.Unix()))
	h.Set("Sunset", r.sunset.UTC().Format(http.TimeFormat))
	h.Add("Link", "<"+r.page+`>; rel="deprecation"`)
	h.Add("Link", "<"+r.page+`>; rel="sunset"`)
	h.Add("Link", "<"+r.successor+`>; rel="successor-version"`)
	return !now.Before(r.sunset)
}
