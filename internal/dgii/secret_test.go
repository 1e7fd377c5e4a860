package dgii

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// A server that answers with our token, or with the seed that we signed, does not bring
// them into our errors and stored answers.
func TestATokenIsNotQuoted(t *testing.T) {
	t.Parallel()
	write := func(format string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprintf(w, format, r.Header.Get("Authorization"))
		}
	}
	// raw answers with bytes that are not HTTP, which net/http quotes in its errors.
	raw := func(format string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			_, _ = fmt.Fprintf(conn, format, r.Header.Get("Authorization"))
			_ = conn.Close()
		}
	}
	for name, handler := range map[string]http.HandlerFunc{
		"in a message":             write(`{"mensaje": "%s"}`),
		"in a member":              write(`{"trackId": "%s", "estado": "Aceptado", "codigo": 1}`),
		"in a text":                write(`%s`),
		"in place of an answer":    raw("%s\r\n\r\n"),
		"in a status line":         raw("HTTP/1.1 %s\r\n\r\n"),
		"in a header":              raw("HTTP/1.1 200 OK\r\n%s\r\n\r\n"),
		"in a content length":      raw("HTTP/1.1 200 OK\r\nContent-Length: %s\r\n\r\n"),
		"in an unknown encoding":   raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: %s\r\n\r\n"),
		"beyond what is read":      write(strings.Repeat("x", maxAnswerResponse-20) + "%s"),
		"in an answer that is cut": raw("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"mensaje\": \"%s"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newEnv(t, handler)
			c, id := s.client(t), signer(t)
			got, err := c.Submit(testContext(t), id, shipment())
			if text := fmt.Sprintf("%+v %s", got, got.Raw); strings.Contains(text, "secret-t") {
				t.Errorf("the answer contains the token: %.200s", text)
			}
			if err != nil && strings.Contains(err.Error(), "secret-t") {
				t.Errorf("the error contains the token: %.200s", err.Error())
			}
			for inner := err; inner != nil; inner = errors.Unwrap(inner) {
				if strings.Contains(inner.Error(), "secret-t") {
					t.Errorf("an inner error contains the token: %.200s", inner.Error())
				}
			}
		})
	}
	t.Run("a seed in place of an answer", func(t *testing.T) {
		t.Parallel()
		s := newEnv(t, write("%s"))
		s.answerTokens(raw("<valor>" + seedValue + "</valor>%s\r\n\r\n"))
		_, err := s.client(t).Submit(testContext(t), signer(t), shipment())
		wantError(t, err, fiscal.ErrNotReceived)
	})
}
