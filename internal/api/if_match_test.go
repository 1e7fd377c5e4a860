package api_test

import (
	"net/http"
	"testing"
)

// If-Match that does not match is answered 412, and the method has no effect (RFC 9110
// §13.1.1). "*" matches what exists. A resource that does not exist is answered 404
// before its state is compared.
func TestIfMatch(t *testing.T) {
	eachEngine(t, liveOptions(), func(t *testing.T, e *env) {
		made, _ := e.createSigned(1)
		file := "fiscal-documents/" + made.FiscalDocumentID
		etag := e.send(request{path: file + "/xml"}).header.Get("ETag")
		for _, c := range []struct {
			path, match string
			want        int
		}{
			{file + "/xml", etag, 200},
			{file + "/xml", `"other", ` + etag, 200},
			{file + "/xml", "*", 200},
			{file + "/xml", `"a,*,b"`, 412}, // one tag
			{file + "/xml", `"other"`, 412},
			{file + "/xml", "W/" + etag, 412},
			{file + "/pdf", etag, 412},
			{file + "/pdf", "*", 200},
			{file, `"other"`, 412},
			{file, "*", 200},
			{"invoices/" + made.ID, `"other"`, 412},
			{"invoices/" + made.ID, "*", 200},
			{"invoices", `"other"`, 412},
			{"events", `"other"`, 412},
			{"webhook-endpoints", `"other"`, 412},
			{"/v1/openapi.json", `"other"`, 412},
			{"/v1/openapi.json", "*", 200},
			{"invoices/" + e.taxpayer, `"other"`, 404},
		} {
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				a := e.send(request{method: method, path: c.path, header: http.Header{"If-Match": {c.match}}})
				if a.status != c.want || c.want == 412 && (a.header.Get("ETag") != "" || method == http.MethodGet && a.code() != "bad_request") {
					t.Errorf("%s %s with If-Match %s: %s", method, c.path, c.match, a)
				}
			}
		}
		wantStatus(t, "If-Match and If-None-Match with the ETag", e.send(request{path: file + "/xml", header: http.Header{"If-Match": {etag}, "If-None-Match": {etag}}}), http.StatusNotModified)
		wantStatus(t, "If-Match comes first", e.send(request{path: file + "/xml", header: http.Header{"If-Match": {`"other"`}, "If-None-Match": {etag}}}), http.StatusPreconditionFailed)
		wantStatus(t, "If-None-Match with another tag", e.send(request{path: file + "/xml", header: http.Header{"If-None-Match": {`"a,*,b"`}}}), http.StatusOK)
	})
}

func TestIfMatchPreventsAChange(t *testing.T) {
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		create := request{method: http.MethodPost, path: "invoices", idem: "k", body: invoiceBody("A"), header: http.Header{"If-Match": {`"x"`}}}
		wantCode(t, "a creation with If-Match", e.send(create), http.StatusPreconditionFailed, "bad_request")
		if a := e.send(request{path: "invoices?external_id=A"}); string(a.body[:10]) != `{"data":[]` {
			t.Errorf("the invoice was created: %s", a)
		}
		create.header = http.Header{"If-Match": {"*"}}
		e.created(e.send(create))
	})
}

// If-Match counts only when the request would succeed without it (RFC 9110 §13.2.1).
func TestIfMatchComesAfterOtherRefusals(t *testing.T) {
	oneEngine(t, liveOptions(), func(t *testing.T, e *env) {
		other := http.Header{"If-Match": {`"x"`}}
		endpoint := "webhook-endpoints/" + e.createEndpoint("k").ID
		for _, c := range []struct {
			request request
			want    int
		}{
			{request{method: http.MethodPost, path: "invoices", body: invoiceBody("A"), header: other, undescribed: true}, 400}, // no key
			{request{method: http.MethodDelete, path: endpoint, header: other}, 412},
			{request{method: http.MethodPost, path: endpoint + "/rotate-secret", header: other}, 412},
			{request{path: endpoint}, 200},
			{request{method: http.MethodDelete, path: "webhook-endpoints/" + e.taxpayer, header: other}, 404},
		} {
			if a := e.send(c.request); a.status != c.want {
				t.Errorf("%s %s: want %d, got %s", c.request.method, c.request.path, c.want, a)
			}
		}
	})
}

// Every error answer names the explanation of its code on the page /docs.
func TestErrorsLinkToTheirExplanation(t *testing.T) {
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		e.created(e.create("k", invoiceBody("A")))
		for code, a := range map[string]response{
			"unauthorized":         e.send(request{path: "invoices", key: "-"}),
			"not_found":            e.send(request{path: "/v1/nothing"}),
			"bad_request":          e.send(request{path: "invoices?limit=0"}),
			"external_id_conflict": e.create("other", invoiceBody("A")),
			"idempotency_mismatch": e.create("k", invoiceBody("B")),
			"invalid_json":         e.create("j", []byte("{")),
		} {
			if want := "</docs#error-" + code + `>; rel="help"`; a.code() != code || a.header.Get("Link") != want {
				t.Errorf("%s: Link is %q, want %q", a, a.header.Get("Link"), want)
			}
		}
	})
}
