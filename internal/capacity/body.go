package capacity

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"time"
)

// Why a body cannot be read.
var (
	ErrTooLarge   = errors.New("the body is too large")
	ErrTooSlow    = errors.New("the body did not arrive in time")
	ErrIncomplete = errors.New("the body ended before its length")
)

const (
	// A large body must arrive at bodyRate bytes per second, after bodyStart.
	bodyRate  = 64 << 10
	bodyStart = 5 * time.Second
	bodyTime  = 30 * time.Second // for the whole of it
)

// A Body is the body of a request in memory.
type Body struct {
	Bytes []byte
	hold  *Hold
}

// Release gives the memory of the body back. The caller must not use the bytes
// afterwards.
func (b *Body) Release() {
	b.hold.Release()
	b.hold = nil
}

// ReadBody reads the whole body of a request. It fails with ErrTooLarge when the
// body has more than limit bytes, with ErrTooSlow or ErrIncomplete when the client
// does not send all of it, and with a *FullError when there is no memory for it. The
// caller calls Release when it needs the body no more.
//
// A client must send the first bytes before the service reserves memory for the rest
// of the body, and must then send fast enough. So a client that sends nothing or
// little keeps no memory from others.
func (c *Capacity) ReadBody(w http.ResponseWriter, r *http.Request, h Holder, limit int64) (Body, error) {
	if r.ContentLength > limit {
		return Body{}, ErrTooLarge
	}
	half := Share{Max: int64(c.limits.Reads) / 2}
	reading, err := c.group(h).reads.TryAcquire(1, h.shares(half, half, Share{Max: int64(c.limits.AddressReads)})...)
	if err != nil {
		return Body{}, err
	}
	defer reading.Release()
	b := bodyReader{capacity: c, holder: h, w: w, r: r, limit: limit, size: r.ContentLength}
	if b.size < 0 {
		b.size = limit + 1 // one byte more shows that a body of unknown length is too large
	}
	first := make([]byte, 0, min(b.size+1, firstPart)) // one byte more shows the end
	first, err = readUntil(first, r.Body, int64(cap(first)))
	if err == nil { // there is more
		return b.readRest(first)
	}
	return finish(Body{Bytes: first}, limit, err)
}

// bodyReader reads the body of one request.
type bodyReader struct {
	capacity *Capacity
	holder   Holder
	w        http.ResponseWriter
	r        *http.Request
	limit    int64
	size     int64 // of the body or, when it is not known, more than the limit
}

// readRest reads the rest of a body whose first part has been read.
func (b bodyReader) readRest(first []byte) (Body, error) {
	hold, err := b.capacity.reserve(b.r.Context(), b.holder, b.size)
	if err != nil {
		return Body{}, err
	}
	body := Body{hold: hold}
	body.Bytes, err = readUntil(append(make([]byte, 0, b.size+1), first...), &steadyReader{Reader: b.r.Body, w: b.w}, b.size+1)
	if len(body.Bytes) < cap(body.Bytes)/2 { // the length was not known
		body.Bytes = slices.Clone(body.Bytes)
		body.hold.Shrink(int64(len(body.Bytes)))
	}
	return finish(body, b.limit, err)
}

// reserve takes memory for a large body.
func (c *Capacity) reserve(ctx context.Context, h Holder, size int64) (*Hold, error) {
	l := &c.limits
	return c.group(h).bytes.Acquire(ctx, size, l.Patience, h.shares(
		Share{Max: l.TenantBytes / 2}, Share{Max: l.TenantBytes / 4}, Share{Max: l.StrangerBytes / 2})...)
}

// finish returns what ReadBody returns after the last read, which ended with err.
func finish(b Body, limit int64, err error) (Body, error) {
	var network net.Error
	switch {
	case int64(len(b.Bytes)) > limit:
		err = ErrTooLarge
	case errors.Is(err, io.EOF):
		return b, nil
	case errors.Is(err, os.ErrDeadlineExceeded) || (errors.As(err, &network) && network.Timeout()):
		err = ErrTooSlow
	default:
		err = ErrIncomplete
	}
	b.Release()
	return Body{}, err
}

// readUntil appends to b until it has size bytes. It returns the error of the
// reader, which is io.EOF at the end of the body, and nil when b has its size.
func readUntil(b []byte, from io.Reader, size int64) ([]byte, error) {
	for int64(len(b)) < size {
		n, err := from.Read(b[len(b):size])
		b = b[:len(b)+n]
		if err != nil {
			return b, err
		}
	}
	return b, nil
}

// steadyReader reads a body of a client that must send at a steady rate. It sets the
// read deadline of the connection.
type steadyReader struct {
	io.Reader
	w     http.ResponseWriter
	began time.Time
	read  int64
}

// Read reads at most what a client sends in a few seconds.
func (s *steadyReader) Read(b []byte) (int, error) {
	now := time.Now() //nolint:forbidigo // deadlines of a connection use the clock of the machine
	if s.began.IsZero() {
		s.began = now
	}
	allowed := bodyStart + time.Duration(s.read/bodyRate)*time.Second
	// This fails only for a writer that is not a connection and has no deadlines.
	_ = http.NewResponseController(s.w).SetReadDeadline(s.began.Add(min(allowed, bodyTime)))
	n, err := s.Reader.Read(b[:min(len(b), bodyRate)])
	s.read += int64(n)
	return n, err
}
