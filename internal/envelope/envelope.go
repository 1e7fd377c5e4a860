// Package envelope encodes the body of a successful answer of the API. It lies below the
// packages that store an answer together with what the request created, so that they
// render the answer themselves.
package envelope

import "github.com/fiscalhub/fiscalhub/internal/strictjson"

// Meta is the `meta` member of an answer about one object.
type Meta struct {
	RequestID string `json:"request_id"`
}

// Encode returns the body of a successful answer: `data` and `meta`.
func Encode(data, meta any) ([]byte, error) {
	return strictjson.Encode(struct {
		Data any `json:"data"`
		Meta any `json:"meta"`
	}{data, meta})
}

// NullIfEmpty returns nil for an empty text, which JSON shows as null.
func NullIfEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
