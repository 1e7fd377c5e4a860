package receiver

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
)

const (
	// overhead is the greatest size of the parts of a body around the document.
	overhead = 64 << 10
	maxParts = 20
)

var (
	errNoDocument = errors.New("the body contains no document")
	errTooLarge   = errors.New("the document is too large")
)

// upload reads the document of a request: the part named xml of a form, or its only part,
// or the whole body. It ignores the Content-Type of a part, because the authority itself
// sends multipart/form-data or none. It fails when there is no document, or one larger
// than limit.
func upload(w http.ResponseWriter, r *http.Request, limit int) ([]byte, error) {
	body := http.MaxBytesReader(w, r.Body, int64(limit)+overhead)
	// A body with a malformed type or without a boundary is not a form.
	kind, parameters, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if boundary := parameters["boundary"]; strings.HasPrefix(kind, "multipart/") && boundary != "" {
		return filePart(multipart.NewReader(body, boundary), limit)
	}
	return readAll(body, limit)
}

// filePart returns the part named xml, or the only part.
func filePart(form *multipart.Reader, limit int) ([]byte, error) {
	var first []byte
	for n := 0; n < maxParts; n++ {
		part, err := form.NextPart()
		switch {
		case errors.Is(err, io.EOF) && n == 1 && first != nil:
			return first, nil
		case errors.Is(err, io.EOF):
			return nil, errNoDocument
		case err != nil:
			return nil, fmt.Errorf("read the form: %w", err)
		}
		named := strings.EqualFold(part.FormName(), "xml")
		if !named && n > 0 {
			continue
		}
		document, err := readAll(part, limit)
		if named {
			return document, err
		}
		if err == nil {
			first = document
		}
	}
	return nil, errNoDocument
}

// readAll reads a document of at most limit bytes.
func readAll(from io.Reader, limit int) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(from, int64(limit)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the document: %w", err)
	case len(raw) > limit:
		return nil, errTooLarge
	case len(raw) == 0:
		return nil, errNoDocument
	}
	return raw, nil
}
