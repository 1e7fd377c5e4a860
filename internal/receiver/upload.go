package receiver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/capacity"
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
// sends multipart/form-data or none. It fails when there is no document, when it is larger
// than limit, and with a *capacity.FullError when the service is busy.
//
// The request holds no slot while its body arrives. It takes one afterwards.
func (rc *Receiver) upload(x *exchange, limit int) ([]byte, error) {
	sender, ctx := capacity.Holder{Address: rc.o.Clients.Address(x.r)}, x.r.Context()
	var err error
	if x.held.Body, err = rc.o.Capacity.ReadBody(x.w, x.r, sender, int64(limit)+overhead); err != nil {
		return nil, err
	}
	if x.held.Large, err = rc.o.Capacity.TakeLargeSlot(ctx, sender, len(x.held.Body.Bytes)); err != nil {
		return nil, err
	}
	if x.held.Slot, err = rc.o.Capacity.TakeSlot(ctx, sender); err != nil {
		return nil, err
	}
	body := bytes.NewReader(x.held.Body.Bytes)
	// A body with a malformed type or without a boundary is not a form.
	kind, parameters, _ := mime.ParseMediaType(x.r.Header.Get("Content-Type"))
	if boundary := parameters["boundary"]; strings.HasPrefix(kind, "multipart/") && boundary != "" {
		return filePart(multipart.NewReader(body, boundary), body.Len(), limit)
	}
	return check(x.held.Body.Bytes, limit)
}

// refuseUpload returns the answer to a request whose document cannot be read.
func refuseUpload(text string, err error) answer {
	if full := (*capacity.FullError)(nil); errors.As(err, &full) {
		return unavailable(err)
	}
	return refuse(http.StatusBadRequest, text, err)
}

// filePart returns the part named xml, or the only part, of a form of a size.
func filePart(form *multipart.Reader, size, limit int) ([]byte, error) {
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
		document, err := readAll(part, size, limit)
		if named {
			return document, err
		}
		if err == nil {
			first = document
		}
	}
	return nil, errNoDocument
}

// readAll reads a document of at most limit bytes, which is part of a form of a size.
func readAll(from io.Reader, size, limit int) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(min(size, limit) + bytes.MinRead)
	if _, err := b.ReadFrom(io.LimitReader(from, int64(limit)+1)); err != nil {
		return nil, fmt.Errorf("read the document: %w", err)
	}
	return check(b.Bytes(), limit)
}

// check returns a document, or an error when it is empty or larger than limit.
func check(raw []byte, limit int) ([]byte, error) {
	switch {
	case len(raw) > limit:
		return nil, errTooLarge
	case len(raw) == 0:
		return nil, errNoDocument
	}
	return raw, nil
}
