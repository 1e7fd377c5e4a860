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
	// overhead is what a body may have around its document.
	overhead = 64 << 10
	maxParts = 20
)

var (
	errNoDocument = errors.New("there is no document in the body")
	errTooLarge   = errors.New("the document is too large")
)

// upload reads the document of a request: the part named xml of a form, or its
// only part, or the body itself. What a part says of its type says nothing: the
// authority's own says multipart/form-data, or nothing at all.
func upload(w http.ResponseWriter, r *http.Request, limit int) ([]byte, error) {
	body := http.MaxBytesReader(w, r.Body, int64(limit)+overhead)
	// A type that cannot be read, or a form that does not tell its parts apart, is
	// then no form.
	kind, parameters, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if boundary := parameters["boundary"]; strings.HasPrefix(kind, "multipart/") && boundary != "" {
		return filePart(multipart.NewReader(body, boundary), limit)
	}
	return readAll(body, limit)
}

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
			return nil, fmt.Errorf("the form cannot be read: %w", err)
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

func readAll(from io.Reader, limit int) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(from, int64(limit)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the document cannot be read: %w", err)
	case len(raw) > limit:
		return nil, errTooLarge
	case len(raw) == 0:
		return nil, errNoDocument
	}
	return raw, nil
}
