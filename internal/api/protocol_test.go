package api_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/store"
)

func TestMalformedIDsAreRefused(t *testing.T) {
	oneEngine(t, liveOptions(), func(t *testing.T, e *env) {
		id := e.created(e.create("k", invoiceBody("complete"))).ID
		bad := map[string]string{
			"no UUID":                 "1",
			"version 9":               "0192f3c1-7a4e-9b21-9c55-3d2e8f6a1b40",
			"another variant":         "0192f3c1-7a4e-7b21-cc55-3d2e8f6a1b40",
			"braces":                  "{" + e.taxpayer + "}",
			"no hyphens":              strings.ReplaceAll(e.taxpayer, "-", ""),
			"urn":                     "urn:uuid:" + e.taxpayer,
			"a word":                  "me",
			"a blank":                 e.taxpayer + "%20",
			"an accent":               "compañía",
			"an escaped hyphen":       strings.Replace(e.taxpayer, "-", "%2D", 1),
			"a quote":                 e.taxpayer + "'",
			"the good one, cut short": e.taxpayer[:35],
		}
		for _, o := range operations(t) {
			if !o.ofTaxpayer() {
				continue
			}
			wantStatus, wantCode := http.StatusBadRequest, "bad_request"
			if o.named() {
				wantStatus, wantCode = http.StatusNotFound, "not_found"
			}
			for name, text := range bad {
				if a := e.send(o.validRequest(o.pathFor(text, id))); a.status != wantStatus || a.code() != wantCode {
					t.Errorf("%s of taxpayer %s: want %d, got %s", o, name, wantStatus, a)
				}
				if o.named() {
					if a := e.send(o.validRequest(o.pathFor(e.taxpayer, text))); a.status != http.StatusNotFound || a.code() != "not_found" {
						t.Errorf("%s with resource %s: %s", o, name, a)
					}
				}
			}
		}
		for _, text := range []string{"{" + e.taxpayer + "}", "%7B" + e.taxpayer + "%7D"} {
			a := e.dial(t).exchange(t, http.MethodGet, e.rawRequest(http.MethodGet, "/v1/taxpayers/"+text+"/invoices", e.key))
			wantCode(t, text, a, http.StatusBadRequest, "bad_request")
		}
	})
}

func TestUpperCaseIDsWork(t *testing.T) {
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		upper := strings.ToUpper
		a := e.send(request{method: http.MethodPost, path: "/v1/taxpayers/" + upper(e.taxpayer) + "/invoices", idem: "k", body: invoiceBody("A")})
		made := e.created(a)
		if want := "/v1/taxpayers/" + e.taxpayer + "/invoices/" + made.ID; a.header.Get("Location") != want {
			t.Errorf("Location %s, want %s", a.header.Get("Location"), want)
		}
		for _, path := range []string{
			"/invoices", "/invoices/" + upper(made.ID), "/fiscal-documents?external_id=A", "/fiscal-documents/" + upper(made.FiscalDocumentID),
		} {
			a := e.send(request{path: "/v1/taxpayers/" + upper(e.taxpayer) + path})
			if a.status != http.StatusOK || !bytes.Contains(a.body, []byte(made.ID)) || bytes.Contains(a.body, []byte(upper(e.taxpayer))) {
				t.Errorf("%s: %s", path, a)
			}
		}
		if again := e.send(request{method: http.MethodPost, path: "invoices", idem: "k", body: invoiceBody("A")}); again.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("the other spelling created another invoice: %s", again)
		}
	})
}

