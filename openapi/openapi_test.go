package openapi

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"
	yaml "github.com/oasdiff/yaml3"

	"github.com/fiscalhub/fiscalhub/internal/trace"
)

var operationIDs = []string{
	"createInvoice", "listInvoices", "getInvoice", "searchFiscalDocuments", "getFiscalDocument",
	"downloadFiscalDocumentXml", "downloadFiscalDocumentPdf",
	"listEvents", "createWebhookEndpoint", "listWebhookEndpoints", "getWebhookEndpoint", "deleteWebhookEndpoint",
	"rotateWebhookEndpointSecret", "enableWebhookEndpoint", "testWebhookEndpoint", "replayWebhookEvents", "listWebhookDeliveries",
	"receiveInboundEvent",
}

func loadSpec(text []byte) (*openapi3.T, error) {
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return nil, err
	}
	return doc, doc.Validate(context.Background(), openapi3.EnableMultiError(), openapi3.EnableExamplesValidation())
}

// sharedSpec is loaded once, because validating every example takes half a second
// under the race detector.
var sharedSpec = sync.OnceValues(func() (*openapi3.T, error) { return loadSpec(source) })

func spec(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := sharedSpec()
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func tree(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

func asJSON(t *testing.T, text []byte) []byte {
	t.Helper()
	out, err := toJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestDocumentIsValid(t *testing.T) {
	t.Parallel()
	if doc := spec(t); !doc.IsOpenAPI31OrLater() {
		t.Errorf("openapi is %s, want 3.1", doc.OpenAPI)
	}
}

// TestDocumentIsValid is worth something only if the validation checks examples.
// Below a path, the address of the service and every Location begin with the path.
func TestDocumentBelowAPath(t *testing.T) {
	t.Parallel()
	whole, err := JSON()
	if err != nil {
		t.Fatal(err)
	}
	below, err := JSONAt("/a.b")
	if err != nil || !json.Valid(below) {
		t.Fatal(err)
	}
	for _, want := range []string{`"servers":[{"url":"/a.b",`, `"pattern":"^/a\\.b/v1/taxpayers/[0-9a-f-]{36}/invoices/`, `"pattern":"^/a\\.b/v1/taxpayers/[0-9a-f-]{36}/webhook-endpoints/`} {
		if !strings.Contains(string(below), want) {
			t.Errorf("the document has no %s", want)
		}
	}
	if same, err := JSONAt(""); err != nil || !bytes.Equal(same, whole) {
		t.Errorf("another document without a path: %v", err)
	}
}

func TestValidationChecksExamples(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ old, text string }{
		{"tax_id: '199000021'", "tax_id: '1990'"},
		{"encf: E310000000157", "encf: e31"},
		{"code: rate_limited", "code: slow_down"},
		{"type: webhook.test", "type: webhook.trial"},
		{"example: fa-2026-0418-create", "example: clé"},
	} {
		if !bytes.Contains(source, []byte(c.old)) {
			t.Fatalf("the document has no %q", c.old)
		}
		if _, err := loadSpec(bytes.Replace(source, []byte(c.old), []byte(c.text), 1)); err == nil {
			t.Errorf("validation accepts %q instead of %q", c.text, c.old)
		}
	}
}

func TestOperationsAreDescribed(t *testing.T) {
	t.Parallel()
	doc := spec(t)
	tags := map[string]bool{}
	for _, tag := range doc.Tags {
		tags[tag.Name] = true
	}
	seen := map[string]bool{}
	check := func(at string, item *openapi3.PathItem) {
		for method, op := range item.Operations() {
			where := method + " " + at
			if op.OperationID == "" || op.Summary == "" || op.Description == "" {
				t.Errorf("%s needs an operationId, a summary and a description", where)
			}
			if seen[op.OperationID] {
				t.Errorf("%s: operationId %s is used twice", where, op.OperationID)
			}
			seen[op.OperationID] = true
			if len(op.Tags) != 1 || !tags[op.Tags[0]] {
				t.Errorf("%s: tags are %v, want one that is declared", where, op.Tags)
			}
			if op.Security == nil {
				t.Errorf("%s has no security", where)
			}
		}
	}
	for at, item := range doc.Paths.Map() {
		check(at, item)
	}
	for name, item := range doc.Webhooks {
		check("webhook "+name, item)
	}
	for _, id := range operationIDs {
		if !seen[id] {
			t.Errorf("no operation %s", id)
		}
	}
}

func TestStatusesAndCommonHeaders(t *testing.T) {
	t.Parallel()
	const list, read, artifact = "200 400 401 403 412 429 500 503", "200 401 403 404 412 429 500 503", "200 304 401 403 404 409 412 429 500 503"
	const act = " 400 401 403 404 408 412 413 415 422 429 500 503"
	want := map[string]string{
		"createInvoice": "202 400 401 403 405 408 409 412 413 415 422 429 500 503",
		"listInvoices":  list, "searchFiscalDocuments": list,
		"getInvoice": read, "getFiscalDocument": read,
		"downloadFiscalDocumentXml": artifact, "downloadFiscalDocumentPdf": "200 304 400 401 403 404 409 412 429 500 503",
		"getOpenApiDocument": "200 412 429 500 503",
		"listEvents":         list, "listWebhookEndpoints": list,
		"createWebhookEndpoint": "201 400 401 403 408 409 412 413 415 422 429 500 503",
		"getWebhookEndpoint":    read, "deleteWebhookEndpoint": "204 401 403 404 412 429 500 503",
		"rotateWebhookEndpointSecret": "200" + act, "enableWebhookEndpoint": "200" + act, "testWebhookEndpoint": "200" + act,
		"replayWebhookEvents":   "202" + act,
		"listWebhookDeliveries": "200 400 401 403 404 412 429 500 503",
		"receiveInboundEvent":   "202 400 401 404 408 413 415 422 429 500 503",
	}
	got := map[string]string{}
	for _, item := range spec(t).Paths.Map() {
		for _, op := range item.Operations() {
			got[op.OperationID] = strings.Join(slices.Sorted(maps.Keys(op.Responses.Map())), " ")
			for status, ref := range op.Responses.Map() {
				for _, name := range []string{"X-Request-Id", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"} {
					if h := ref.Value.Headers[name]; h == nil || !h.Value.Required {
						t.Errorf("%s %s does not require the header %s", op.OperationID, status, name)
					}
				}
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
}

// The service reads these headers in every request under /v1.
func TestEveryOperationDescribesTheCommonRequestHeaders(t *testing.T) {
	t.Parallel()
	for path, item := range spec(t).Paths.Map() {
		if !strings.HasPrefix(path, "/v1/") {
			continue
		}
		for method, op := range item.Operations() {
			for _, name := range []string{"X-Request-Id", "Accept-Language", "traceparent"} {
				p := item.Parameters.GetByInAndName("header", name)
				if p == nil {
					p = op.Parameters.GetByInAndName("header", name)
				}
				if p == nil || p.Required || p.Description == "" {
					t.Errorf("%s %s does not describe the optional header %s", method, path, name)
				}
			}
		}
	}
	p := spec(t).Components.Parameters["TraceParent"].Value
	if c, ok := trace.Parse(p.Example.(string)); !ok || !c.Valid() {
		t.Errorf("the example %v is no traceparent", p.Example)
	}
}

var refPattern = regexp.MustCompile(`"\$ref":"#/components/([^"]+)"`)

func TestEveryComponentIsUsed(t *testing.T) {
	t.Parallel()
	text := asJSON(t, source)
	used := map[string]bool{}
	for _, m := range refPattern.FindAllSubmatch(text, -1) {
		used[string(m[1])] = true
	}
	for kind, group := range tree(t, text)["components"].(map[string]any) {
		for name := range group.(map[string]any) {
			if kind != "securitySchemes" && !used[kind+"/"+name] {
				t.Errorf("nothing refers to components/%s/%s", kind, name)
			}
			delete(used, kind+"/"+name)
		}
	}
	for ref := range used {
		t.Errorf("components/%s does not exist", ref)
	}
}

// values returns the values of a closed or an open set.
func values(schema *openapi3.Schema) []any {
	if open, ok := schema.Extensions["x-extensible-enum"].([]any); ok {
		return open
	}
	return schema.Enum
}

// Each code needs an example and a row in the tables of the description.
func TestEveryCodeIsExplained(t *testing.T) {
	t.Parallel()
	doc := spec(t)
	shown := map[string]bool{}
	for _, ref := range doc.Components.Examples {
		if m, ok := ref.Value.Value.(map[string]any)["error"].(map[string]any); ok {
			shown[m["code"].(string)] = true
		}
	}
	for _, code := range doc.Components.Schemas["ErrorCode"].Value.Enum {
		if !shown[code.(string)] {
			t.Errorf("no example shows the error code %s", code)
		}
	}
	for _, name := range []string{"ErrorCode", "DetailCode", "Status"} {
		for _, code := range values(doc.Components.Schemas[name].Value) {
			if !strings.Contains(doc.Info.Description, "`"+code.(string)+"`") {
				t.Errorf("the description does not explain %s of %s", code, name)
			}
		}
	}
}

// Each kind of event needs an example.
func TestEveryEventKindHasAnExample(t *testing.T) {
	t.Parallel()
	doc := spec(t)
	shown := map[string]bool{"*": true} // means all kinds
	for _, item := range doc.Webhooks {
		for _, ref := range item.Post.RequestBody.Value.Content["application/json"].Examples {
			shown[ref.Value.Value.(map[string]any)["type"].(string)] = true
		}
	}
	for _, kind := range values(doc.Components.Schemas["EventKind"].Value) {
		if !shown[kind.(string)] {
			t.Errorf("no example shows an event of kind %s", kind)
		}
		delete(shown, kind.(string))
	}
	for kind := range shown {
		t.Errorf("there is an example of the unknown kind %s", kind)
	}
}

func TestEveryErrorResponseHasAnExample(t *testing.T) {
	t.Parallel()
	for name, ref := range spec(t).Components.Responses {
		if content := ref.Value.Content["application/json"]; content != nil && len(content.Examples) == 0 {
			t.Errorf("response %s has no example", name)
		}
	}
}

func TestOnlyRequestsRefuseUnknownMembers(t *testing.T) {
	t.Parallel()
	requests := []string{"InvoiceRequest", "Buyer", "Address", "Line", "Discount", "Tax", "DeclaredTotals", "EstimatedWithholdings",
		"WebhookEndpointRequest", "WebhookReplayRequest", "Nothing"}
	for name, ref := range spec(t).Components.Schemas {
		if !ref.Value.Type.Is("object") {
			continue
		}
		has := ref.Value.AdditionalProperties.Has
		closed := has != nil && !*has
		if closed != slices.Contains(requests, name) {
			t.Errorf("%s: closed is %t", name, closed)
		}
	}
}

func TestExampleTotalsAddUp(t *testing.T) {
	t.Parallel()
	found := 0
	var walk func(at string, v any)
	walk = func(at string, v any) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				walk(at, item)
			}
		case map[string]any:
			if v["subtotal"] != nil && v["total"] != nil {
				found++
				sum := new(big.Rat).Sub(rat(t, v["subtotal"]), rat(t, v["discount_total"]))
				if sum.Add(sum, rat(t, v["tax_total"])).Cmp(rat(t, v["total"])) != 0 {
					t.Errorf("%s: %v does not add up", at, v)
				}
			}
			if lines, ok := v["lines"].([]any); ok {
				linesAddUp(t, at, lines, v["declared_totals"].(map[string]any))
			}
			for _, member := range v {
				walk(at, member)
			}
		}
	}
	for name, ref := range spec(t).Components.Examples {
		walk(name, ref.Value.Value)
	}
	if found < 6 {
		t.Errorf("only %d totals were found", found)
	}
}

func linesAddUp(t *testing.T, at string, lines []any, totals map[string]any) {
	t.Helper()
	gross, discount, tax := new(big.Rat), new(big.Rat), new(big.Rat)
	for _, l := range lines {
		line := l.(map[string]any)
		amount := new(big.Rat).Mul(rat(t, line["quantity"]), rat(t, line["unit_price"]))
		gross.Add(gross, amount)
		net := new(big.Rat).Set(amount)
		if d, ok := line["discount"].(map[string]any); ok {
			off := percent(t, amount, d["value"])
			discount.Add(discount, off)
			net.Sub(net, off)
		}
		for _, x := range line["taxes"].([]any) {
			tax.Add(tax, percent(t, net, x.(map[string]any)["rate_percent"]))
		}
	}
	for name, sum := range map[string]*big.Rat{"subtotal": gross, "discount_total": discount, "tax_total": tax} {
		if got := sum.FloatString(2); got != totals[name] {
			t.Errorf("%s: %s is %v, the lines add up to %s", at, name, totals[name], got)
		}
	}
}

func percent(t *testing.T, amount *big.Rat, rate any) *big.Rat {
	t.Helper()
	out := new(big.Rat).Mul(amount, rat(t, rate))
	return out.Quo(out, big.NewRat(100, 1))
}

func rat(t *testing.T, v any) *big.Rat {
	t.Helper()
	text, _ := v.(string)
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		t.Fatalf("%v is not a decimal", v)
	}
	return r
}

func TestJSONIsTheSameDocument(t *testing.T) {
	t.Parallel()
	text, err := JSON()
	if err != nil {
		t.Fatal(err)
	}
	var parsed any
	if err := yaml.Unmarshal(source, &parsed); err != nil {
		t.Fatal(err)
	}
	through, err := json.Marshal(parsed)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tree(t, through), tree(t, text)); diff != "" {
		t.Errorf("JSON differs from YAML (-yaml +json):\n%s", diff)
	}
	if _, err := loadSpec(text); err != nil {
		t.Errorf("the JSON is not valid: %v", err)
	}
}

func TestJSONKeepsTheOrderAndTheTypes(t *testing.T) {
	t.Parallel()
	got := asJSON(t, []byte("z: 1\na: ['1', 1.5, true, null, 2026-01-02, ~, \"x<y\"]\nm: {}\n"))
	if want := `{"z":1,"a":["1",1.5,true,null,"2026-01-02",null,"x<y"],"m":{}}`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestJSONRefusesInvalidDocuments(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "a: [", "a: &x 1\nb: *x\n"} {
		if out, err := toJSON([]byte(text)); err == nil {
			t.Errorf("%q became %s", text, out)
		}
	}
}
