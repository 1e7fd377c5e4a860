// Package openapitest checks requests and answers of the API against the OpenAPI
// document. It is for tests only and must not be linked into the server.
package openapitest

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Validator compares exchanges with the document. It is immutable, so tests may use
// it concurrently.
type Validator struct {
	router     routers.Router
	operations map[*openapi3.Operation]*operation
	// outside holds the answers of paths and methods that are not in the document,
	// by status. Other statuses need only the common headers and the envelope.
	outside  map[int]*response
	envelope *response
}

type operation struct {
	parameters []value
	body       *jsonschema.Schema // nil: the operation has no body
	bodyless   bool               // the body is optional
	responses  map[int]*response
}

type response struct {
	headers []value
	bodies  map[string]*jsonschema.Schema // by media type; a nil schema allows any bytes
}

// value is a header or a parameter.
type value struct {
	name     string
	in       string
	required bool
	integer  bool
	schema   *jsonschema.Schema
}

// shared is loaded once for the whole test binary, because compiling takes longer
// than a thousand checks.
var shared = sync.OnceValues(load)

// New returns the validator of the embedded document.
func New(t testing.TB) *Validator {
	t.Helper()
	v, err := shared()
	if err != nil {
		t.Fatalf("load the OpenAPI document: %v", err)
	}
	return v
}

// Check reports, with t.Errorf, every difference between the exchange and the
// document: an undocumented status, missing or malformed headers, a body that does
// not match its schema. A request that was answered with success must match the
// document too; otherwise the server accepts what the document forbids.
//
// Paths and methods that are not in the document must be answered with the error
// envelope and the common headers. HEAD is checked like GET without a body. The
// bodies are parameters because req and resp may have been read already.
func (v *Validator) Check(t testing.TB, req *http.Request, reqBody []byte, resp *http.Response, respBody []byte) {
	t.Helper()
	for _, problem := range v.problems(req, reqBody, resp, respBody) {
		t.Errorf("%s %s answered %d: %s", req.Method, req.URL.Path, resp.StatusCode, problem)
	}
}

func (v *Validator) problems(req *http.Request, reqBody []byte, resp *http.Response, respBody []byte) []string {
	op, pathParams, problem := v.find(req)
	if problem != "" {
		return []string{problem}
	}
	if op == nil || (resp.StatusCode == http.StatusNotFound && !literal(req.URL.EscapedPath())) {
		return v.outsideProblems(req, resp, respBody)
	}
	want, ok := op.responses[resp.StatusCode]
	if !ok {
		return []string{"the document does not list this status for the operation"}
	}
	problems := want.problems(req, resp, respBody)
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		problems = append(problems, op.requestProblems(req, pathParams, reqBody)...)
	}
	return problems
}

// find returns a nil operation for a path or method that is not in the document.
func (v *Validator) find(req *http.Request) (*operation, map[string]string, string) {
	lookup := req.Clone(req.Context())
	if lookup.Method == http.MethodHead {
		lookup.Method = http.MethodGet
	}
	route, params, err := v.router.FindRoute(lookup)
	switch {
	case errors.Is(err, routers.ErrPathNotFound), errors.Is(err, routers.ErrMethodNotAllowed):
		return nil, nil, ""
	case err != nil:
		return nil, nil, fmt.Sprintf("find the operation: %v", err)
	}
	return v.operations[route.Operation], params, ""
}

// literal reports whether a path has the spelling that the API accepts. Other
// spellings are unknown paths, even when the router finds an operation for them.
func literal(p string) bool {
	return path.Clean(p) == p && !strings.ContainsAny(p, "%;")
}

func (v *Validator) outsideProblems(req *http.Request, resp *http.Response, body []byte) []string {
	if resp.StatusCode < 400 {
		return []string{"the document has no such path and method, but it was not refused"}
	}
	want, ok := v.outside[resp.StatusCode]
	if !ok {
		want = v.envelope
	}
	return want.problems(req, resp, body)
}

func (r *response) problems(req *http.Request, resp *http.Response, body []byte) []string {
	var problems []string
	for _, h := range r.headers {
		problems = append(problems, h.problems("header", resp.Header.Values(h.name))...)
	}
	if req.Method == http.MethodHead || len(r.bodies) == 0 {
		if len(body) > 0 {
			problems = append(problems, "there is a body where none is allowed")
		}
		return problems
	}
	contentType := resp.Header.Get("Content-Type")
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return append(problems, fmt.Sprintf("Content-Type %q: %v", contentType, err))
	}
	schema, ok := r.bodies[mediaType]
	if !ok {
		return append(problems, fmt.Sprintf("Content-Type %q is not documented", contentType))
	}
	if schema == nil {
		return problems
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return append(problems, fmt.Sprintf("the body is not JSON: %v", err))
	}
	if err := schema.Validate(doc); err != nil {
		problems = append(problems, fmt.Sprintf("body: %v", err))
	}
	return append(problems, requestIDProblems(resp.Header, doc)...)
}

// requestIDProblems compares the request ids of the header and of the body.
// They may differ only in a replay, which has the body of the first answer.
func requestIDProblems(h http.Header, doc any) []string {
	if h.Get("Idempotency-Replayed") != "" {
		return nil
	}
	body, _ := doc.(map[string]any)
	for _, member := range []string{"error", "meta"} {
		part, _ := body[member].(map[string]any)
		id, ok := part["request_id"].(string)
		if ok && id != h.Get("X-Request-Id") {
			return []string{fmt.Sprintf("X-Request-Id is %q, but the body says %q", h.Get("X-Request-Id"), id)}
		}
	}
	return nil
}

func (o *operation) requestProblems(req *http.Request, pathParams map[string]string, body []byte) []string {
	var problems []string
	query := req.URL.Query()
	for _, p := range o.parameters {
		var given []string
		switch p.in {
		case openapi3.ParameterInPath:
			given = []string{pathParams[p.name]}
		case openapi3.ParameterInQuery:
			given = query[p.name]
		case openapi3.ParameterInHeader:
			given = req.Header.Values(p.name)
		}
		problems = append(problems, p.problems("accepted although the "+p.in+" parameter", given)...)
	}
	if o.body == nil || (o.bodyless && len(body) == 0) {
		return problems
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return append(problems, fmt.Sprintf("accepted although the request body is not JSON: %v", err))
	}
	if err := o.body.Validate(doc); err != nil {
		problems = append(problems, fmt.Sprintf("accepted although the request body breaks the document: %v", err))
	}
	return problems
}

func (v value) problems(what string, given []string) []string {
	switch {
	case len(given) == 0 && v.required:
		return []string{fmt.Sprintf("%s %s is missing", what, v.name)}
	case len(given) == 0:
		return nil
	case len(given) > 1:
		return []string{fmt.Sprintf("%s %s is given %d times", what, v.name, len(given))}
	}
	var decoded any = given[0]
	if v.integer {
		n, err := strconv.ParseInt(given[0], 10, 64)
		if err != nil || strconv.FormatInt(n, 10) != given[0] {
			return []string{fmt.Sprintf("%s %s is %q, not an integer", what, v.name, given[0])}
		}
		decoded = n
	}
	if err := v.schema.Validate(decoded); err != nil {
		return []string{fmt.Sprintf("%s %s is %q: %v", what, v.name, given[0], err)}
	}
	return nil
}

// ignored lists request headers that the server replaces or ignores when they are
// not valid. They may be invalid in a request that succeeds.
func ignored(name string) bool {
	return slices.Contains([]string{"X-Request-Id", "Sandbox-Scenario", "If-None-Match", "Prefer"}, name)
}
