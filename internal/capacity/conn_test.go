package capacity

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// serve serves a handler over TCP, behind a listener with limits, and returns its
// address.
func serve(t *testing.T, c *Capacity, h http.Handler) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	server := &http.Server{Handler: h, ConnContext: RememberConn, ReadHeaderTimeout: 5 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(c.Listen(l, NewClientFinder(nil, time.Now, log))) // returns when the server is closed
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	return l.Addr().String()
}

// Many clients write the whole request before they read the answer. They must get
// the answer even when the service refuses the request without reading its body.
func TestRefusedClientThatIsStillSendingGetsItsAnswer(t *testing.T) {
	t.Parallel()
	c := newCapacity()
	address := serve(t, c, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }))
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	// More than the buffers of both sockets hold.
	body := strings.Repeat(" ", 12<<20)
	if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 12582912\r\n\r\n"+body); err != nil {
		t.Fatalf("the connection ended while the client was sending: %v", err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || answer.StatusCode != http.StatusTooManyRequests {
		t.Fatalf("the client lost the answer: %v", err)
	}
	_ = answer.Body.Close()
}

// pipeConn is one end of a pipe whose sending side can be closed.
type pipeConn struct{ net.Conn }

func (pipeConn) CloseWrite() error { return nil }

func TestClosedConnectionIsReadForAShortTimeOnly(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]struct {
		act  func(net.Conn)
		want time.Duration // how long the connection is counted
	}{
		"a client that does nothing":   {func(net.Conn) {}, lingerTime},
		"a client that closes":         {func(c net.Conn) { _ = c.Close() }, 0},
		"a client that sends for ever": {func(c net.Conn) { _, _ = io.Copy(c, endless{}) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newPool(Service, 1, 0, true)
				server, peer := net.Pipe()
				c := newConn(pipeConn{server}, take(t, p, 1))
				began := time.Now()
				if err := c.Close(); err != nil {
					t.Fatal(err)
				}
				client.act(peer)
				for used, _ := p.usage(); used > 0; used, _ = p.usage() {
					time.Sleep(100 * time.Millisecond) // of the bubble's time
				}
				if took := time.Since(began); took < client.want || took > client.want+time.Second {
					t.Errorf("counted for %s", took)
				}
			})
		})
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

func TestClientThatReadsNothingIsCutOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, peer := net.Pipe()
		defer func() { _ = peer.Close() }()
		c := newConn(server, nil)
		if err := c.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := c.Write(make([]byte, 1<<20)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != writeTime {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

// A client that reads steadily gets the whole answer, up to the deadline of the
// server.
func TestSteadyReaderIsServedUntilTheDeadline(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		size    int
		timeout bool
	}{
		"in time":         {5 * writeStep, false},
		"after the limit": {8 * writeStep, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server, peer := net.Pipe()
				c := newConn(server, nil)
				if err := c.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
					t.Fatal(err)
				}
				var reader sync.WaitGroup
				reader.Go(func() {
					defer func() { _ = peer.Close() }()
					for range 8 {
						time.Sleep(writeTime - 5*time.Second)
						if _, err := io.CopyN(io.Discard, peer, writeStep); err != nil {
							return
						}
					}
				})
				n, err := c.Write(make([]byte, tt.size))
				if errors.Is(err, os.ErrDeadlineExceeded) != tt.timeout || (n == tt.size) == tt.timeout {
					t.Errorf("%d of %d bytes were written: %v", n, tt.size, err)
				}
				_ = server.Close()
				reader.Wait()
			})
		})
	}
}
