package reference

import (
	"compress/gzip"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/openapi"
)

// get asks the handler for a path, with pairs of header names and values.
func get(t *testing.T, method, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	shared.ServeHTTP(w, r)
	return w
}

// shared makes each page once for all tests.
var shared = Handler(slog.New(slog.DiscardHandler))

func page(t *testing.T, path string, header ...string) string {
	t.Helper()
	w := get(t, http.MethodGet, path, header...)
	if w.Code != http.StatusOK {
		t.Fatalf("%s answered %d: %s", path, w.Code, w.Body)
	}
	return w.Body.String()
}

// The page loads only its own files, by relative addresses, so that it works offline and
// under any address.
func TestPageLoadsOnlyItsOwnFiles(t *testing.T) {
	t.Parallel()
	addresses := regexp.MustCompile(`(?:src|href)="([^"#][^"]*)"`)
	for path, folder := range map[string]string{"/docs": "/", "/docs/": "/docs/"} {
		found := 0
		for _, m := range addresses.FindAllStringSubmatch(page(t, path), -1) {
			if strings.HasPrefix(m[1], "?lang=") {
				continue
			}
			found++
			if strings.Contains(m[1], "//") || strings.HasPrefix(m[1], "/") {
				t.Errorf("%s refers to %s, which is not a relative address", path, m[1])
			}
			target := strings.ReplaceAll(folder+m[1], "docs/../", "")
			if target == "/v1/openapi.json" {
				continue
			}
			if w := get(t, http.MethodGet, target); w.Code != http.StatusOK {
				t.Errorf("%s refers to %s, which answers %d", path, target, w.Code)
			}
		}
		if found < 4 {
			t.Errorf("%s has %d addresses", path, found)
		}
	}
}

// The policy forbids inline scripts and styles, and the page has none.
func TestPageHasNothingInline(t *testing.T) {
	t.Parallel()
	for _, forbidden := range []string{`<style`, `<script>`, ` style="`, ` on[a-z]+="`, `javascript:`} {
		if found := regexp.MustCompile(forbidden).FindString(page(t, "/docs")); found != "" {
			t.Errorf("the page contains %q", found)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") || strings.Contains(policy, "http") {
		t.Errorf("the policy is %s", policy)
	}
}

func TestHeadersAndMethods(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, path string
		status       int
		mediaType    string
	}{
		{"GET", "/docs", 200, "text/html; charset=utf-8"},
		{"HEAD", "/docs", 200, "text/html; charset=utf-8"},
		{"GET", "/docs/page.js", 200, "javascript"},
		{"GET", "/docs/page.css", 200, "text/css"},
		{"GET", "/docs/icon.svg", 200, "image/svg+xml"},
		{"GET", "/docs/page.html", 404, ""},
		{"GET", "/docs/samples/setup.py", 404, ""},
		{"POST", "/docs", 405, ""},
	} {
		w := get(t, c.method, c.path)
		if w.Code != c.status || !strings.Contains(w.Header().Get("Content-Type"), c.mediaType) {
			t.Errorf("%s %s answered %d %s", c.method, c.path, w.Code, w.Header().Get("Content-Type"))
		}
		if c.method == "HEAD" && w.Body.Len() > 0 {
			t.Errorf("HEAD %s has a body", c.path)
		}
		for name, want := range map[string]string{
			"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-cache",
		} {
			if got := w.Header().Get(name); got != want && c.status != 404 && c.status != 405 {
				t.Errorf("%s %s: %s is %q, want %q", c.method, c.path, name, got, want)
			}
		}
	}
}

// A browser that has the page gets 304, and one that accepts gzip gets fewer bytes.
func TestPageIsCompressedAndCached(t *testing.T) {
	t.Parallel()
	plain, zipped := get(t, "GET", "/docs"), get(t, "GET", "/docs", "Accept-Encoding", "br, gzip;q=0.5")
	size := zipped.Body.Len()
	if zipped.Header().Get("Content-Encoding") != "gzip" || size > plain.Body.Len()/5 {
		t.Fatalf("%d bytes, compressed %d: %v", plain.Body.Len(), size, zipped.Header())
	}
	t.Logf("the page has %d bytes, compressed %d", plain.Body.Len(), size)
	reader, err := gzip.NewReader(zipped.Body)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(reader); err != nil || string(text) != plain.Body.String() {
		t.Errorf("the compressed page differs: %v", err)
	}
	if w := get(t, "GET", "/docs", "Accept-Encoding", "gzip;q=0"); w.Header().Get("Content-Encoding") != "" {
		t.Error("a client that refuses gzip gets it")
	}
	tag := plain.Header().Get("ETag")
	if w := get(t, "GET", "/docs", "If-None-Match", tag); w.Code != http.StatusNotModified {
		t.Errorf("If-None-Match with the ETag answered %d", w.Code)
	}
	if w := get(t, "GET", "/docs", "If-Match", `"other"`); w.Code != http.StatusPreconditionFailed {
		t.Errorf("If-Match with another ETag answered %d", w.Code)
	}
	if tag == zipped.Header().Get("ETag") || tag == get(t, "GET", "/docs", "Accept-Language", "es").Header().Get("ETag") {
		t.Error("two forms of the page have the same ETag")
	}
}

