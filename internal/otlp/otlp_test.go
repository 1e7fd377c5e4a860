package otlp

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/trace"
)

// The wait says when spans are sent again: never when it is negative.
func TestSendSaysWhenToSendAgain(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		status int
		header string // Retry-After
		wait   time.Duration
		fails  bool
	}{
		{http.StatusOK, "", 0, false},
		{http.StatusNoContent, "", 0, false},
		{http.StatusTooManyRequests, "7", 7 * time.Second, true},
		{http.StatusServiceUnavailable, "soon", 0, true},
		{http.StatusBadRequest, "7", -1, true},
		{http.StatusTemporaryRedirect, "", -1, true},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "secret" || r.Method != http.MethodPost {
				t.Errorf("%s with the header %q", r.Method, r.Header.Get("Authorization"))
			}
			w.Header().Set("Retry-After", test.header)
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(test.status)
		}))
		s := New(trace.Target{URL: server.URL, Header: map[string]string{"Authorization": "secret"}, Timeout: time.Minute}, server.Client())
		wait, err := s.Send(t.Context(), []byte("spans"))
		if wait != test.wait || (err != nil) != test.fails {
			t.Errorf("%d: %s, %v; want %s", test.status, wait, err, test.wait)
		}
		server.Close()
	}
}

func TestErrorsDoNotQuoteTheAddress(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	for _, address := range []string{server.URL + "/token-1", "http://token-1\x7f"} {
		_, err := New(trace.Target{URL: address, Timeout: time.Minute}, &http.Client{Transport: &http.Transport{}}).Send(t.Context(), nil)
		if err == nil || strings.Contains(err.Error(), "token-1") {
			t.Errorf("the error: %v", err)
		}
	}
}
