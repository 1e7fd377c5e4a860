package simulator_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestInvalidUploadsAreRefused(t *testing.T) {
	t.Parallel()
	e := newEnv(t).login()
	post := func(kind, body string) response {
		q := e.request(t.Context(), http.MethodPost, reception, e.token, strings.NewReader(body))
		q.Header.Set("Content-Type", kind)
		return e.do(q)
	}
	part := func(header, content string) string {
		return "--b\r\n" + header + "\r\n\r\n" + content + "\r\n--b--\r\n"
	}
	const form = "multipart/form-data; boundary=b"
	for _, c := range []struct {
		name, kind, body string
		status           int
		want             string
	}{
		{"no multipart", "text/xml", "<ECF/>", 400, "multipart/form-data"},
		{"no boundary", "multipart/form-data", "x", 400, "multipart/form-data"},
		{"nothing", form, "", 400, "parte xml"},
		{"another part", form, part(`Content-Disposition: form-data; name="file"; filename="x.xml"`, "<ECF/>"), 400, "parte xml"},
		{"an empty part", form, part(`Content-Disposition: form-data; name="xml"; filename="x.xml"`, ""), 400, "vacío"},
		{"no XML", form, part(`Content-Disposition: form-data; name="xml"; filename="x.xml"`, "hello"), 400, `"trackId":null`},
		{"a document type", form, part(`Content-Disposition: form-data; name="xml"; filename="x.xml"`, "<!DOCTYPE ECF><ECF/>"), 400, `"trackId":null`},
		{"another root", form, part(`Content-Disposition: form-data; name="xml"; filename="x.xml"`, "<X><a/></X>"), 400, `"trackId":null`},
		{"too large", form, part(`Content-Disposition: form-data; name="xml"; filename="x.xml"`, strings.Repeat("x", 8<<20+1)), 413, ""},
		{"much too large", form, strings.Repeat("x", 9<<20), 413, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if a := post(c.kind, c.body); a.status != c.status || !strings.Contains(a.body, c.want) {
				t.Errorf("%d %s %v", a.status, a.body, a.err)
			}
		})
	}
	if e.stored() != 0 {
		t.Errorf("%d documents were stored", e.stored())
	}
}
