package console

import (
	"embed"
	"fmt"
	"html/template"
	"net/url"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

//go:embed templates
var templateFiles embed.FS

// view is what a template gets as dot: the frame of the page, and the data of its handler.
type view struct {
	Data  any // of the handler
	Title string

	Language    lang.Language
	Theme       string // light, dark, or empty for the theme of the browser
	Environment string
	SignedIn    bool
	Viewer      viewer
	Navigation  []navGroup
	Done        string // what has just been done, after a redirect
	Content     template.HTML

	console *Console
	path    string
}

// view returns the view of a page.
func (x *request) view(title string, data any) *view {
	v := &view{
		Data: data, Title: title, Language: x.language, Theme: x.viewer.user.Theme, Environment: string(x.console.o.Environment),
		SignedIn: x.signedIn(), Viewer: x.viewer, console: x.console, path: x.URL.Path,
	}
	if v.SignedIn {
		v.Navigation = x.console.navigation(x.viewer.Role(), x.URL.Path, x.language)
	}
	if key := "done." + x.URL.Query().Get("done"); v.SignedIn && x.has(key) {
		v.Done = x.text(key)
	}
	return v
}

// May reports whether the person may use the page with this method and address, as the
// table of pages writes it. A template shows no control for what the person may not do.
func (v *view) May(method, address string) bool {
	return v.console.mayUse(v.Viewer.Role(), method, address)
}

// With returns a view of the same page with other data, for a template that is also a
// fragment.
func (v *view) With(data any) *view {
	other := *v
	other.Data = data
	return &other
}

// Path returns the path of the page.
func (v *view) Path() string { return v.path }

// parseTemplates parses all templates once for each language.
func (c *Console) parseTemplates() (map[lang.Language]*template.Template, error) {
	all := make(map[lang.Language]*template.Template)
	for _, language := range []lang.Language{lang.Spanish, lang.English} {
		parsed, err := template.New("").Funcs(c.functions(language)).ParseFS(templateFiles, "templates/*.html")
		if err != nil {
			return nil, fmt.Errorf("console: %w", err)
		}
		all[language] = parsed
	}
	return all, nil
}

// functions returns the functions of templates in a language.
func (c *Console) functions(language lang.Language) template.FuncMap {
	t := func(key string, args ...any) (string, error) { return c.texts.Text(language, key, args...) }
	f := format{language: language, text: t, now: c.o.Now}
	return template.FuncMap{
		"t":        t,
		"has":      func(key string) bool { return !c.texts[key].IsZero() },
		"asset":    c.assets.address,
		"icon":     icon,
		"badge":    badge,
		"status":   f.status,
		"date":     f.date,
		"instant":  f.instant,
		"seconds":  f.seconds,
		"ago":      f.ago,
		"until":    f.until,
		"money":    money,
		"duration": duration,
		"amount":   amount,
		"decimal":  decimal,
		"number":   number,
		"count":    f.count,
		"role":     f.role,
		"field":    newField,
		"option":   func(value, label string) option { return option{value, label} },
		"options":  func(all ...option) []option { return all },
		"list":     func(all ...any) []any { return all },
		"dict":     dict,
		"join":     strings.Join,
		"token":    store.NewID, // of a form that creates a secret, see request.formToken
	}
}

// dict returns a map of names and values, for a template that needs several of them.
func dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, fmt.Errorf("console: dict needs names and values")
	}
	all := make(map[string]any, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		name, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("console: dict needs a name, not %v", pairs[i])
		}
		all[name] = pairs[i+1]
	}
	return all, nil
}

// pathOf returns the path of a public address, without a slash at the end. It is empty
// unless a proxy serves the console below a path.
func pathOf(baseURL string) string {
	u, err := url.Parse(baseURL)
	if err != nil {
		return ""
	}
	return strings.TrimRight(u.EscapedPath(), "/")
}

// below returns a page whose addresses are below the path of the public address. Templates
// name addresses from /console/ on, always in an attribute. No text can look like one,
// because html/template escapes its quotes.
func (c *Console) below(page template.HTML) string {
	if c.basePath == "" {
		return string(page)
	}
	return strings.ReplaceAll(string(page), `="/console/`, `="`+template.HTMLEscapeString(c.basePath)+`/console/`)
}
