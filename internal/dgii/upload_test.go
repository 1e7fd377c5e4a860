package dgii

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// The authority accepts an upload only with a length, one part and the right file
// name.
func TestUploadHasTheFormTheAuthorityReads(t *testing.T) {
	t.Parallel()
	s := newEnv(t, func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength <= 0 || len(r.TransferEncoding) > 0 || r.Proto != "HTTP/1.1" {
			t.Errorf("length %d, encoding %v, %s", r.ContentLength, r.TransferEncoding, r.Proto)
		}
		for _, name := range []string{"Expect", "Idempotency-Key", "X-Idempotency-Key"} {
			if r.Header.Get(name) != "" {
				t.Errorf("header %s", name)
			}
		}
		if got := r.Header.Get("Accept"); got != "application/json" {
			t.Errorf("Accept %q", got)
		}
		if want := "/ecf-host/testecf/recepcion/api/facturaselectronicas"; r.URL.Path != want {
			t.Errorf("path %s, want %s", r.URL.Path, want)
		}
		parts, err := r.MultipartReader()
		if err != nil {
			t.Error(err)
			return
		}
		part, err := parts.NextPart()
		if err != nil {
			t.Error(err)
			return
		}
		body, _ := io.ReadAll(part)
		if part.FormName() != "xml" || part.FileName() != "131256432E310000000058.xml" || part.Header.Get("Content-Type") != "text/xml" {
			t.Errorf("part %v", part.Header)
		}
		if string(body) != string(shipment().XML) {
			t.Errorf("document %q", body)
		}
		if _, err := parts.NextPart(); !errors.Is(err, io.EOF) {
			t.Errorf("a second part: %v", err)
		}
		_, _ = io.WriteString(w, `{"trackId":"t"}`)
	})
	if _, err := s.client(t).Submit(testContext(t), signer(t), shipment()); err != nil {
		t.Fatal(err)
	}
	bad := shipment()
	bad.RNC = `1"; x="`
	_, err := s.client(t).Submit(testContext(t), signer(t), bad)
	wantError(t, err, fiscal.ErrNotReceived)
}

// A failingConn accepts a header and then a part of the body, or nothing of it.
type failingConn struct {
	net.Conn
	writes, accepts int
}

func (d *failingConn) Write(b []byte) (int, error) {
	if d.writes++; d.writes == 1 {
		return len(b), nil
	}
	return min(d.accepts, len(b)), syscall.ECONNRESET
}

// The body counts as not sent when the connection accepted no byte of it, although
// net/http has read it.
func TestUploadKnowsWhetherBytesWereSent(t *testing.T) {
	t.Parallel()
	s := newEnv(t, answer(200, ""))
	c := s.client(t)
	for accepts, notSent := range map[int]bool{0: true, 1: false} {
		here, there := net.Pipe()
		t.Cleanup(func() { _ = there.Close() })
		tr := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			return &countingConn{Conn: &failingConn{Conn: here, accepts: accepts}}, nil
		}}
		body, err := newUpload("x.xml", bytes.Repeat([]byte("x"), 64<<10))
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.exchange(testContext(t), request{transport: tr, url: "http://x.example/", upload: body, maxResponse: 1, timeout: time.Second})
		l, ok := errors.AsType[*noResponseError](err)
		if !ok || l.notSent != notSent {
			t.Errorf("%d bytes accepted: %v", accepts, err)
		}
		if !body.started {
			t.Error("net/http did not read the body: the test shows nothing")
		}
	}
}
