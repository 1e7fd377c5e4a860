package console

import (
	"html/template"
	"net/url"
	"strings"
)

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
