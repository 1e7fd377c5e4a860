package receiver_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The test has forms of known senders, and malformed ones.
func TestUploadFindsTheDocument(t *testing.T) {
	t.Parallel()
	good := sign(t, peer().Identity, responseXML)
	_, bare, _ := strings.Cut(good, "?>")
	bad := responseXML // not signed, and therefore refused
	named := `form-data; name="xml"; filename="a.xml"`
	multi := func(parts ...part) func() (io.Reader, string) {
		return func() (io.Reader, string) { return form(parts...) }
	}
	raw := func(body, kind string) func() (io.Reader, string) {
		return func() (io.Reader, string) { return strings.NewReader(body), kind }
	}
	for _, c := range []struct {
		name string
		body func() (io.Reader, string)
		ok   bool
	}{
		{"the authority's e-CF", multi(part{`form-data; name="xml"; filename="131880738E310000000002.xml"`, "multipart/form-data;", bare}), true},
		{"the authority's ACECF", multi(part{"form-data; name=xml; filename=aprobacionComercial.xml; filename*=utf-8''aprobacionComercial.xml", "", bare}), true},
		{"named xml", multi(part{named, "text/xml", good}), true},
		{"named XML", multi(part{`form-data; name="XML"`, "", good}), true},
		{"no file name", multi(part{`form-data; name="xml"`, "", good}), true},
		{"another type", multi(part{named, "image/png", good}), true},
		{"the only one, of another name", multi(part{`form-data; name="file"; filename="a.xml"`, "", good}), true},
		{"the only one, without a name", multi(part{"", "", good}), true},
		{"after others", multi(part{`form-data; name="a"`, "", bad}, part{`form-data; name="b"`, "", bad}, part{named, "", good}), true},
		{"before others", multi(part{named, "", good}, part{`form-data; name="a"`, "", bad}), true},
		{"the first of two", multi(part{named, "", good}, part{named, "", bad}), true},
		{"with a byte order mark", multi(part{named, "", "\uFEFF" + good}), true},
		{"as a body", raw(good, "application/xml"), true},
		{"as a body without a type", raw(good, ""), true},
		{"as a body of another type", raw(good, "application/x-www-form-urlencoded"), true},
		{"as a body of a malformed type", raw(good, "multipart/form-data"), true},
		{"multipart of another kind", func() (io.Reader, string) {
			b, kind := form(part{named, "", good})
			return b, strings.Replace(kind, "form-data", "mixed", 1)
		}, true},

		{"the second of two", multi(part{named, "", bad}, part{named, "", good}), false},
		{"two without the name", multi(part{`form-data; name="a"`, "", good}, part{`form-data; name="b"`, "", good}), false},
		{"no part", multi(), false},
		{"an empty part", multi(part{named, "", ""}), false},
		{"an empty only part", multi(part{`form-data; name="a"`, "", ""}), false},
		{"no body", raw("", "application/xml"), false},
		{"another boundary", func() (io.Reader, string) {
			b, _ := form(part{named, "", good})
			return b, "multipart/form-data; boundary=x"
		}, false},
		{"cut short", func() (io.Reader, string) {
			b, kind := form(part{named, "", good})
			return bytes.NewReader(b.Bytes()[:b.Len()-100]), kind
		}, false},
		{"too many parts", multi(append(make([]part, 100), part{named, "", good})...), false},
		{"much after the document", multi(part{named, "", good + strings.Repeat(" ", 1<<20)}), false},
		{"much before the document", multi(part{`form-data; name="a"`, "", strings.Repeat("x", 1<<20)}, part{named, "", good}), false},
		{"compressed", multi(part{named, "", "\x1f\x8b\x08"}), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			body, kind := c.body()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, approvalPath, body)
			r.Header.Set("Content-Type", kind)
			want, kept := http.StatusBadRequest, 0
			if c.ok {
				want, kept = http.StatusOK, 1
			}
			e.serve(r, want)
			if len(e.responses) != kept {
				t.Errorf("%d responses", len(e.responses))
			}
		})
	}
}

func TestUploadNeverExceedsItsLimit(t *testing.T) {
	t.Parallel()
	body, kind := form(part{`form-data; name="xml"`, "", responseXML}, part{`form-data; name="a"`, "", "x"})
	seeds := []struct{ kind, body string }{
		{kind, body.String()}, {"text/xml", invoiceXML},
		{"multipart/form-data; boundary=x", "--x\r\nContent-Disposition: form-data; name=xml\r\n\r\n<ECF/>\r\n--x--"},
		{"multipart/mixed; boundary=\"\"", "--\r\n\r\n----"},
	}
	const limit = 1 << 10
	ctx, e := t.Context(), newEnv(t)
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.SampledFrom(seeds).Draw(t, "seed")
		body := []byte(seed.body)
		for range rapid.IntRange(0, 6).Draw(t, "changes") { // each change replaces some bytes
			from := rapid.IntRange(0, len(body)).Draw(t, "from")
			to := rapid.IntRange(from, min(len(body), from+40)).Draw(t, "to")
			body = slices.Concat(body[:from], rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "with"), body[to:])
		}
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, approvalPath, bytes.NewReader(body))
		r.Header.Set("Content-Type", rapid.SampledFrom([]string{seed.kind, "multipart/form-data", "multipart/form-data; boundary=x", ""}).Draw(t, "kind"))
		document, err := e.Upload(httptest.NewRecorder(), r, limit)
		if (err == nil) != (len(document) > 0) || len(document) > limit || len(document) > len(body) {
			t.Fatalf("%d bytes of %d, %v", len(document), len(body), err)
		}
	})
}
