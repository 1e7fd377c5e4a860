package netguard

import (
	"net/netip"
	"net/url"
	"strings"

	"golang.org/x/net/idna"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// MaxURL is the greatest length of a URL in bytes.
const MaxURL = 2048

// URL checks the text of a URL: the scheme is https, the port is 443, and the host is
// a public name, not an IP address in any notation that resolvers accept. A query is
// not allowed. It fails with ErrAddress.
//
// URL returns the normalized URL: the host is in lower case, in its A-label form
// (xn--…) and without a final dot, and the default port is removed.
func (g Guard) URL(raw string) (*url.URL, error) {
	u, err := g.URLWithQuery(raw)
	if err != nil {
		return nil, err
	}
	if u.RawQuery != "" || u.ForceQuery {
		return nil, lang.Errorf("%s: it must not have a query", "%s: no debe tener parámetros (query)", ErrAddress)
	}
	return u, nil
}

// URLWithQuery is URL for a URL that may have a query.
func (g Guard) URLWithQuery(raw string) (*url.URL, error) {
	if len(raw) > MaxURL {
		return nil, lang.Errorf("%s: it is too long", "%s: es demasiado larga", ErrAddress)
	}
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil {
		return nil, lang.Errorf("%s: it cannot be parsed", "%s: no se puede leer", ErrAddress) // err would repeat the whole URL
	}
	switch {
	case u.Scheme != "https" && (u.Scheme != "http" || !g.Private):
		return nil, lang.Errorf("%s: it is not https", "%s: no es https", ErrAddress)
	case u.Opaque != "" || u.User != nil || strings.Contains(raw, "#"):
		return nil, lang.Errorf("%s: it may have only a host, a path and a query", "%s: puede tener solo servidor, ruta y parámetros", ErrAddress)
	case !isPlain(u.RawQuery):
		return nil, lang.Errorf("%s: its query is not percent-encoded", "%s: sus parámetros no están codificados con %%", ErrAddress)
	case u.Port() != "" && u.Port() != "443" && !g.Private:
		return nil, lang.Errorf("%s: its port is not 443", "%s: su puerto no es 443", ErrAddress)
	}
	if u.Host, err = g.host(u); err != nil {
		return nil, err
	}
	if len(u.String()) > MaxURL {
		return nil, lang.Errorf("%s: it is too long", "%s: es demasiado larga", ErrAddress)
	}
	return u, nil
}

// host returns the normalized host of a URL, with its port if that is allowed.
func (g Guard) host(u *url.URL) (string, error) {
	// The mapping comes before the checks, because it changes some letters to digits.
	host, err := idna.Lookup.ToASCII(u.Hostname())
	if err != nil && !isPlain(u.Hostname()) {
		return "", lang.Errorf("%s: its host is not a valid name", "%s: su servidor no es un nombre válido", ErrAddress)
	}
	if isPlain(u.Hostname()) {
		host = u.Hostname() // the mapping refuses some ASCII names that are in use, such as names with _
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if !g.Private {
		if !isPublicName(host) {
			return "", lang.Errorf("%s: its host is not a public name", "%s: su servidor no es un nombre público", ErrAddress)
		}
		return host, nil
	}
	a, err := netip.ParseAddr(host)
	switch {
	case err != nil && !isName(host):
		return "", lang.Errorf("%s: its host is not a valid name", "%s: su servidor no es un nombre válido", ErrAddress)
	case err == nil && g.Addr(a) != nil:
		return "", ErrAddress
	case err == nil && a.Is6():
		host = "[" + host + "]"
	}
	if u.Port() != "" {
		host += ":" + u.Port()
	}
	return host, nil
}

// isPlain reports whether a text consists of visible ASCII characters.
func isPlain(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

// isPublicName reports whether a host is a name of the public DNS.
func isPublicName(host string) bool {
	dot := strings.LastIndexByte(host, '.')
	if dot < 0 || !isName(host) {
		return false
	}
	switch host[dot+1:] {
	case "local", "internal", "localhost", "arpa", "onion", "test", "invalid", "lan", "home", "corp":
		return false
	}
	return true
}

// isName reports whether a host is a name and not a number.
func isName(host string) bool {
	if len(host) > 253 {
		return false
	}
	last := ""
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
		last = label
	}
	return last[0] > '9' // resolvers take a name that ends in a number for an IP address: 127.1, 0x7f.1
}