func TestPathHasOneSpelling(t *testing.T) {
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		made := e.created(e.create("k", invoiceBody("A")))
		own := "/v1/taxpayers/" + e.taxpayer
		targets := []string{
			"/", "//", "/v1", "/v1/", "/v2/", "/v2/taxpayers/" + e.taxpayer + "/invoices", "/V1/taxpayers/" + e.taxpayer + "/invoices",
			"/v1/taxpayers", "/v1/taxpayers/", own, own + "/", own + "/invoices/", own + "/invoices/" + made.ID + "/",
			own + "/Invoices", own + "/invoice", own + "/invoices.json", own + "//invoices", "/" + own + "/invoices", "/v1//taxpayers/" + e.taxpayer + "/invoices",
			"/v1/taxpayers//invoices", "/v1/./taxpayers/" + e.taxpayer + "/invoices", "/./v1/taxpayers/" + e.taxpayer + "/invoices",
			own + "/x/../invoices", own + "/../" + e.taxpayer + "/invoices", "/v1/taxpayers/../invoices", "/v1/taxpayers/./invoices",
			"/v1/taxpayers/%2e%2E/invoices", "/v1/taxpayers/%2e/invoices", "/v1/taxpayers/x%2Fy/invoices", "/v1/taxpayers/x%00/invoices", "/v1/taxpayers/x%3by/invoices",
			own + "/%2e/invoices", own + "/x/%2e%2e/invoices", own + "/x/%2E%2E/invoices", own + "%2Finvoices", own + "%2finvoices/" + made.ID,
			own + "/invoices/" + made.ID + "%00", own + "/invoices%00", own + "/%69nvoices", own + "/invoices/" + made.ID + "%2Fxml",
			own + "/invoices;a=b", own + ";a=b/invoices", own + "/invoices%3B", own + "/invoices%20", own + "/invoices/" + made.ID + "/xml",
			own + "/fiscal-documents/" + made.FiscalDocumentID + "/XML", own + "/fiscal-documents/" + made.FiscalDocumentID + "/xml/",
			own + "/fiscal-documents/" + made.FiscalDocumentID + "/html", "/v1/openapi.json/", "/v1/openapi.yaml", "/livez/", "/metrics/", "/readyz%00", "*",
			"/fe/recepcion", "/../../etc/passwd", "/..%2f..%2fetc/passwd", `\v1\taxpayers`, "/v1/taxpayers/" + e.taxpayer + `\invoices`,
		}
		c := e.dial(t)
		for _, target := range targets {
			method := http.MethodGet
			if target == "*" {
				method = http.MethodOptions // only OPTIONS has this form
			}
			if target[0] == '\\' {
				c = e.dial(t) // not a request target: net/http refuses it and closes
				wantStatus(t, target, c.exchange(t, method, e.rawRequest(method, target, e.key)), http.StatusBadRequest)
				c = e.dial(t)
				continue
			}
			a := c.exchange(t, method, e.rawRequest(method, target, e.key))
			if a.status != http.StatusNotFound || a.code() != "not_found" || a.header.Get("Location") != "" {
				t.Errorf("%s: %s %v", target, a, a.header)
			}
			wantCommonHeaders(t, e.clock.now(), a)
		}
	})
}

func TestOtherMethodsAreRefused(t *testing.T) {
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		made := e.created(e.create("k", invoiceBody("A")))
		known := make(map[string][]string)
		for _, o := range operations(t) {
			known[o.path] = append(known[o.path], o.method)
			if o.method == http.MethodGet {
				known[o.path] = append(known[o.path], http.MethodHead)
			}
		}
		for path, allowed := range known {
			slices.Sort(allowed)
			want := strings.Join(allowed, ", ")
			for _, method := range []string{
				http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodTrace, http.MethodOptions, "BREW", "get",
			} {
				if slices.Contains(allowed, method) {
					continue
				}
				a := e.send(request{method: method, path: operation{path: path}.pathFor(e.taxpayer, made.ID)})
				if a.status != http.StatusMethodNotAllowed || a.code() != "bad_request" || a.header.Get("Allow") != want {
					t.Errorf("%s %s: %s, Allow %q, want %q", method, path, a, a.header.Get("Allow"), want)
				}
				wantCommonHeaders(t, e.clock.now(), a)
			}
		}
		wantStatus(t, "the invoice no longer exists", e.send(request{path: "invoices/" + made.ID}), http.StatusOK)
	})
}

