// Package reference makes the page that documents the API, from the OpenAPI document
// and from programs in four languages. The page is plain HTML with one stylesheet and one
// script. All of them are in the binary, and the page loads nothing from another origin.
package reference

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/openapi"
)

//go:embed page.html page.css page.js icon.svg
var assets embed.FS

// base is the path of the page. Addresses inside the page are relative, so that it also
// works behind a proxy that serves it under a longer path.
const base = "/docs"

// policy allows files and requests of the same origin only. Neither scripts nor styles
// may be inline.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// file is an answer that is the same for every request.
type file struct {
	mediaType     string
	plain, zipped []byte
	tag           string
}

func newFile(mediaType string, content []byte) (*file, error) {
	var zipped bytes.Buffer
	w, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if err != nil {
		return nil, fmt.Errorf("reference: compress: %w", err)
	}
	if _, err := w.Write(content); err != nil {
		return nil, fmt.Errorf("reference: compress: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("reference: compress: %w", err)
	}
	sum := sha256.Sum256(content)
	return &file{mediaType: mediaType, plain: content, zipped: zipped.Bytes(), tag: hex.EncodeToString(sum[:8])}, nil
}

// handler serves the page. It makes each file when it is first asked for.
type handler struct {
	log   *slog.Logger
	pages map[string]func() (*file, error) // by language and path
	files map[string]func() (*file, error) // by path below base
}

// Handler returns the handler of /docs and of everything below it.
func Handler(log *slog.Logger) http.Handler {
	h := &handler{log: log, pages: map[string]func() (*file, error){}, files: map[string]func() (*file, error){}}
	for _, language := range []lang.Language{lang.English, lang.Spanish} {
		for path, root := range map[string]string{base: "", base + "/": "../"} {
			h.pages[string(language)+path] = sync.OnceValues(func() (*file, error) { return render(language, root) })
		}
	}
	for name, mediaType := range map[string]string{
		"page.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml",
	} {
		h.files[base+"/"+name] = sync.OnceValues(func() (*file, error) {
			content, err := assets.ReadFile(name)
			if err != nil {
				return nil, fmt.Errorf("reference: %w", err)
			}
			return newFile(mediaType, content)
		})
	}
	return h
}

// render makes the page in a language.
func render(language lang.Language, root string) (*file, error) {
	text, err := openapi.JSON()
	if err != nil {
		return nil, err
	}
	d, err := build(text, language)
	if err != nil {
		return nil, err
	}
	d.Root = root
	page, err := template.New("page.html").Option("missingkey=error").Funcs(template.FuncMap{
		"lower": strings.ToLower, "path": pathParts, "errorAnchor": errorAnchor, "indexed": indexed,
		"words": func() map[string]string { return d.Words },
	}).ParseFS(assets, "page.html")
	if err != nil {
		return nil, fmt.Errorf("reference: %w", err)
	}
	var out bytes.Buffer
	if err := page.Execute(&out, d); err != nil {
		return nil, fmt.Errorf("reference: %w", err)
	}
	return newFile("text/html; charset=utf-8", out.Bytes())
}

// ServeHTTP answers a request for the page or one of its files.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-cache")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	find := h.files[r.URL.Path]
	if r.URL.Path == base || r.URL.Path == base+"/" {
		language := languageOf(r)
		header.Set("Content-Language", string(language))
		header.Set("Vary", "Accept-Language")
		find = h.pages[string(language)+r.URL.Path]
	}
	if find == nil {
		http.NotFound(w, r)
		return
	}
	f, err := find()
	if err != nil {
		h.log.Error("cannot make the page /docs; it answers 500", "error", err.Error())
		http.Error(w, "cannot make this page", http.StatusInternalServerError)
		return
	}
	f.serve(w, r)
}

// languageOf returns the language of the parameter lang, or else the one that the browser
// prefers.
func languageOf(r *http.Request) lang.Language {
	if named, ok := lang.Parse(r.URL.Query().Get("lang")); ok {
		return named
	}
	return lang.FromHeader(r.Header.Get("Accept-Language"), lang.English)
}

func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	header, content, tag := w.Header(), f.plain, f.tag
	header.Set("Content-Type", f.mediaType)
	header.Add("Vary", "Accept-Encoding")
	if acceptsGzip(r.Header) {
		header.Set("Content-Encoding", "gzip")
		content, tag = f.zipped, tag+"-gzip"
	}
	header.Set("ETag", `"`+tag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

// acceptsGzip reports whether a client accepts gzip.
func acceptsGzip(h http.Header) bool {
	for _, line := range h.Values("Accept-Encoding") {
		for part := range strings.SplitSeq(line, ",") {
			name, weight, _ := strings.Cut(part, ";")
			weight = strings.ReplaceAll(weight, " ", "")
			if strings.EqualFold(strings.TrimSpace(name), "gzip") && strings.Trim(weight, "q=0.") != "" || strings.EqualFold(strings.TrimSpace(part), "gzip") {
				return true
			}
		}
	}
	return false
}

// pathPart is a piece of a path: fixed text, or the name of a parameter.
type pathPart struct {
	Text     string
	Variable bool
}

// pathParts splits a path at its parameters.
func pathParts(path string) []pathPart {
	var list []pathPart
	for path != "" {
		fixed, rest, found := strings.Cut(path, "{")
		list = append(list, pathPart{Text: fixed})
		if !found {
			break
		}
		name, after, _ := strings.Cut(rest, "}")
		list = append(list, pathPart{Text: "{" + name + "}", Variable: true})
		path = after
	}
	return list
}

// indexed gives a template a list of samples, and a name that is unique on the page.
func indexed(id string, samples []sample) map[string]any {
	return map[string]any{"ID": id, "Samples": samples}
}
