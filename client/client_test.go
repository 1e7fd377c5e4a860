package client

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

const (
	testKey  = "fh_s0123456789a_2cPkOWUkrUb4EZzajfasC13e5zNIwyMtKOLBq78h99G2on5oj"
	taxpayer = "01890a5d-ac96-774b-bcce-b302099a8057"
	someID   = "01890a5d-ac96-774b-bcce-b302099a8058"
)

func TestNewRefusesInvalidArguments(t *testing.T) {
	t.Parallel()
	const base = "https://api.example.com"
	tests := []struct {
		name, base, key, taxpayer string
		opts                      []Option
	}{
		{"no scheme", "api.example.com", testKey, taxpayer, nil},
		{"another scheme", "ftp://api.example.com", testKey, taxpayer, nil},
		{"no host", "https://", testKey, taxpayer, nil},
		{"a user", "https://u:p@api.example.com", testKey, taxpayer, nil},
		{"a query", base + "?a=1", testKey, taxpayer, nil},
		{"not a URL", "https://a b", testKey, taxpayer, nil},
		{"no key", base, "", taxpayer, nil},
		{"a key of two lines", base, testKey + "\r\nX: y", taxpayer, nil},
		{"no taxpayer", base, testKey, "", nil},
		{"a path as taxpayer", base, testKey, "../" + taxpayer[3:], nil},
		{"no attempt", base, testKey, taxpayer, []Option{WithAttempts(0)}},
		{"no HTTP client", base, testKey, taxpayer, []Option{WithHTTPClient(nil)}},
		{"a language of two lines", base, testKey, taxpayer, []Option{WithLanguage("es\r\nX: y")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := New(tt.base, tt.key, tt.taxpayer, tt.opts...)
			if err == nil {
				t.Fatal("New returned a client")
			}
			if strings.Contains(err.Error(), testKey) {
				t.Errorf("the error contains the key: %v", err)
			}
		})
	}
}

func TestWithLanguageAsksForMessagesInALanguage(t *testing.T) {
	t.Parallel()
	for language, want := range map[string]string{"": "", "es": "es", "es-DO, en;q=0.5": "es-DO, en;q=0.5"} {
		asked := make(chan string, 1)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked <- r.Header.Get("Accept-Language")
			http.Error(w, "", http.StatusNotFound)
		}))
		t.Cleanup(s.Close)
		c, err := New(s.URL, testKey, taxpayer, WithLanguage(language))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Invoice(testContext(t), someID); err == nil {
			t.Error("a missing invoice was read")
		}
		if got := <-asked; got != want {
			t.Errorf("WithLanguage(%q) sent Accept-Language %q, want %q", language, got, want)
		}
	}
}

func TestNewLeavesTheHTTPClientAlone(t *testing.T) {
	t.Parallel()
	h := &http.Client{Timeout: time.Second}
	c, err := New("https://api.example.com/", testKey, taxpayer, WithHTTPClient(h))
	if err != nil {
		t.Fatal(err)
	}
	if h.CheckRedirect != nil {
		t.Error("the caller's HTTP client was changed")
	}
	if c.http.Timeout != time.Second {
		t.Errorf("the timeout is %v, want that of the caller's", c.http.Timeout)
	}
	if want := "https://api.example.com/v1/taxpayers/" + taxpayer; c.base != want {
		t.Errorf("base = %s, want %s", c.base, want)
	}
}

func TestClientNeverPrintsItsKey(t *testing.T) {
	t.Parallel()
	c, err := New("https://api.example.com", testKey, taxpayer)
	if err != nil {
		t.Fatal(err)
	}
	type holder struct{ c *Client }
	for _, v := range []any{c, *c, holder{c}, &holder{c}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
			text := fmt.Sprintf(verb, v)
			if strings.Contains(text, testKey) || strings.Contains(text, fmt.Sprintf("%x", testKey)) {
				t.Errorf("%s of %T prints the key", verb, v)
			}
		}
	}
}
