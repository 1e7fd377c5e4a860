package dgii

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/textproto"
	"sync"
)

// An upload is the body of a submission. It knows whether any of its bytes can
// have been sent.
//
// net/http cannot rewind it, so net/http never sends it a second time. As it is
// none of the readers that net/http knows, net/http also writes the header before
// it reads the body: the bytes that the connection writes after the first Read are
// bytes of the body.
type upload struct {
	mu            sync.Mutex
	rest          []byte
	started       bool
	cancelled     bool
	conn          *countingConn
	writtenBefore int64 // bytes that the connection had written before the body

	size        int64
	contentType string
}

var errUploadCancelled = errors.New("the upload was cancelled")

// newUpload puts a document into the form that the authority reads: one part named
// xml. The authority checks the file name.
func newUpload(name string, document []byte) (*upload, error) {
	var buf bytes.Buffer
	buf.Grow(len(document) + 512)
	w := multipart.NewWriter(&buf)
	part, err := w.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {fmt.Sprintf(`form-data; name="xml"; filename="%s"`, name)},
		"Content-Type":        {"text/xml"},
	})
	if err != nil {
		return nil, err
	}
	if _, err := part.Write(document); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return &upload{rest: buf.Bytes(), size: int64(buf.Len()), contentType: w.FormDataContentType()}, nil
}

func (u *upload) Read(p []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.cancelled {
		return 0, errUploadCancelled
	}
	if !u.started && u.conn != nil {
		u.writtenBefore = u.conn.written.Load()
	}
	u.started = true
	if len(u.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, u.rest)
	u.rest = u.rest[n:]
	return n, nil
}

// Close does nothing. net/http closes every body.
func (u *upload) Close() error { return nil }

// setConn sets the connection that sends the upload.
func (u *upload) setConn(conn *countingConn) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.conn = conn
}

// cancel ends the upload and reports whether no byte of it can have been sent.
func (u *upload) cancel() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.cancelled = true
	return !u.started || u.conn != nil && u.conn.stopWrites(u.writtenBefore)
}
