package openapi

import (
	_ "embed"
	"html"
	"net/http"
	"strings"

	"github.com/swaggest/swgui/v5emb"
)

// Only the files of the viewer come from swgui. The page has no script inside, so
// that docsPolicy can forbid inline scripts.
var (
	//go:embed docs.html
	docsPage string
	//go:embed docs.js
	docsScript []byte
)

// docsBase is the path of the page. The addresses inside the page are absolute, so
// that it works with and without a trailing slash.
const docsBase = "/docs"

// docsPolicy allows nothing from another origin. Styles may be inline because
// the viewer writes style attributes; its icons are data URLs.
const docsPolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; " +
	"img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Docs returns the handler of /docs and of everything below it: a page that
// shows the document found at specURL, a path on the same host such as
// /v1/openapi.json. All files come from the binary; the page loads nothing from
// another origin.
func Docs(specURL string) http.Handler {
	page := []byte(strings.ReplaceAll(docsPage, "{{spec}}", html.EscapeString(specURL)))
	assets := v5emb.NewHandler("", specURL, docsBase)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", docsPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
			return
		}
		switch strings.TrimPrefix(r.URL.Path, docsBase) {
		case "", "/":
			write(w, r, "text/html; charset=utf-8", page)
		case "/docs.js":
			write(w, r, "text/javascript; charset=utf-8", docsScript)
		case "/swagger-ui.css", "/swagger-ui-bundle.js", "/favicon-16x16.png", "/favicon-32x32.png":
			assets.ServeHTTP(w, r)
		default: // swgui has more files, which the page does not use
			http.NotFound(w, r)
		}
	})
}

func write(w http.ResponseWriter, r *http.Request, mediaType string, body []byte) {
	w.Header().Set("Content-Type", mediaType)
	if r.Method == http.MethodHead {
		return
	}
	_, _ = w.Write(body) // if it fails the client has left
}
