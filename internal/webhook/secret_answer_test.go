package webhook

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// A receiver may answer with the headers of the request and with its own secret. The
// answer is kept for the integrator and for operators, so it must not contain them.
func TestTheAnswerOfAReceiverIsKeptWithoutItsSecret(t *testing.T) {
	t.Parallel()
	m := newMessage("")
	m.Secrets = append(m.Secrets, NewSecret())
	s := startReceiver(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = fmt.Fprintf(w, "the signature %s is wrong, it needs", r.Header.Get(HeaderSignature))
		for _, secret := range m.Secrets {
			_, _ = fmt.Fprintf(w, " %s or %s", secret.Reveal(), strings.TrimPrefix(secret.Reveal(), "whsec_"))
		}
		_, _ = fmt.Fprint(w, strings.Repeat(".", 700), m.Secrets[0].Reveal()) // where the answer is cut
	})
	m.URL = s.URL
	r := newTestSender(t).Post(t.Context(), m)
	const want = "the signature [redacted] is wrong, it needs [redacted] or [redacted] [redacted] or [redacted]"
	if got, _, _ := strings.Cut(string(r.Answer), "."); got != want {
		t.Errorf("kept %q, want %q", got, want)
	}
	for _, secret := range m.Secrets {
		if strings.Contains(string(r.Answer), secret.Reveal()[6:14]) {
			t.Errorf("the answer has a part of the secret: %q", r.Answer)
		}
	}
}
