package api

import (
	"fmt"
	"net/http"
	"time"
)

// retirement announces the end of an operation on each of its answers, a year
// or more ahead (RFC 9745, RFC 8594).
type retirement struct {
	deprecated time.Time // from then on clients should not use it
	sunset     time.Time // from then on it is not served
	page       string    // address of a page that explains the change
	successor  string    // address of the operation to use instead
}

// announce sets the headers. It returns true from the sunset on. A nil
// retirement announces nothing.
func (r *retirement) announce(h http.Header, now time.Time) (ended bool) {
	if r == nil {
		return false
	}
	h.Set("Deprecation", fmt.Sprintf("@%d", r.deprecated.Unix()))
	h.Set("Sunset", r.sunset.UTC().Format(http.TimeFormat))
	h.Add("Link", "<"+r.page+`>; rel="deprecation"`)
	h.Add("Link", "<"+r.page+`>; rel="sunset"`)
	h.Add("Link", "<"+r.successor+`>; rel="successor-version"`)
	return !now.Before(r.sunset)
}
