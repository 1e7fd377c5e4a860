package openapitest

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/fiscalhub/fiscalhub/openapi"
)

// resource is the name of the document in the schema compiler. Nothing is fetched.
const resource = "file:///openapi.json"

// load reads the document with two libraries: kin-openapi resolves references and
// finds routes; jsonschema compiles each schema once, while kin-openapi would
// compile it again for every value.
func load() (*Validator, error) {
	text, err := openapi.JSON()
	if err != nil {
		return nil, err
	}
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	doc.Servers = nil // tests listen on other ports
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		return nil, fmt.Errorf("make router: %w", err)
	}
	c, err := newCompiler(text)
	if err != nil {
		return nil, err
	}
	v := &Validator{router: router, operations: make(map[*openapi3.Operation]*operation)}
	for route, item := range doc.Paths.Map() {
		at := "#/paths/" + escape(route)
		for method, op := range item.Operations() {
			v.operations[op] = c.operation(at, method, item, op)
		}
	}
	v.outside = map[int]*response{
		http.StatusNotFound:            c.component(doc, "NotFound"),
		http.StatusMethodNotAllowed:    c.component(doc, "MethodNotAllowed"),
		http.StatusTooManyRequests:     c.component(doc, "RateLimited"),
		http.StatusInternalServerError: c.component(doc, "InternalError"),
		http.StatusServiceUnavailable:  c.component(doc, "ServiceUnavailable"),
	}
	// An internal error has only the common headers.
	v.envelope = &response{
		headers: v.outside[http.StatusInternalServerError].headers,
		bodies:  map[string]*jsonschema.Schema{"application/json": c.schema("#/components/schemas/Error")},
	}
	if c.err != nil {
		return nil, c.err
	}
	return v, nil
}

// compiler keeps the first error, so that load need not check each call.
type compiler struct {
	*jsonschema.Compiler
	err error
}

func newCompiler(text []byte) (*compiler, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	closeSets(doc)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	if err := c.AddResource(resource, doc); err != nil {
		return nil, fmt.Errorf("add document: %w", err)
	}
	return &compiler{Compiler: c}, nil
}

// closeSets closes the sets of values that may grow. A client must accept values that it
// does not know, but the service must send only those that the document lists.
func closeSets(v any) {
	switch v := v.(type) {
	case map[string]any:
		if known, ok := v["x-extensible-enum"]; ok {
			v["enum"] = known
		}
		if forms, ok := v["anyOf"].([]any); ok && len(forms) > 1 {
			last, _ := forms[len(forms)-1].(map[string]any)
			if last["$ref"] == "#/components/schemas/EventEnvelope" { // an event of any kind
				v["anyOf"] = forms[:len(forms)-1]
			}
		}
		for _, member := range v {
			closeSets(member)
		}
	case []any:
		for _, item := range v {
			closeSets(item)
		}
	}
}

func (c *compiler) schema(pointer string) *jsonschema.Schema {
	s, err := c.Compile(resource + pointer)
	if err != nil && c.err == nil {
		c.err = fmt.Errorf("compile %s: %w", pointer, err)
	}
	return s
}

func (c *compiler) operation(at, method string, item *openapi3.PathItem, op *openapi3.Operation) *operation {
	here := at + "/" + strings.ToLower(method)
	o := &operation{responses: make(map[int]*response)}
	o.parameters = append(c.parameters(at, item.Parameters), c.parameters(here, op.Parameters)...)
	if op.RequestBody != nil {
		o.body = c.schema(target(op.RequestBody.Ref, here+"/requestBody") + "/content/application~1json/schema")
		o.bodyless = !op.RequestBody.Value.Required
	}
	for status, ref := range op.Responses.Map() {
		code, err := strconv.Atoi(status)
		if err != nil && c.err == nil {
			c.err = fmt.Errorf("%s: status %q: want an exact status", here, status)
		}
		o.responses[code] = c.response(target(ref.Ref, here+"/responses/"+status), ref.Value)
	}
	return o
}

func (c *compiler) parameters(at string, params openapi3.Parameters) []value {
	var values []value
	for i, ref := range params {
		p := ref.Value
		if p.In == openapi3.ParameterInHeader && ignored(p.Name) {
			continue
		}
		values = append(values, value{
			name: p.Name, in: p.In, required: p.Required,
			integer: p.Schema.Value.Type.Is("integer"),
			schema:  c.schema(target(ref.Ref, fmt.Sprintf("%s/parameters/%d", at, i)) + "/schema"),
		})
	}
	return values
}

func (c *compiler) component(doc *openapi3.T, name string) *response {
	ref, ok := doc.Components.Responses[name]
	if !ok {
		if c.err == nil {
			c.err = fmt.Errorf("the document has no response %s", name)
		}
		return &response{}
	}
	return c.response("#/components/responses/"+name, ref.Value)
}

func (c *compiler) response(at string, r *openapi3.Response) *response {
	out := &response{bodies: make(map[string]*jsonschema.Schema)}
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		ref := r.Headers[name]
		out.headers = append(out.headers, value{
			name: name, required: ref.Value.Required,
			integer: ref.Value.Schema.Value.Type.Is("integer"),
			schema:  c.schema(target(ref.Ref, at+"/headers/"+escape(name)) + "/schema"),
		})
	}
	for mediaType, content := range r.Content {
		out.bodies[mediaType] = nil
		if content.Schema != nil {
			out.bodies[mediaType] = c.schema(at + "/content/" + escape(mediaType) + "/schema")
		}
	}
	return out
}

// target returns the target of a reference, or inPlace without a reference.
func target(ref, inPlace string) string {
	if ref != "" {
		return ref
	}
	return inPlace
}

// escape returns a name as a token of a JSON pointer in a URL fragment.
func escape(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(name)
}
