package netguard

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"golang.org/x/net/idna"
)

// MaxURL is how long an address may be.
const MaxURL = 2048

// URL tells whether an address may be called as far as its text shows: https
// at port 443, and a name in the public name space, not a number in any of the
// spellings that resolvers take for one. It has a host and a path, nothing more.
// A name in other letters than ASCII is called by its A-label form (xn--…).
//
// The address that it returns has its host in lower case and without the dot at
// its end, and no port that goes without saying.
func (g Guard) URL(raw string) (*url.URL, error) {
	u, err := g.URLWithQuery(raw)
	if err != nil {
		return nil, err
	}
	if u.RawQuery != "" || u.ForceQuery {
		return nil, fmt.Errorf("%w: it has more than a host and a path", ErrAddress)
	}
	return u, nil
}

// URLWithQuery is URL for an address that may have a query.
func (g Guard) URLWithQuery(raw string) (*url.URL, error) {
	if len(raw) > MaxURL {
		return nil, fmt.Errorf("%w: it is too long", ErrAddress)
	}
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil {
		return nil, fmt.Errorf("%w: it cannot be read", ErrAddress) // the error would repeat all of it
	}
	switch {
	case u.Scheme != "https" && (u.Scheme != "http" || !g.Private):
		return nil, fmt.Errorf("%w: it is not https", ErrAddress)
	case u.Opaque != "" || u.User != nil || strings.Contains(raw, "#"):
		return nil, fmt.Errorf("%w: it has more than a host, a path and a query", ErrAddress)
	case !isPlain(u.RawQuery):
		return nil, fmt.Errorf("%w: its query is not percent-encoded", ErrAddress)
	case u.Port() != "" && u.Port() != "443" && !g.Private:
		return nil, fmt.Errorf("%w: its port is not 443", ErrAddress)
	}
	if u.Host, err = g.host(u); err != nil {
		return nil, err
	}
	if len(u.String()) > MaxURL {
		return nil, fmt.Errorf("%w: it is too long", ErrAddress)
	}
	return u, nil
}

// host returns the host of an address as it is called.
func (g Guard) host(u *url.URL) (string, error) {
	// Before anything is judged: the mapping makes digits of some letters.
	host, err := idna.Lookup.ToASCII(u.Hostname())
	if err != nil && !isPlain(u.Hostname()) {
		return "", fmt.Errorf("%w: its host is no name", ErrAddress)
	}
	if isPlain(u.Hostname()) {
		host = u.Hostname() // names in use, with _ for one, that the mapping does not know
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if !g.Private {
		if !isPublicName(host) {
			return "", fmt.Errorf("%w: its host is no public name", ErrAddress)
		}
		return host, nil
	}
	a, err := netip.ParseAddr(host)
	switch {
	case err != nil && !isName(host):
		return "", fmt.Errorf("%w: its host is no name", ErrAddress)
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

// isPlain tells whether a text may stand in a request line as it is.
func isPlain(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

// isPublicName tells whether a host is a name that anybody can look up.
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

// isName tells whether a host is a name at all.
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
	return last[0] > '9' // a name that ends in a number is an address: 127.1, 0x7f.1
}