func TestHeadIsGetWithoutBody(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		made := e.created(e.create("k", invoiceBody("complete")))
		paths := []string{
			"/v1/taxpayers/x/invoices", "/v1/nothing", "/v1/taxpayers/" + store.NewID() + "/invoices", "invoices?limit=0", "fiscal-documents",
			"invoices/" + store.NewID(),
		}
		for _, o := range operations(t) {
			if o.method != http.MethodGet {
				continue
			}
			resource := made.ID
			if strings.Contains(o.path, "{document_id}") {
				resource = made.FiscalDocumentID
			}
			paths = append(paths, o.validRequest(o.pathFor(e.taxpayer, resource)).path)
		}
		for _, path := range paths {
			for _, key := range []string{e.key, "-"} {
				get := e.send(withID(request{path: path, key: key}))
				head := e.send(withID(request{method: http.MethodHead, path: path, key: key}))
				get.header.Del("Date")
				head.header.Del("Date")
				if head.status != get.status || !reflect.DeepEqual(head.header, get.header) {
					t.Errorf("%s:\nGET  %d %v\nHEAD %d %v", path, get.status, get.header, head.status, head.header)
				}
				if len(head.body) != 0 || len(get.body) == 0 {
					t.Errorf("%s: HEAD has %d bytes and GET %d", path, len(head.body), len(get.body))
				}
			}
		}
	})
}

func TestNoCORSHeadersAreSent(t *testing.T) {
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		for _, method := range []string{http.MethodOptions, http.MethodGet, http.MethodPost} {
			a := e.send(request{method: method, path: "invoices", idem: "k", body: invoiceBody("A"), header: http.Header{
				"Origin": {"https://shop.example"}, "Access-Control-Request-Method": {"POST"}, "Access-Control-Request-Headers": {"authorization"},
			}})
			if (a.status == http.StatusMethodNotAllowed) != (method == http.MethodOptions) {
				t.Errorf("%s: %s", method, a)
			}
			for name := range a.header {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("%s: %s", method, name)
				}
			}
			if method == http.MethodOptions && a.header.Get("Allow") != "GET, HEAD, POST" {
				t.Errorf("Allow %q", a.header.Get("Allow"))
			}
		}
	})
}

func TestMediaTypes(t *testing.T) {
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		tests := []struct {
			name     string
			lines    []string
			accepted bool
		}{
			{"plain", []string{"application/json"}, true},
			{"with a charset", []string{"application/json; charset=utf-8"}, true},
			{"in another case, quoted", []string{`Application/JSON; Charset="UTF-8"`}, true},
			{"without a space", []string{"application/json;charset=UTF-8"}, true},
			{"none", nil, false},
			{"empty", []string{""}, false},
			{"text", []string{"text/plain"}, false},
			{"without the hyphen", []string{"application/json; charset=utf8"}, true},
			{"without the hyphen, in capitals and quotes", []string{`application/json; charset="UTF8"`}, true},
			{"another charset", []string{"application/json; charset=iso-8859-1"}, false},
			{"utf-16", []string{"application/json; charset=utf-16"}, false},
			{"two charsets", []string{"application/json; charset=utf-8; charset=iso-8859-1"}, false},
			{"problem+json", []string{"application/problem+json"}, false},
			{"a form", []string{"application/x-www-form-urlencoded"}, false},
			{"multipart", []string{"multipart/form-data; boundary=x"}, false},
			{"XML", []string{"application/xml"}, false},
			{"twice", []string{"application/json", "application/json"}, false},
			{"a list", []string{"application/json, text/plain"}, false},
			{"nonsense", []string{"application/json; ="}, false},
		}
		for i, tt := range tests {
			text := invoiceBody(fmt.Sprint("media-", i))
			r := request{method: http.MethodPost, path: "invoices", idem: fmt.Sprint("k", i), body: text, header: http.Header{"Content-Type": tt.lines}}
			a := e.send(r)
			switch {
			case tt.accepted && a.status != http.StatusAccepted:
				t.Errorf("%s: %s", tt.name, a)
			case !tt.accepted && (a.status != http.StatusUnsupportedMediaType || a.code() != "bad_request" || a.header.Get("Accept-Encoding") != ""):
				t.Errorf("%s: %s %v", tt.name, a, a.header)
			}
			if a.header.Get("Content-Type") != "application/json; charset=utf-8" || a.header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s: headers %v", tt.name, a.header)
			}
		}
		for _, accept := range []string{"text/html", "application/xml", "", "nonsense"} {
			if a := e.send(request{path: "invoices", header: http.Header{"Accept": {accept}}}); a.status != http.StatusOK {
				t.Errorf("Accept %q: %s", accept, a)
			}
		}
	})
}

