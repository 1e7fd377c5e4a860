package dgii

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// shortTimeouts gives a client short timeouts.
func shortTimeouts(o *Options) {
	o.Timeouts.FirstByte, o.Timeouts.Total = time.Second, time.Second
}

// hijack takes over the connection of a request.
func hijack(t *testing.T, w http.ResponseWriter) (*net.TCPConn, *bufio.ReadWriter) {
	t.Helper()
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Error(err)
		return nil, nil
	}
	return conn.(*net.TCPConn), rw
}

// reset closes a connection with a TCP reset.
func reset(conn *net.TCPConn) {
	_ = conn.SetLinger(0)
	_ = conn.Close()
}

// The authority ends a connection without an answer to a look-up. The look-up fails; it is
// not repeated at once, as net/http would do.
func TestALookUpIsNotRepeated(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	e := newEnv(t, func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 || len(r.TransferEncoding) > 0 {
			t.Errorf("the look-up has a body: %d, %v", r.ContentLength, r.TransferEncoding)
		}
		if requests.Add(1) > 1 {
			panic(http.ErrAbortHandler)
		}
		answer(200, `{"trackId":"t","codigo":"3","estado":"En Proceso"}`)(w, r)
	})
	c, id := e.client(t), signer(t)
	if _, err := c.Result(testContext(t), id, "t"); err != nil {
		t.Fatal(err) // net/http repeats requests only on a connection that has worked
	}
	if _, err := c.Result(testContext(t), id, "t"); !errors.Is(err, fiscal.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	if got := requests.Load(); got != 2 {
		t.Errorf("%d requests, want 2", got)
	}
}

func TestSubmitWithoutAResponseIsInconclusive(t *testing.T) {
	t.Parallel()
	large := shipment()
	large.XML = bytes.Repeat([]byte("x"), 8<<20)
	for _, tt := range []struct {
		name  string
		ship  fiscal.Shipment
		serve func(t *testing.T, w http.ResponseWriter, r *http.Request)
		want  error
	}{
		{"reset in the middle of the body", large, func(t *testing.T, w http.ResponseWriter, r *http.Request) {
			_, _ = io.CopyN(io.Discard, r.Body, 64<<10)
			conn, _ := hijack(t, w)
			reset(conn)
		}, fiscal.ErrInconclusive},
		{"reset after the body", shipment(), func(t *testing.T, w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			conn, _ := hijack(t, w)
			reset(conn)
		}, fiscal.ErrInconclusive},
		{"no response after the body", shipment(), func(_ *testing.T, _ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}, fiscal.ErrInconclusive},
		{"half of a response", shipment(), func(t *testing.T, w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			conn, rw := hijack(t, w)
			_, _ = fmt.Fprint(rw, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"trackId\":\"t\"}")
			_ = rw.Flush()
			_ = conn.Close()
		}, fiscal.ErrInconclusive},
		{"half of a header", shipment(), func(t *testing.T, w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			conn, rw := hijack(t, w)
			_, _ = fmt.Fprint(rw, "HTTP/1.1 200 O")
			_ = rw.Flush()
			_ = conn.Close()
		}, fiscal.ErrInconclusive},
		{"response byte by byte", shipment(), func(_ *testing.T, w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			for _, b := range []byte(`{"trackId":"98b094eb-7a9f-4e47-95f9-435d9e357426"}`) {
				_, _ = w.Write([]byte{b})
				if http.NewResponseController(w).Flush() != nil {
					return
				}
				select {
				case <-r.Context().Done():
					return
				case <-time.After(60 * time.Millisecond):
				}
			}
		}, fiscal.ErrInconclusive},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var posts atomic.Int64
			s := newEnv(t, func(w http.ResponseWriter, r *http.Request) {
				posts.Add(1)
				tt.serve(t, w, r)
			})
			_, err := s.client(t, shortTimeouts).Submit(testContext(t), signer(t), tt.ship)
			wantError(t, err, tt.want)
			if posts.Load() != 1 {
				t.Errorf("%d posts", posts.Load())
			}
		})
	}
}

