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
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

// maxBody is the size in bytes of the largest JSON body of an integrator.
const maxBody = 1 << 20

// maxKey is the length in bytes of the longest idempotency key.
const maxKey = 200

// creationKey checks that a creation has no query parameters, and returns its
// idempotency key.
func creationKey(x *exchange) (string, error) {
	if _, err := readQuery(x.r); err != nil {
		return "", err
	}
	key, err := idempotencyKey(x.r.Header)
	if err != nil {
		return "", err
	}
	x.keyDigest = shortDigest(key)
	return key, nil
}

// idempotencyKey reads the header Idempotency-Key: one line of printable ASCII.
func idempotencyKey(h http.Header) (string, error) {
	refuse := func(code, message string) (string, error) {
		return "", badRequest("Idempotency-Key: "+message,
			fiscal.Problem{Field: "Idempotency-Key", Code: code, Message: message})
	}
	lines := h.Values("Idempotency-Key")
	if len(lines) > 1 {
		return refuse(fiscal.CodeDuplicated, "send the header only once")
	}
	if len(lines) == 0 || strings.Trim(lines[0], " \t") == "" {
		return refuse(fiscal.CodeRequired, "is required; send a key of 1 to 200 characters, a new one for each creation")
	}
	key := strings.Trim(lines[0], " \t")
	if len(key) > maxKey {
		return refuse(fiscal.CodeTooLong, "must have at most 200 characters")
	}
	for _, c := range []byte(key) {
		if c < 0x20 || c > 0x7e {
			return refuse(fiscal.CodeInvalidCharacters, onlyPrintableASCII)
		}
	}
	return key, nil
}

const onlyPrintableASCII = "must have only printable ASCII characters"

// readJSON reads and parses a body of the media type application/json. It
// returns the bytes as they were sent, too.
func readJSON(r *http.Request) (raw []byte, document *strictjson.Document, err error) {
	if raw, err = readJSONBytes(r); err != nil {
		return nil, nil, err
	}
	document, err = strictjson.Parse(raw)
	return raw, document, err
}

// readJSONBytes reads a body of the media type application/json. It does not
// parse it.
func readJSONBytes(r *http.Request) ([]byte, error) {
	if err := checkMediaType(r.Header); err != nil {
		return nil, err
	}
	return readBody(r, maxBody)
}

// readBody reads a body of at most limit bytes.
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
		return nil, badRequest("the body is incomplete: reading it failed before its end")
	}
	return b.Bytes(), nil
}

// checkMediaType accepts only application/json in UTF-8 without compression.
func checkMediaType(h http.Header) error {
	lines := h.Values("Content-Type")
	if len(lines) != 1 {
		return unsupportedMedia("send one header Content-Type: application/json")
	}
	kind, params, err := mime.ParseMediaType(lines[0])
	if err != nil || kind != "application/json" {
		return unsupportedMedia("send Content-Type: application/json")
	}
	for name, value := range params {
		if name == "charset" && !strings.EqualFold(value, "utf-8") {
			return unsupportedMedia("the charset of Content-Type must be utf-8")
		}
	}
	for _, coding := range h.Values("Content-Encoding") {
		if !strings.EqualFold(strings.TrimSpace(coding), "identity") {
			e := unsupportedMedia("send the body without compression and without Content-Encoding")
			e.headers = map[string]string{"Accept-Encoding": "identity"}
			return e
		}
	}
	return nil
}
