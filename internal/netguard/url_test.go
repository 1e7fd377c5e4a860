package netguard

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

// refusedHosts lists notations of loopback and of the metadata service of cloud
// providers, names that are not public, and malformed names.
var refusedHosts = []string{
	"127.0.0.1", "127.0.0.1.", "127.1", "127.0.1", "127.0.0.1:443", // dotted, and short
	"2130706433", "2130706433.", "0x7f000001", "0X7F.0.0.1", "0x7f.1", "017700000001", "0177.0.0.1", "0177.1", "127.0.0.0x1", // decimal, hexadecimal, octal
	"169.254.169.254", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "8.8.8.8", "1", "0",
	"[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[fe80::1%25eth0]", "[2606:4700::1111]", "[127.0.0.1]", "::1", "[::1]:443",
	"127.0.0.1%2e", "%31%32%37.0.0.1", "127%2e0%2e0%2e1", "a.example.com%00", "a%2eexample.com", "%6c%6f%63%61%6c%68%6f%73%74",
	"１２７.0.0.1", "127。0。0。1", "127．0．0．1", "⑫７.0.0.1", "%ef%bc%91%ef%bc%92%ef%bc%97.0.0.1",
	"a.127", "a.0x7f", "a.example.0",
	"localhost", "localhost.", "LOCALHOST", "intranet", "a.local", "a.internal.", "metadata.google.internal", "x.localhost", "1.0.0.127.in-addr.arpa", "home.arpa", "a.LOCAL",
	"", ".", "..", "a..example.com", ".example.com", "a.example.com..", "a example.com", "a.example.com\\", "a,b.example.com", "a.example.com:8443", "a.example.com:80", "a.example.com:0443", "a.example.com:443:443",
	strings.Repeat("a", 64) + ".example.com", strings.Repeat("a.", 127) + "example",
}

func TestURLRefusesNumbersAndPrivateNames(t *testing.T) {
	t.Parallel()
	for _, host := range refusedHosts {
		if u, err := (Guard{}).URLWithQuery("https://" + host + "/a"); !errors.Is(err, ErrAddress) {
			t.Errorf("%q is %v", host, u)
		}
	}
}