// A call that fails before the first byte of the body was not received.
func TestFailureBeforeTheBodyIsNotReceived(t *testing.T) {
	t.Parallel()
	s := newEnv(t, answer(200, `{"trackId":"t"}`))
	closed, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = discard()
	secure.StartTLS()
	t.Cleanup(secure.Close)
	old := httptest.NewUnstartedServer(http.NotFoundHandler())
	old.Config.ErrorLog = discard()
	old.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	old.StartTLS()
	t.Cleanup(old.Close)
	for name, tt := range map[string]struct {
		host string
		tls  *tls.Config
	}{
		"refused":             {"http://" + closed.Addr().String(), nil},
		"no such name":        {"http://host.invalid", nil},
		"unknown certificate": {secure.URL, nil},
		"TLS 1.1":             {old.URL, old.Client().Transport.(*http.Transport).TLSClientConfig},
		"another host's name": {"https://localhost:" + portOf(secure.URL), secure.Client().Transport.(*http.Transport).TLSClientConfig},
		"HTTP instead of TLS": {"https://" + s.Listener.Addr().String(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Summaries go to another host, so that fetching the token works.
			c := s.client(t, func(o *Options) { o.Hosts.FC, o.TLS = tt.host, tt.tls })
			_, err := c.SubmitSummary(testContext(t), signer(t), shipment())
			wantError(t, err, fiscal.ErrNotReceived)
			_, err = c.SummaryState(testContext(t), signer(t), query())
			wantError(t, err, fiscal.ErrUnavailable)
		})
	}
	t.Run("the caller is cancelled while it waits for a slot", func(t *testing.T) {
		t.Parallel()
		c := s.client(t, func(o *Options) { o.MaxInFlight = 1 })
		if _, err := c.Submit(testContext(t), signer(t), shipment()); err != nil {
			t.Fatal(err)
		}
		release, err := c.reception.slots.acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err = c.Submit(ctx, signer(t), shipment())
		wantError(t, err, fiscal.ErrNotReceived)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}

// When a connection is reset before the server has read the body, some of the body may
// have been sent. Either error is right, but nothing may be sent twice.
func TestResetBeforeTheBody(t *testing.T) {
	t.Parallel()
	s := newEnv(t, answer(200, ""))
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var accepted atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			accepted.Add(1)
			reset(conn.(*net.TCPConn))
		}
	}()
	c := s.client(t, func(o *Options) { o.Hosts.FC = "http://" + listener.Addr().String() })
	_, err = c.SubmitSummary(testContext(t), signer(t), shipment())
	if !errors.Is(err, fiscal.ErrNotReceived) && !errors.Is(err, fiscal.ErrInconclusive) {
		t.Error(err)
	}
	_ = listener.Close()
	<-done
	if accepted.Load() != 1 {
		t.Errorf("%d connections", accepted.Load())
	}
}

// net/http must not send a document a second time, neither when an idle connection
// was closed nor when a connection ends without a response.
func TestDocumentsAreNeverSentTwice(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	got := map[string]int{}
	drop := false
	s := newEnv(t, func(w http.ResponseWriter, r *http.Request) {
		doc, _ := readUpload(r)
		_, _ = io.Copy(io.Discard, r.Body)
		mu.Lock()
		got[string(doc)]++
		gone := drop
		mu.Unlock()
		if gone {
			conn, _ := hijack(t, w)
			_ = conn.Close()
			return
		}
		_, _ = io.WriteString(w, `{"trackId":"t"}`)
	})
	c := s.client(t)
	send := func(n int) error {
		ship := shipmentOf(n)
		ship.XML = fmt.Appendf(nil, "<ECF>%d</ECF>", n)
		_, err := c.Submit(testContext(t), signer(t), ship)
		return err
	}
	for n := range 40 {
		err := send(n)
		mu.Lock()
		arrived := got[fmt.Sprintf("<ECF>%d</ECF>", n)]
		mu.Unlock()
		switch {
		case arrived > 1:
			t.Fatalf("document %d arrived %d times", n, arrived)
		case err == nil && arrived != 1, errors.Is(err, fiscal.ErrNotReceived) && arrived != 0:
			t.Fatalf("document %d arrived %d times: %v", n, arrived, err)
		}
		s.CloseClientConnections() // also the idle ones
	}
	// One of these opens a connection that the next call reuses. The first ones may meet
	// connections that were closed a moment ago.
	err := send(100)
	for n := 101; err != nil && n < 110; n++ {
		err = send(n)
	}
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	drop = true
	mu.Unlock()
	wantError(t, send(110), fiscal.ErrInconclusive)
	mu.Lock()
	defer mu.Unlock()
	if n := got["<ECF>110</ECF>"]; n != 1 {
		t.Errorf("the document arrived %d times", n)
	}
}
