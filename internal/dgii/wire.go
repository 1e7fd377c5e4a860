package dgii

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// transport makes connections. HTTP/2 stays off: there many calls share a
// connection, so that nobody can tell which of them had bytes on the wire, and
// the library repeats by itself what a server has turned away. There is no
// proxy from the environment: it would see the address that the guard should.
func (c *Client) transport(o Options, control func(string, string, syscall.RawConn) error) *http.Transport {
	dialer := &net.Dialer{Timeout: c.timeouts.Connect, Control: control}
	t := &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &wireConn{Conn: conn}, nil
		},
		TLSHandshakeTimeout:    c.timeouts.TLS,
		ResponseHeaderTimeout:  c.timeouts.FirstByte,
		MaxIdleConnsPerHost:    max(8, o.MaxInFlight),
		IdleConnTimeout:        30 * time.Second, // before the other side thinks of it
		MaxResponseHeaderBytes: 16 << 10,
		DisableCompression:     true, // limits are of what comes over the wire
		Protocols:              new(http.Protocols),
	}
	t.Protocols.SetHTTP1(true)
	if o.TLS != nil {
		t.TLSClientConfig = o.TLS.Clone()
		t.TLSClientConfig.MinVersion = max(t.TLSClientConfig.MinVersion, minTLS)
	}
	return t
}

// A wireConn is a connection that knows whether anything was handed to the
// network.
type wireConn struct {
	net.Conn
	writing atomic.Int64 // writes under way
	written atomic.Int64 // bytes that the network took
	dead    atomic.Bool
}

func (w *wireConn) Write(b []byte) (int, error) {
	w.writing.Add(1)
	defer w.writing.Add(-1)
	if w.dead.Load() {
		return 0, net.ErrClosed
	}
	n, err := w.Conn.Write(b)
	w.written.Add(int64(n))
	return n, err
}

// silent stops all writing and tells whether none happened since a mark.
func (w *wireConn) silent(mark int64) bool {
	w.dead.Store(true)
	return w.writing.Load() == 0 && w.written.Load() == mark
}

// An upload is the body of a submission. It is no type that the HTTP library
// can rewind, so that the library never repeats it by itself.
//
// Because it is none of the library's own readers either, the library writes the
// header out before it reads the body: what the connection takes from the first
// read on is the body.
type upload struct {
	mu     sync.Mutex
	left   []byte
	begun  bool
	sealed bool
	conn   *wireConn
	mark   int64 // what the connection had taken before the body

	size        int64
	contentType string
}

var errSealed = errors.New("the body has been withdrawn")

// newUpload puts a document into the form that the authority reads: one part
// named xml, whose file name it checks.
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
	return &upload{left: buf.Bytes(), size: int64(buf.Len()), contentType: w.FormDataContentType()}, nil
}

func (u *upload) Read(p []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.sealed {
		return 0, errSealed
	}
	if !u.begun && u.conn != nil {
		u.mark = u.conn.written.Load()
	}
	u.begun = true
	if len(u.left) == 0 {
		return 0, io.EOF
	}
	n := copy(p, u.left)
	u.left = u.left[n:]
	return n, nil
}

// Close is for the HTTP library, which closes every body.
func (u *upload) Close() error { return nil }

// over names the connection that the body goes over.
func (u *upload) over(conn *wireConn) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.conn = conn
}

// withdraw ends the upload for good and tells whether no byte of it can have
// left.
func (u *upload) withdraw() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.sealed = true
	return !u.begun || u.conn != nil && u.conn.silent(u.mark)
}

// A request is one exchange to be made.
type request struct {
	service   string
	transport *http.Transport
	url       string
	token     string
	upload    *upload // makes it a POST
	accept    string
	limit     int64 // of the answer
	total     time.Duration
}

// A reply is what came back.
type reply struct {
	status     int
	retryAfter string
	at         time.Time // the Date of the answer, zero without
	body       []byte
	// torn is why the body is not whole: it broke off, or is too long.
	torn error
}

// A lost is an exchange without a reply.
type lost struct {
	cause error
	// unsent tells that no byte of the body can have left.
	unsent bool
}

func (l *lost) Error() string { return l.cause.Error() }
func (l *lost) Unwrap() error { return l.cause }

var errTooLong = errors.New("the answer is too long")

// exchange makes one call and no second one: redirects are answers, and
// nothing is repeated.
func (c *Client) exchange(ctx context.Context, r request) (*reply, error) {
	ctx, cancel := context.WithTimeout(ctx, r.total)
	defer cancel()
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		under := info.Conn
		if t, ok := under.(interface{ NetConn() net.Conn }); ok {
			under = t.NetConn()
		}
		if w, ok := under.(*wireConn); ok && r.upload != nil {
			r.upload.over(w)
		}
	}})
	method := http.MethodGet
	if r.upload != nil {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(traced, method, r.url, nil)
	if err != nil {
		return nil, &lost{errors.New("the address cannot be called"), true} // the error would repeat all of it
	}
	req.Header.Set("Accept", r.accept)
	req.Header.Set("User-Agent", "fiscalhub")
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	if r.upload != nil {
		req.Header.Set("Content-Type", r.upload.contentType)
		req.Body, req.ContentLength = r.upload, r.upload.size
	}
	begin := c.now()
	res, err := r.transport.RoundTrip(req)
	if err != nil {
		c.observe(Call{Service: r.service, Took: c.now().Sub(begin)})
		return nil, &lost{err, r.upload == nil || r.upload.withdraw()}
	}
	defer res.Body.Close()
	out := &reply{status: res.StatusCode, retryAfter: res.Header.Get("Retry-After")}
	if at, err := http.ParseTime(res.Header.Get("Date")); err == nil {
		out.at = at
	}
	out.body, out.torn = io.ReadAll(io.LimitReader(res.Body, r.limit+1))
	if int64(len(out.body)) > r.limit {
		out.body, out.torn = out.body[:r.limit], errTooLong
	}
	if r.token != "" { // nobody keeps a token that an answer repeats
		out.body = bytes.ReplaceAll(out.body, []byte(r.token), []byte("[token]"))
	}
	c.observe(Call{Service: r.service, Status: out.status, Took: c.now().Sub(begin)})
	return out, nil
}
