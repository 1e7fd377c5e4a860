package api

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// securityPath is where a person who has found a vulnerability learns whom to tell (RFC 9116).
const securityPath = "/.well-known/security.txt"

// securityLifetime is how far in the future security.txt expires. RFC 9116 recommends less
// than a year. A service that runs renews the date by itself.
const securityLifetime = 180 * 24 * time.Hour

// serveSecurity answers with the contacts of the operator.
func (a *API) serveSecurity(w http.ResponseWriter, _ *http.Request) {
	var text strings.Builder
	for _, contact := range a.o.SecurityContacts {
		_, _ = fmt.Fprintf(&text, "Contact: %s\n", contact) // a Builder returns no error
	}
	expires := a.o.Now().UTC().Add(securityLifetime).Truncate(24 * time.Hour)
	_, _ = fmt.Fprintf(&text, "Expires: %s\nPreferred-Languages: es, en\n", expires.Format(time.RFC3339))
	if strings.HasPrefix(a.o.BaseURL, "https://") { // RFC 9116 §2.5.2 wants https
		_, _ = fmt.Fprintf(&text, "Canonical: %s%s\n", a.o.BaseURL, securityPath)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "max-age=86400")
	_, _ = w.Write([]byte(text.String())) // if it fails the client has left
}