func TestURLRefusesMalformedAddresses(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"", "http://a.example.com", "ftp://a.example.com", "gopher://a.example.com", "file:///etc/passwd", "javascript:alert(1)", "//a.example.com", "a.example.com",
		"https:a.example.com", "https:/a.example.com", "https:///a", "https://u:p@a.example.com", "https://u@a.example.com", "https://@a.example.com", "https://a.example.com@127.0.0.1/",
		"https://127.0.0.1\\@a.example.com/", "https://a.example.com/#x", "https://a.example.com/#", "https://a.example.com#@b.example.com/",
		"https://a.example.com/\r\nX: y", "https://a.example.com/\x00", "https://a.example.com/?a b", "https://a.example.com/?ñ", "https://a.example.com/?a\tb",
		"https://a.example.com/" + strings.Repeat("a", MaxURL), "https://a.example.com/" + strings.Repeat("ñ", 900), "https://" + string(make([]byte, 3000)),
	} {
		if u, err := (Guard{}).URLWithQuery(s); !errors.Is(err, ErrAddress) {
			t.Errorf("%q is %v", s, u)
		} else if len(err.Error()) > 100 {
			t.Errorf("%q is repeated in the error %q", s, err)
		}
	}
	for _, s := range []string{"https://a.example.com/?x=1", "https://a.example.com?x=1", "https://a.example.com/?"} {
		if u, err := (Guard{}).URL(s); !errors.Is(err, ErrAddress) {
			t.Errorf("%q is %v", s, u)
		}
		if _, err := (Guard{}).URLWithQuery(s); err != nil {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func TestURLNormalizesTheHost(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"https://A.example.com":             "https://a.example.com",
		"HTTPS://a.example.com:443/b/c":     "https://a.example.com/b/c",
		"https://a.example.com:/b":          "https://a.example.com/b",
		" https://a.example.com./ ":         "https://a.example.com/",
		"https://xn--a-0ga.example.com":     "https://xn--a-0ga.example.com",
		"https://Facturación.example.do/x":  "https://xn--facturacin-obb.example.do/x",
		"https://ｅxample。com/a":             "https://example.com/a",
		"https://1.2.3.4.example.com/x%2Fy": "https://1.2.3.4.example.com/x%2Fy",
		"https://0x7f.example.com/":         "https://0x7f.example.com/",
	} {
		u, err := (Guard{}).URL(s)
		if err != nil || u.String() != want {
			t.Errorf("%q is %v: %v", s, u, err)
		}
	}
}

func TestPrivateAllowsLocalAddresses(t *testing.T) {
	t.Parallel()
	g := Guard{Private: true}
	for s, want := range map[string]string{
		"http://127.0.0.1:8080/a?b=c":   "http://127.0.0.1:8080/a?b=c",
		"http://localhost:3000/":        "http://localhost:3000/",
		"http://receiver/":              "http://receiver/",
		"https://[::1]:8443/":           "https://[::1]:8443/",
		"https://10.0.0.1/":             "https://10.0.0.1/",
		"https://a.example.com:443/":    "https://a.example.com:443/",
		"http://hooks.dev.internal./a/": "http://hooks.dev.internal/a/",
	} {
		u, err := g.URLWithQuery(s)
		if err != nil || u.String() != want {
			t.Errorf("%q is %v: %v", s, u, err)
		}
	}
	for _, s := range []string{
		"ftp://127.0.0.1/", "http://169.254.169.254/", "http://0.0.0.0/", "http://2130706433/", "http://0x7f.1/", "http://[fe80::1%25eth0]/",
		"http://u:p@127.0.0.1/", "http://127.0.0.1/#x", "http:///a", "http://:80/", "http://a b/",
	} {
		if u, err := g.URLWithQuery(s); !errors.Is(err, ErrAddress) {
			t.Errorf("%q is %v", s, u)
		}
	}
}

// FuzzURL checks that every accepted URL is normalized and is read in the same way by
// other parsers.
func FuzzURL(f *testing.F) {
	for _, host := range refusedHosts {
		f.Add("https://" + host + "/a")
	}
	for _, s := range []string{
		"https://a.example.com", "https://a.example.com:443/b?c=d", "https://a.example.com./?", "HTTPS://A.EXAMPLE.COM/ñ/../%2e", "https://u@a.example.com/#x",
		"https://a.example.com//b\\c", "https://a.example.com/%zz", "http://a.example.com", "https://xn--a-0ga.example.com/;a=b",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := (Guard{}).URLWithQuery(raw)
		if err != nil {
			if u != nil || !errors.Is(err, ErrAddress) {
				t.Fatalf("%q is %v and %v", raw, u, err)
			}
			return
		}
		text := u.String()
		again, err := url.Parse(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		host := again.Host
		labels := strings.Split(host, ".")
		last := labels[len(labels)-1]
		_, notIP := netip.ParseAddr(host)
		switch {
		case again.Scheme != "https" || again.User != nil || again.Fragment != "" || strings.Contains(text, "#"):
			t.Fatalf("%q is accepted as %q", raw, text)
		case again.Port() != "" || again.Hostname() != host || len(labels) < 2 || strings.HasSuffix(host, "."):
			t.Fatalf("%q is accepted with the host %q", raw, host)
		case notIP == nil || strings.ContainsAny(host, "[]:%@\\/ ") || host != strings.ToLower(host) || last == "" || last[0] >= '0' && last[0] <= '9':
			t.Fatalf("%q is accepted with the host %q", raw, host)
		case last == "local" || last == "internal" || last == "localhost" || last == "arpa":
			t.Fatalf("%q is accepted with the host %q", raw, host)
		case len(raw) > MaxURL || len(text) > MaxURL:
			t.Fatalf("%d bytes are accepted", len(text))
		}
		for i := range len(text) {
			if text[i] <= ' ' || text[i] > '~' {
				t.Fatalf("%q is accepted as %q", raw, text)
			}
		}
		if once, err := (Guard{}).URLWithQuery(text); err != nil || once.String() != text {
			t.Fatalf("%q is %q, and that is %v: %v", raw, text, once, err)
		}
		if _, err := (Guard{}).URL(raw); (err == nil) != !strings.Contains(text, "?") {
			t.Fatalf("%q as an address without a query: %v", text, err)
		}
	})
}
