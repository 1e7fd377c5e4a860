package capacity

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// uploads is a server that reads bodies, over pipes, in the time of a synctest
// bubble.
type uploads struct {
	capacity *Capacity
	conns    chan net.Conn
	server   *http.Server
	served   sync.WaitGroup

	mu      sync.Mutex
	results []upload
	most    int64 // bytes of bodies that were held at one time
}

// upload is how the reading of one body ended.
type upload struct {
	path string
	size int
	err  error
	took time.Duration
}

func newUploads(t *testing.T, l Limits, limit int64) *uploads {
	t.Helper()
	u := &uploads{capacity: New(l), conns: make(chan net.Conn)}
	u.server = &http.Server{ReadTimeout: bodyTime, ReadHeaderTimeout: 5 * time.Second, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	u.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		body, err := u.capacity.ReadBody(w, r, Holder{Address: r.URL.Query().Get("from")}, limit)
		used, _ := u.capacity.strangers.bytes.usage()
		u.mu.Lock()
		u.results = append(u.results, upload{r.URL.Path, len(body.Bytes), err, time.Since(began)})
		u.most = max(u.most, used)
		u.mu.Unlock()
		body.Release()
		w.Header().Set("Connection", "close")
	})
	u.served.Go(func() { _ = u.server.Serve(u) })
	return u
}

// Accept, Close and Addr make a listener of the pipes.
func (u *uploads) Accept() (net.Conn, error) {
	c, ok := <-u.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (u *uploads) Close() error   { return nil }
func (u *uploads) Addr() net.Addr { return address("pipe:1") }

// send starts a client that sends a header and then what write writes.
func (u *uploads) send(clients *sync.WaitGroup, path, header string, write func(net.Conn)) {
	server, client := net.Pipe()
	u.conns <- server
	clients.Go(func() {
		defer func() { _ = client.Close() }()
		answer := make(chan struct{})
		go func() {
			defer close(answer)
			_, _ = io.Copy(io.Discard, client)
		}()
		if _, err := io.WriteString(client, "POST "+path+" HTTP/1.1\r\nHost: a\r\n"+header+"\r\n\r\n"); err == nil {
			write(client)
		}
		<-answer
	})
}

// end ends the server and returns how each upload ended.
func (u *uploads) end(clients *sync.WaitGroup) map[string]upload {
	clients.Wait()
	synctest.Wait() // a client may leave before its handler has ended
	close(u.conns)
	_ = u.server.Close()
	u.served.Wait()
	u.mu.Lock()
	defer u.mu.Unlock()
	all := make(map[string]upload)
	for _, r := range u.results {
		all[r.path] = r
	}
	return all
}

func sendBytes(n int) func(net.Conn) {
	return func(c net.Conn) { _, _ = io.WriteString(c, strings.Repeat("x", n)) }
}

func length(n int) string { return fmt.Sprintf("Content-Length: %d", n) }

func TestBodiesAreReadWhole(t *testing.T) {
	t.Parallel()
	const limit = 100_000
	tests := []struct {
		name, header string
		write        func(net.Conn)
		size         int
		err          error
	}{
		{"none", "Content-Length: 0", sendBytes(0), 0, nil},
		{"small", length(100), sendBytes(100), 100, nil},
		{"as large as the first part", length(firstPart), sendBytes(firstPart), firstPart, nil},
		{"one byte more", length(firstPart + 1), sendBytes(firstPart + 1), firstPart + 1, nil},
		{"as large as allowed", length(limit), sendBytes(limit), limit, nil},
		{"too large by its length", length(limit + 1), sendBytes(0), 0, ErrTooLarge},
		{"chunks", "Transfer-Encoding: chunked", func(c net.Conn) { chunked(c, 70_000) }, 70_000, nil},
		{"few chunks", "Transfer-Encoding: chunked", func(c net.Conn) { chunked(c, firstPart+10) }, firstPart + 10, nil},
		{"chunks as large as allowed", "Transfer-Encoding: chunked", func(c net.Conn) { chunked(c, limit) }, limit, nil},
		{"chunks that are too large", "Transfer-Encoding: chunked", func(c net.Conn) { chunked(c, limit+1) }, 0, ErrTooLarge},
		{"an early end", length(1000), func(c net.Conn) { sendBytes(10)(c); _ = c.Close() }, 0, ErrIncomplete},
		{"an early end of a large one", length(limit), func(c net.Conn) { sendBytes(50_000)(c); _ = c.Close() }, 0, ErrIncomplete},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				u := newUploads(t, DefaultLimits(1<<30, 2), limit)
				var clients sync.WaitGroup
				u.send(&clients, "/a", tt.header, tt.write)
				if got := u.end(&clients)["/a"]; got.size != tt.size || !errors.Is(got.err, tt.err) {
					t.Errorf("%d bytes, %v; want %d, %v", got.size, got.err, tt.size, tt.err)
				}
				if used, _ := u.capacity.strangers.bytes.usage(); used != 0 {
					t.Errorf("%d bytes are still held", used)
				}
			})
		})
	}
}

// chunked sends a body in chunks.
func chunked(c net.Conn, n int) {
	for n > 0 {
		size := min(n, 4096)
		_, _ = fmt.Fprintf(c, "%x\r\n%s\r\n", size, strings.Repeat("x", size))
		n -= size
	}
	_, _ = io.WriteString(c, "0\r\n\r\n")
}