// Every operation, webhook, error code, detail code, status and kind of event has its
// place on the page, operations come before the guides, and every link leads somewhere.
func TestPageShowsTheWholeDocument(t *testing.T) {
	t.Parallel()
	text, err := openapi.JSON()
	if err != nil {
		t.Fatal(err)
	}
	root, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	html := page(t, "/docs")
	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(` id="([^"]+)"`).FindAllStringSubmatch(html, -1) {
		if ids[m[1]] {
			t.Errorf("the id %s is used twice", m[1])
		}
		ids[m[1]] = true
	}
	b := &builder{root: root}
	for schema, prefix := range map[string]string{"ErrorCode": "error-", "DetailCode": "detail-", "Status": "status-"} {
		codes, _ := b.values(root.get("components", "schemas", schema))
		for _, code := range codes {
			if !ids[prefix+code] {
				t.Errorf("the page has no place %s%s", prefix, code)
			}
		}
	}
	operations := 0
	for _, from := range []string{"paths", "webhooks"} {
		root.get(from).each(func(_ string, item *tree) {
			item.each(func(method string, op *tree) {
				if method == "parameters" {
					return
				}
				operations++
				id := op.get("operationId").text()
				if !ids[id] {
					t.Errorf("the page does not show %s", id)
				}
				for _, l := range sampleLanguages() {
					if from == "paths" && !ids[id+"-"+l.ID] {
						t.Errorf("the page has no example of %s in %s", id, l.Name)
					}
				}
			})
		})
	}
	if operations < 20 {
		t.Errorf("only %d operations were found", operations)
	}
	for _, m := range regexp.MustCompile(`href="#([^"]+)"`).FindAllStringSubmatch(html, -1) {
		if !ids[m[1]] {
			t.Errorf("a link leads to #%s, which is not on the page", m[1])
		}
	}
	if strings.Index(html, `id="createInvoice"`) > strings.Index(html, `id="authentication"`) {
		t.Error("the guides come before the operations")
	}
}

// A field says its type, whether it is required, its limits and its values.
func TestFieldsShowTheirLimits(t *testing.T) {
	t.Parallel()
	text, err := openapi.JSON()
	if err != nil {
		t.Fatal(err)
	}
	d, err := build(text, lang.English)
	if err != nil {
		t.Fatal(err)
	}
	create := d.Groups[0].Operations[0]
	at := func(list []field, name string) field {
		i := slices.IndexFunc(list, func(f field) bool { return f.Name == name })
		if i < 0 {
			t.Fatalf("no field %s", name)
		}
		return list[i]
	}
	lines := at(create.Body, "lines")
	if lines.Type != "array of object" || !lines.Required || !slices.Contains(lines.Limits, "1 to 1000 items") {
		t.Errorf("lines: %+v", lines)
	}
	if discount := at(lines.Members, "discount"); discount.Type != "object or null" || len(discount.Members) != 2 {
		t.Errorf("discount: %+v", discount)
	}
	if due := at(create.Body, "due_date"); due.Required || due.Type != "date or null" {
		t.Errorf("due_date: %+v", due)
	}
	if payment := at(create.Body, "payment_type"); !slices.Equal(payment.Values, []string{"cash", "credit", "free_of_charge"}) || payment.Open {
		t.Errorf("payment_type: %+v", payment)
	}
	if city := at(at(at(create.Body, "buyer").Members, "address").Members, "city"); !slices.Equal(city.Limits, []string{"1 to 120 characters"}) {
		t.Errorf("city: %+v", city)
	}
	if key := at(create.Parameters, "Idempotency-Key"); key.In != "header" || !key.Required {
		t.Errorf("Idempotency-Key: %+v", key)
	}
	if !slices.Equal(create.Scopes, []string{"invoices.write", "ecf.submit"}) {
		t.Errorf("scopes: %v", create.Scopes)
	}
}

// The Spanish page has Spanish labels, and says that the descriptions are English.
func TestPageInSpanish(t *testing.T) {
	t.Parallel()
	for _, html := range []string{page(t, "/docs", "Accept-Language", "es-DO,es;q=0.9,en;q=0.5"), page(t, "/docs?lang=es")} {
		for _, want := range []string{`<html lang="es">`, ">Parámetros<", ">Errores<", "Campos de", `<div class="text" lang="en">`} {
			if !strings.Contains(html, want) {
				t.Errorf("the page has no %q", want)
			}
		}
	}
	if w := get(t, "GET", "/docs", "Accept-Language", "es"); w.Header().Get("Content-Language") != "es" || !strings.Contains(strings.Join(w.Header().Values("Vary"), ","), "Accept-Language") {
		t.Errorf("headers %v", w.Header())
	}
	if !strings.Contains(page(t, "/docs?lang=en", "Accept-Language", "es"), `<html lang="en">`) {
		t.Error("the parameter lang has no effect")
	}
}

// Text of the document cannot become markup.
func TestTextIsEscaped(t *testing.T) {
	t.Parallel()
	md := markdown{anchors: map[string]string{"a": "error-a"}}
	for text, want := range map[string]string{
		"<b> & `<i>`":           "<p>&lt;b&gt; &amp; <code>&lt;i&gt;</code></p>\n",
		"see `a` **now**":       `<p>see <a class="ref" href="#error-a"><code>a</code></a> <strong>now</strong></p>` + "\n",
		"* one\n  more\n* two":  "<ul>\n<li>one more</li>\n<li>two</li>\n</ul>\n",
		"| x |\n|---|\n| <y> |": `<table><thead><tr><th scope="col">x</th></tr></thead><tbody>` + "\n" + `<tr><td data-label="x">&lt;y&gt;</td></tr>` + "\n</tbody></table>\n",
	} {
		if got := string(md.block(text)); got != want {
			t.Errorf("%q became\n%s, want\n%s", text, got, want)
		}
	}
	if got := highlight("json", `{"<a>": "</pre>"}`); strings.Contains(string(got), "<a>") || strings.Contains(string(got), "</pre>") {
		t.Errorf("code became %s", got)
	}
}
