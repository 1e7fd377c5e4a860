package receiver

import (
	"encoding/json"
	"net/http"
)

const (
	kindJSON = "application/json; charset=utf-8"
	kindXML  = "application/xml"

	// retryAfter is when somebody who cannot be answered now should come back, in
	// seconds.
	retryAfter = "30"
)

// An answer is what a request gets.
type answer struct {
	status int
	kind   string
	body   []byte
	allow  string // of a 405
	cause  error  // for the log
}

func (a answer) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if a.allow != "" {
		h.Set("Allow", a.allow)
	}
	if a.status == http.StatusServiceUnavailable {
		h.Set("Retry-After", retryAfter)
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // whoever is gone asks again
}

func encode(status int, v any) answer {
	body, _ := json.Marshal(v) // text alone
	return answer{status: status, kind: kindJSON, body: body}
}

// refuse says what is wrong in the language of those who read it.
func refuse(status int, text string, cause error) answer {
	a := encode(status, struct {
		State string `json:"estado"`
		Text  string `json:"mensaje"`
	}{"Error", text})
	a.cause = cause
	return a
}

// later has the sender try again.
func later(cause error) answer {
	return refuse(http.StatusServiceUnavailable, "El servicio no está disponible; intente más tarde.", cause)
}