func TestCompressedBodiesAreRefused(t *testing.T) {
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		var bomb bytes.Buffer
		z := gzip.NewWriter(&bomb)
		_, err := z.Write(make([]byte, 1<<21)) // a larger body would only make the test slower
		e.must(err)
		e.must(z.Close())
		for _, coding := range [][]string{{"gzip"}, {"GZIP"}, {"deflate"}, {"br"}, {"identity", "gzip"}, {"identity, gzip"}, {"gzip", "identity"}, {"x"}} {
			a := e.send(request{method: http.MethodPost, path: "invoices", idem: "k", body: bomb.Bytes(), header: http.Header{"Content-Encoding": coding}})
			if a.status != http.StatusUnsupportedMediaType || a.code() != "bad_request" || a.header.Get("Accept-Encoding") != "identity" {
				t.Errorf("%v: %s %v", coding, a, a.header)
			}
		}
		for i, coding := range []string{"identity", "Identity"} {
			a := e.send(request{method: http.MethodPost, path: "invoices", idem: fmt.Sprint(i), body: invoiceBody(fmt.Sprint("plain-", i)), header: http.Header{"Content-Encoding": {coding}}})
			wantStatus(t, coding, a, http.StatusAccepted)
		}
		// Answers are not compressed either: their length could reveal secrets (BREACH).
		if a := e.send(request{path: "invoices", header: http.Header{"Accept-Encoding": {"gzip"}}}); a.header.Get("Content-Encoding") != "" {
			t.Errorf("Content-Encoding %s", a.header.Get("Content-Encoding"))
		}
	})
}

// bodyOfSize returns a valid invoice of exactly that many bytes.
func bodyOfSize(externalID string, size int) []byte {
	text := invoiceBody(externalID)
	return append(text, bytes.Repeat([]byte{' '}, size-len(text))...)
}

func TestBodySizeIsLimited(t *testing.T) {
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		const most = 1_048_576
		wantStatus(t, "the largest body", e.create("k1", bodyOfSize("A", most)), http.StatusAccepted)
		a := e.create("k2", bodyOfSize("B", most+1))
		wantCode(t, "one byte more", a, http.StatusRequestEntityTooLarge, "bad_request")
		post := func(key string, more ...string) string {
			return e.rawRequest(http.MethodPost, "/v1/taxpayers/"+e.taxpayer+"/invoices", e.key, append(more, "Idempotency-Key: "+key, "Content-Type: application/json")...)
		}
		// No byte of the body is sent: Content-Length is enough to refuse it.
		c := e.dial(t)
		if a := c.exchange(t, http.MethodPost, post("k3", "Content-Length: 1048577")); a.status != http.StatusRequestEntityTooLarge || a.header.Get("Connection") != "close" {
			t.Errorf("by its length: %s %v", a, a.header)
		}
		if !c.closed() {
			t.Error("the connection stays open")
		}
		chunked := func(key string, size int) response {
			c := e.dial(t)
			text := bodyOfSize("chunked-"+key, size)
			a := c.exchange(t, http.MethodPost, post(key, "Transfer-Encoding: chunked")+fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(text), text))
			if a.status != http.StatusAccepted && !c.closed() {
				t.Error("the connection stays open")
			}
			return a
		}
		wantStatus(t, "the largest body in chunks", chunked("k4", most), http.StatusAccepted)
		if a := chunked("k5", most+1); a.status != http.StatusRequestEntityTooLarge || a.header.Get("Connection") != "close" {
			t.Errorf("one byte more in chunks: %s %v", a, a.header)
		}
		// A body without an end is refused as soon as it exceeds the limit.
		c = e.dial(t)
		chunk := fmt.Sprintf("%x\r\n%s\r\n", 1<<16, strings.Repeat(" ", 1<<16))
		wantStatus(t, "without an end", c.exchange(t, http.MethodPost, post("k6", "Transfer-Encoding: chunked")+strings.Repeat(chunk, 17)), http.StatusRequestEntityTooLarge)
		if a := e.send(request{path: "fiscal-documents?external_id=B"}); !bytes.Contains(a.body, []byte(`"data":[]`)) {
			t.Errorf("a refused invoice is stored: %s", a)
		}
	})
}

