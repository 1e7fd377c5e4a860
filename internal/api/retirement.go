package api

import (
	"fmt"
	"net/http"
	"time"
)

// retirement announces the end of an operation on each of its answers, a year
// or more ahead (RFC 9745, RFC 8594).
type retirement struct {
	deprecated time.Time // since when it should not be used
	sunset     time.Time // when it ends
	page       string    // what to read about it
	successor  string    // what to use instead
}

// announce sets the headers; ended tells that the day has come.
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
