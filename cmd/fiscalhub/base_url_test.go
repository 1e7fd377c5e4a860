package main

import (
	"encoding/json"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// The service says when its links lead to an address that only this machine reaches, and no
// link has the address 0.0.0.0.
func TestPublicAddressIsMissed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args []string
		want bool // a warning
	}{
		"sandbox":                              {[]string{"--environment", "sandbox", "--listen", "0.0.0.0:0"}, false},
		"certification on loopback":            {[]string{"--environment", "certification"}, false},
		"certification on all addresses":       {[]string{"--environment", "certification", "--listen", "0.0.0.0:0"}, true},
		"certification on all of IPv6":         {[]string{"--environment", "certification", "--listen", "[::]:0"}, true},
		"certification with a public address":  {[]string{"--environment", "certification", "--listen", "0.0.0.0:0", "--base-url", "https://invoices.example"}, false},
		"production on loopback":               {[]string{"--environment", "production"}, true},
		"production with a public address":     {[]string{"--environment", "production", "--base-url", "https://invoices.example/"}, false},
		"a console and a receiver of all":      {[]string{"--environment", "certification", "--console-listen", "0.0.0.0:0", "--receiver-listen", "[::]:0"}, false},
		"production, all addresses, no number": {[]string{"--environment", "production", "--listen", ":0"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, append(tt.args, "--no-bootstrap", "--data", t.TempDir())...)
			if got := strings.Contains(s.log.String(), "--base-url"); got != tt.want {
				t.Errorf("a warning: %t, want %t\n%s", got, tt.want, s.log)
			}
			if regexp.MustCompile(`0\.0\.0\.0|\[::\]`).MatchString(s.greeting) {
				t.Errorf("the start names all addresses:\n%s", s.greeting)
			}
		})
	}
}

func TestPublicAddressesAreChecked(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"https://invoices.example": true, "https://invoices.example/": true, "http://127.0.0.1:8080": true, "https://example.com/invoices": true, "https://example.com/a/b/": true,
		"https://[2001:db8::1]:8443/x": true,
		"":                             false, "invoices.example": false, "ftp://invoices.example": false, "https://": false, "https://:8080": false, "https:///path": false,
		"https://invoices.example?a=b": false, "https://invoices.example/?": false, "https://invoices.example#a": false, "https://invoices.example/#": false,
		"https://ana@invoices.example": false, "https://ana:secret@invoices.example": false, "https://example.com/a//b": false, "https://example.com/a/../b": false,
		"http://0.0.0.0:8080": false, "http://[::]:8080": false,
		"https://example.com/a%20b": true, "https://example.com/a b": false, "https://example.com/facturación": false, `https://example.com/"a`: false,
		"https://example.com/<a>": false, `https://example.com/a\b`: false, "https://example.com/{a}": false, "https://example.com/a%2Fb": false,
		"https://example.com:65535": true, "https://example.com:65536": false, "https://example.com:0": false,
	} {
		if err := checkBaseURL(address); (err == nil) != want {
			t.Errorf("%q: %v", address, err)
		}
		if err := checkConsoleURL(address); (err == nil) != want {
			t.Errorf("%q for the console: %v", address, err)
		}
	}
}

// A path of the public address is in every address that the service gives, and the service
// answers there.
func TestPathOfThePublicAddressIsEverywhere(t *testing.T) {
	t.Parallel()
	free, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	s := serve(t, "--data", t.TempDir(), "--listen", address, "--base-url", "http://"+address+"/facturas/")
	if s.base != "http://"+address+"/facturas" {
		t.Fatalf("the address is %s:\n%s", s.base, s.greeting)
	}
	c := integrator{taxpayer: s.taxpayer, key: s.key, http: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	get := func(url string) answer {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "text/html")
		a, err := c.do(r)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	invoices := "/facturas/v1/taxpayers/" + s.taxpayer + "/invoices/"
	var locations []string
	for _, base := range []string{s.base, s.base, "http://" + address} { // a creation and two replays, the last through a proxy that removes the path
		a, err := c.create(t.Context(), base, "k", "A-1")
		if err != nil || a.status != http.StatusAccepted || !strings.HasPrefix(a.header.Get("Location"), invoices) {
			t.Fatalf("%d at %s, %v", a.status, a.header.Get("Location"), err)
		}
		locations = append(locations, a.header.Get("Location"))
	}
	if locations[0] != locations[1] || locations[0] != locations[2] {
		t.Errorf("Location was %q", locations)
	}
	if a := get("http://" + address + locations[0]); a.status != http.StatusOK {
		t.Errorf("Location answers %d", a.status)
	}
	conflict, err := c.create(t.Context(), s.base, "other", "A-1")
	if err != nil || conflict.status != http.StatusConflict || conflict.header.Get("Location") != locations[0] || !strings.Contains(conflict.header.Get("Link"), "</facturas/docs#") {
		t.Errorf("a conflict: %d, %v, %v", conflict.status, conflict.header, err)
	}
	var documents struct {
		Data []struct {
			Links map[string]string `json:"links"`
		} `json:"data"`
	}
	found := get(s.base + "/v1/taxpayers/" + s.taxpayer + "/fiscal-documents?external_id=A-1")
	if err := json.Unmarshal([]byte(found.body), &documents); err != nil || len(documents.Data) != 1 {
		t.Fatal(found.body, err)
	}
	for name, link := range documents.Data[0].Links {
		if !strings.HasPrefix(link, s.base+"/v1/taxpayers/") {
			t.Errorf("the link %s is %s", name, link)
		}
	}
	if a := get(documents.Data[0].Links["self"]); a.status != http.StatusOK {
		t.Errorf("the link self answers %d", a.status)
	}
	var description struct {
		Servers []struct{ URL string } `json:"servers"`
	}
	if err := json.Unmarshal([]byte(get(s.base+"/v1/openapi.json").body), &description); err != nil || description.Servers[0].URL != "/facturas" {
		t.Errorf("the servers are %v, %v", description.Servers, err)
	}
	if a := get(s.base + "/docs"); a.status != http.StatusOK {
		t.Errorf("/docs answers %d", a.status)
	}
	if a := get(s.base + "/console/"); a.header.Get("Location") != "/facturas/console/sign-in" {
		t.Errorf("the console answers %d at %s", a.status, a.header.Get("Location"))
	}
	for _, home := range []string{"http://" + address + "/", s.base, s.base + "/"} {
		if a := get(home); a.header.Get("Location") != "/facturas/console/" {
			t.Errorf("%s answers %d at %s", home, a.status, a.header.Get("Location"))
		}
	}
	page := get(s.base + "/console/sign-in")
	addresses := regexp.MustCompile(`(?:href|src|action)="(/[^"]*)"`).FindAllStringSubmatch(page.body, -1)
	if page.status != http.StatusOK || len(addresses) < 3 {
		t.Fatalf("the console answers %d with %d addresses", page.status, len(addresses))
	}
	for _, found := range addresses {
		if !strings.HasPrefix(found[1], "/facturas/") {
			t.Errorf("the console names %s", found[1])
		}
	}
	if a := get("http://" + address + addresses[0][1]); a.status != http.StatusOK {
		t.Errorf("%s answers %d", addresses[0][1], a.status)
	}
}