// net/http refuses malformed requests without our envelope. It closes the
// connection, so that the bytes that follow are not taken for a request.
func TestMalformedHTTPClosesTheConnection(t *testing.T) {
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		path := "/v1/taxpayers/" + e.taxpayer + "/invoices"
		get := func(more ...string) string { return e.rawRequest(http.MethodGet, path, e.key, more...) }
		tests := []struct {
			name, text string
			want       int
		}{
			{"headers of 17 KiB", get("X-Long: " + strings.Repeat("a", 17<<10)), http.StatusRequestHeaderFieldsTooLarge},
			{"many headers", get(strings.Split(strings.Repeat("X-A: b\n", 4000), "\n")[:4000]...), http.StatusRequestHeaderFieldsTooLarge},
			{"a target of 17 KiB", e.rawRequest(http.MethodGet, path+"?a="+strings.Repeat("a", 17<<10), e.key), http.StatusRequestHeaderFieldsTooLarge},
			{"two lengths", e.rawRequest(http.MethodPost, path, e.key, "Content-Length: 5", "Content-Length: 6") + "hello", http.StatusBadRequest},
			{"a length with a sign", e.rawRequest(http.MethodPost, path, e.key, "Content-Length: +5") + "hello", http.StatusBadRequest},
			{"a list of lengths", e.rawRequest(http.MethodPost, path, e.key, "Content-Length: 5, 5") + "hello", http.StatusBadRequest},
			{"a bare CR in a value", get("X-A: b\rX-C: d"), http.StatusBadRequest},
			{"a bare CR for a line end", "GET " + path + " HTTP/1.1\rHost: a\r\r\n\r\n", http.StatusBadRequest},
			{"a space before the colon", get("X-A : b"), http.StatusBadRequest},
			{"a NUL in a value", get("X-A: \x00"), http.StatusBadRequest},
			{"no Host", "GET " + path + " HTTP/1.1\r\n\r\n", http.StatusBadRequest},
			{"two Hosts", get("Host: other.example"), http.StatusBadRequest},
			{"an unknown transfer coding", e.rawRequest(http.MethodPost, path, e.key, "Transfer-Encoding: gzip, chunked"), http.StatusNotImplemented},
			{"two transfer codings", e.rawRequest(http.MethodPost, path, e.key, "Transfer-Encoding: chunked", "Transfer-Encoding: identity"), http.StatusNotImplemented},
			{"no HTTP at all", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", http.StatusBadRequest},
		}
		for _, tt := range tests {
			c := e.dial(t)
			// A second request follows on the connection. It must not be answered.
			if a := c.exchange(t, http.MethodGet, tt.text+get()); a.status != tt.want {
				t.Errorf("%s: want %d, got %s", tt.name, tt.want, a)
			}
			if !c.closed() {
				t.Errorf("%s: the connection stays open", tt.name)
			}
			if a := e.send(request{path: "invoices"}); a.status != http.StatusOK {
				t.Errorf("%s: the next client gets %s", tt.name, a)
			}
		}
	})
}

// A proxy may use Content-Length where the server uses the chunks. The bytes that
// follow could then be taken for the request of another client.
func TestLengthAndChunksCloseTheConnection(t *testing.T) {
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		path := "/v1/taxpayers/" + e.taxpayer + "/invoices"
		text := invoiceBody("A")
		smuggled := e.rawRequest(http.MethodGet, path, e.key)
		header := []string{"Transfer-Encoding: chunked", "Content-Type: application/json", "Idempotency-Key: k", "Connection: keep-alive"}
		both := e.rawRequest(http.MethodPost, path, e.key, append(header, "Content-Length: 6")...)
		old := func(text string) string { return strings.Replace(text, "HTTP/1.1", "HTTP/1.0", 1) }
		for name, tt := range map[string]struct{ request, code string }{
			"HTTP/1.1":             {both, "bad_request"},
			"HTTP/1.0":             {old(both), "bad_request"},
			"HTTP/1.0 with chunks": {old(e.rawRequest(http.MethodPost, path, e.key, header...)), "invalid_json"}, // HTTP/1.0 has no chunks: the body is empty
		} {
			c := e.dial(t)
			a := c.exchange(t, http.MethodPost, tt.request+fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(text), text)+smuggled)
			if a.status != http.StatusBadRequest || a.code() != tt.code || a.header.Get("Connection") != "close" || !c.closed() {
				t.Errorf("%s: want 400 and a closed connection, got %s", name, a)
			}
		}
		if a := e.send(request{path: "invoices"}); a.status != http.StatusOK {
			t.Errorf("the next client gets %s", a)
		}
	})
}
