package receiver

import (
	"encoding/json"
	"net/http"
)

const (
	kindJSON = "application/json; charset=utf-8"
	kindXML  = "application/xml"

	// retryAfter is the header Retry-After of a 503, in seconds.
	retryAfter = "30"
)

// An answer is the HTTP answer to a request.
type answer struct {
	status int
	kind   string
	body   []byte
	allow  string // the header Allow of a 405
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
	_, _ = w.Write(a.body) // a sender that has disconnected retries
}

// encode returns an answer with v as JSON.
func encode(status int, v any) answer {
	body, _ := json.Marshal(v) // v has only strings: it cannot fail
	return answer{status: status, kind: kindJSON, body: body}
}

// refuse returns an error answer with a Spanish text for the sender. The cause is for
// our log.
func refuse(status int, text string, cause error) answer {
	a := encode(status, struct {
		State string `json:"estado"`
		Text  string `json:"mensaje"`
	}{"Error", text})
	a.cause = cause
	return a
}

// unavailable returns an answer after which the sender retries.
func unavailable(cause error) answer {
	return refuse(http.StatusServiceUnavailable, "El servicio no está disponible; intente más tarde.", cause)
}