// Idle uploads hold no memory that others need, and a client that stalls after it
// got memory loses it soon.
func TestIdleUploadsKeepNoMemoryFromOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const size = 1 << 20
		l := DefaultLimits(1<<30, 2)
		l.StrangerBytes = 2 * size // an address may hold one body
		u := newUploads(t, l, size)
		var clients sync.WaitGroup
		for i := range 100 {
			u.send(&clients, fmt.Sprint("/idle", i), length(size), sendBytes(i*100))
		}
		synctest.Wait()
		if used, _ := u.capacity.strangers.bytes.usage(); used != 0 {
			t.Errorf("idle uploads hold %d bytes", used)
		}
		u.send(&clients, "/normal", length(size), sendBytes(size))
		synctest.Wait()
		u.send(&clients, "/stalled", length(size), sendBytes(100_000))
		synctest.Wait()
		u.send(&clients, "/later", length(size), sendBytes(size))
		got := u.end(&clients)
		if r := got["/normal"]; r.err != nil || r.took > time.Second {
			t.Errorf("a normal client beside idle ones: %v after %s", r.err, r.took)
		}
		if r := got["/stalled"]; !errors.Is(r.err, ErrTooSlow) || r.took > 10*time.Second {
			t.Errorf("a stalled client: %v after %s", r.err, r.took)
		}
		if r := got["/later"]; r.err != nil || r.took > 10*time.Second {
			t.Errorf("a client that had to wait for the stalled one: %v after %s", r.err, r.took)
		}
		if r := got["/idle7"]; !errors.Is(r.err, ErrTooSlow) || r.took > bodyTime {
			t.Errorf("an idle client: %v after %s", r.err, r.took)
		}
	})
}

// Many large uploads of one address are read one after the other, and none is
// refused.
func TestLargeUploadsShareTheirMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const size, uploads = 1 << 20, 48
		l := DefaultLimits(1<<30, 2)
		l.StrangerBytes = 8 * size
		u := newUploads(t, l, size)
		var clients sync.WaitGroup
		for i := range uploads {
			u.send(&clients, fmt.Sprint("/", i), length(size), sendBytes(size))
		}
		got := u.end(&clients)
		for path, r := range got {
			if r.err != nil || r.size != size {
				t.Errorf("%s: %d bytes, %v", path, r.size, r.err)
			}
		}
		if len(got) != uploads || u.most > l.StrangerBytes/2 {
			t.Errorf("%d uploads, and up to %d bytes at one time", len(got), u.most)
		}
	})
}

// An upload that gets no memory in time is refused.
func TestUploadIsRefusedWhenItsAddressHoldsTooMuch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const size = 1 << 20
		l := DefaultLimits(1<<30, 2)
		l.StrangerBytes = 2 * size
		u := newUploads(t, l, size)
		held, err := u.capacity.reserve(t.Context(), Holder{Address: "one"}, size)
		if err != nil {
			t.Fatal(err)
		}
		var clients sync.WaitGroup
		u.send(&clients, "/same?from=one", length(size), sendBytes(size))
		u.send(&clients, "/other?from=two", length(size), sendBytes(size))
		u.send(&clients, "/small?from=one", length(1000), sendBytes(1000))
		got := u.end(&clients)
		held.Release()
		wantBound(t, got["/same"].err, Address)
		if took := got["/same"].took; took != l.Patience {
			t.Errorf("refused after %s", took)
		}
		for _, path := range []string{"/other", "/small"} {
			if r := got[path]; r.err != nil || r.took > time.Second {
				t.Errorf("%s: %v after %s", path, r.err, r.took)
			}
		}
	})
}

// Each stream of HTTP/2 can send a body slowly. An address of strangers, and a taxpayer,
// send a limited number at a time, and take nothing from others. Taxpayers behind one
// proxy have the same address.
func TestSlowBodiesTakeNothingFromOthers(t *testing.T) {
	t.Parallel()
	limits := DefaultLimits(1<<30, 2)
	tests := []struct {
		name        string
		slow, other Holder
		most        int
		pool        func(*Capacity) *Pool
	}{
		{"strangers", Holder{Address: "192.0.2.1"}, Holder{Address: "192.0.2.2"},
			limits.AddressReads, func(c *Capacity) *Pool { return c.strangers.reads }},
		{"a taxpayer, and another one with the same address",
			Holder{Address: "192.0.2.1", Credential: "a", Taxpayer: "1"}, Holder{Address: "192.0.2.1", Credential: "b", Taxpayer: "2"},
			limits.Reads / 2, func(c *Capacity) *Pool { return c.tenants.reads }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := New(limits)
			read := func(h Holder, body io.Reader) error {
				_, err := c.ReadBody(nil, &http.Request{Body: io.NopCloser(body), ContentLength: 4}, h, 10)
				return err
			}
			reader, writer := io.Pipe()
			defer func() { _ = writer.Close() }()
			var slow sync.WaitGroup
			for range tt.most {
				slow.Go(func() { _ = read(tt.slow, reader) })
			}
			for used := int64(0); used < int64(tt.most); used, _ = tt.pool(c).usage() {
				time.Sleep(time.Millisecond)
			}
			var full *FullError
			if err := read(tt.slow, strings.NewReader("body")); !errors.As(err, &full) {
				t.Errorf("one body more: %v", err)
			}
			if err := read(tt.other, strings.NewReader("body")); err != nil {
				t.Errorf("the body of another holder: %v", err)
			}
			_ = writer.Close()
			slow.Wait()
			if err := read(tt.slow, strings.NewReader("body")); err != nil {
				t.Errorf("a body after the others: %v", err)
			}
		})
	}
}
