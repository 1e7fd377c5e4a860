package main

import (
	"encoding/json"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/systemtest/harness"
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
			s := harness.Serve(t, append(tt.args, "--no-bootstrap", "--data", t.TempDir())...)
			if got := strings.Contains(s.Log.String(), "--base-url"); got != tt.want {
				t.Errorf("a warning: %t, want %t\n%s", got, tt.want, s.Log)
			}
			if regexp.MustCompile(`0\.0\.0\.0|\[::\]`).MatchString(s.Greeting) {
				t.Errorf("the start names all addresses:\n%s", s.Greeting)
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
	must(t, err)
	address := free.Addr().String()
	_ = free.Close()
	s := harness.Serve(t, "--data", t.TempDir(), "--listen", address, "--base-url", "http://"+address+"/facturas/")
	if s.Base != "http://"+address+"/facturas" {
		t.Fatalf("the address is %s:\n%s", s.Base, s.Greeting)
	}
	c := harness.Client{Taxpayer: s.Taxpayer, Key: s.Key, HTTP: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	get := func(url string) harness.Answer {
		t.Helper()
		a, err := c.Send(t.Context(), http.MethodGet, url, "", "Accept", "text/html")
		must(t, err)
		return a
	}
	invoices := "/facturas/v1/taxpayers/" + s.Taxpayer + "/invoices/"
	var locations []string
	for _, base := range []string{s.Base, s.Base, "http://" + address} { // a creation and two replays, the last through a proxy that removes the path
		a, err := c.Create(t.Context(), base, "k", "A-1")
		if err != nil || a.Status != http.StatusAccepted || !strings.HasPrefix(a.Header.Get("Location"), invoices) {
			t.Fatalf("%d at %s, %v", a.Status, a.Header.Get("Location"), err)
		}
		locations = append(locations, a.Header.Get("Location"))
	}
	if locations[0] != locations[1] || locations[0] != locations[2] {
		t.Errorf("Location was %q", locations)
	}
	if a := get("http://" + address + locations[0]); a.Status != http.StatusOK {
		t.Errorf("Location answers %d", a.Status)
	}
	conflict, err := c.Create(t.Context(), s.Base, "other", "A-1")
	if err != nil || conflict.Status != http.StatusConflict || conflict.Header.Get("Location") != locations[0] || !strings.Contains(conflict.Header.Get("Link"), "</facturas/docs#") {
		t.Errorf("a conflict: %d, %v, %v", conflict.Status, conflict.Header, err)
	}
	var documents struct {
		Data []struct {
			Links map[string]string `json:"links"`
		} `json:"data"`
	}
	found := get(s.Base + "/v1/taxpayers/" + s.Taxpayer + "/fiscal-documents?external_id=A-1")
	if err := json.Unmarshal([]byte(found.Body), &documents); err != nil || len(documents.Data) != 1 {
		t.Fatal(found.Body, err)
	}
	for name, link := range documents.Data[0].Links {
		if !strings.HasPrefix(link, s.Base+"/v1/taxpayers/") {
			t.Errorf("the link %s is %s", name, link)
		}
	}
	if a := get(documents.Data[0].Links["self"]); a.Status != http.StatusOK {
		t.Errorf("the link self answers %d", a.Status)
	}
	var description struct {
		Servers []struct{ URL string } `json:"servers"`
	}
	if err := json.Unmarshal([]byte(get(s.Base+"/v1/openapi.json").Body), &description); err != nil || description.Servers[0].URL != "/facturas" {
		t.Errorf("the servers are %v, %v", description.Servers, err)
	}
	if a := get(s.Base + "/docs"); a.Status != http.StatusOK {
		t.Errorf("/docs answers %d", a.Status)
	}
	if a := get(s.Base + "/console/"); a.Header.Get("Location") != "/facturas/console/sign-in" {
		t.Errorf("the console answers %d at %s", a.Status, a.Header.Get("Location"))
	}
	for _, home := range []string{"http://" + address + "/", s.Base, s.Base + "/"} {
		if a := get(home); a.Header.Get("Location") != "/facturas/console/" {
			t.Errorf("%s answers %d at %s", home, a.Status, a.Header.Get("Location"))
		}
	}
	page := get(s.Base + "/console/sign-in")
	addresses := regexp.MustCompile(`(?:href|src|action)="(/[^"]*)"`).FindAllStringSubmatch(page.Body, -1)
	if page.Status != http.StatusOK || len(addresses) < 3 {
		t.Fatalf("the console answers %d with %d addresses", page.Status, len(addresses))
	}
	for _, found := range addresses {
		if !strings.HasPrefix(found[1], "/facturas/") {
			t.Errorf("the console names %s", found[1])
		}
	}
	if a := get("http://" + address + addresses[0][1]); a.Status != http.StatusOK {
		t.Errorf("%s answers %d", addresses[0][1], a.Status)
	}
}
