package api

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// maxBody is the largest body of a creation.
const maxBody = 1 << 20

// maxKey is the longest idempotency key.
const maxKey = 200

// idempotencyKey reads the key of a creation: one line of printable ASCII.
func idempotencyKey(h http.Header) (string, error) {
	refuse := func(code, message string) (string, error) {
		return "", badRequest("Idempotency-Key: "+message,
			fiscal.Problem{Field: "Idempotency-Key", Code: code, Message: message})
	}
	lines := h.Values("Idempotency-Key")
	if len(lines) > 1 {
		return refuse(fiscal.CodeDuplicated, "send the header once")
	}
	if len(lines) == 0 || strings.Trim(lines[0], " \t") == "" {
		return refuse(fiscal.CodeRequired, "a key of 1 to 200 characters, unique for each creation, is required")
	}
	key := strings.Trim(lines[0], " \t")
	if len(key) > maxKey {
		return refuse(fiscal.CodeTooLong, "at most 200 characters")
	}
	for _, c := range []byte(key) {
		if c < 0x20 || c > 0x7e {
			return refuse(fiscal.CodeInvalidCharacters, "only printable ASCII characters")
		}
	}
	return key, nil
}

// readJSON reads a body that says it is plain JSON in UTF-8.
func readJSON(r *http.Request) ([]byte, error) {
	if err := mediaType(r.Header); err != nil {
		return nil, err
	}
	return readBody(r, maxBody)
}

// readBody reads a body of at most so many bytes.
func readBody(r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	var b bytes.Buffer
	if r.ContentLength > 0 {
		b.Grow(int(r.ContentLength) + bytes.MinRead)
	}
	n, err := b.ReadFrom(io.LimitReader(r.Body, limit+1))
	var network net.Error
	switch {
	case n > limit:
		return nil, tooLarge(limit)
	case errors.Is(err, os.ErrDeadlineExceeded) || (errors.As(err, &network) && network.Timeout()):
		return nil, tooSlow()
	case err != nil:
		return nil, badRequest("the body could not be read to its end")
	}
	return b.Bytes(), nil
}

// mediaType accepts application/json, in UTF-8, as it is.
func mediaType(h http.Header) error {
	lines := h.Values("Content-Type")
	if len(lines) != 1 {
		return unsupportedMedia("send Content-Type: application/json")
	}
	kind, params, err := mime.ParseMediaType(lines[0])
	if err != nil || kind != "application/json" {
		return unsupportedMedia("send Content-Type: application/json")
	}
	for name, value := range params {
		if name == "charset" && !strings.EqualFold(value, "utf-8") {
			return unsupportedMedia("the charset of JSON is UTF-8")
		}
	}
	for _, coding := range h.Values("Content-Encoding") {
		if !strings.EqualFold(strings.TrimSpace(coding), "identity") {
			f := unsupportedMedia("send the body without a Content-Encoding")
			f.headers = map[string]string{"Accept-Encoding": "identity"}
			return f
		}
	}
	return nil
}
