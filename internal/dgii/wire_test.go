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
	"syscall"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// quick makes a client give up soon.
func quick(o *Options) {
	o.Timeouts.FirstByte, o.Timeouts.Total = time.Second, time.Second
}

// hijack takes the connection of a request over.
func hijack(t *testing.T, w http.ResponseWriter) (*net.TCPConn, *bufio.ReadWriter) {
	t.Helper()
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Error(err)
		return nil, nil
	}
	return conn.(*net.TCPConn), rw
}

// reset ends a connection without a word.
func reset(conn *net.TCPConn) {
	_ = conn.SetLinger(0)
	_ = conn.Close()
}

func TestLostExchanges(t *testing.T) {
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
		{"silence after the body", shipment(), func(_ *testing.T, _ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}, fiscal.ErrInconclusive},
		{"half of an answer", shipment(), func(t *testing.T, w http.ResponseWriter, r *http.Request) {
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
		{"answer byte by byte", shipment(), func(_ *testing.T, w http.ResponseWriter, r *http.Request) {
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
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				posts.Add(1)
				tt.serve(t, w, r)
			})
			_, err := s.client(t, quick).Submit(soon(t), signer(t), tt.ship)
			wantError(t, err, tt.want)
			if posts.Load() != 1 {
				t.Errorf("%d posts", posts.Load())
			}
		})
	}
}

// Whatever ends before the body begins has not been received.
func TestP84Unsent(t *testing.T) {
	t.Parallel()
	s := serve(t, say(200, `{"trackId":"t"}`))
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
		"refused":              {"http://" + closed.Addr().String(), nil},
		"no such name":         {"http://nobody.invalid", nil},
		"unknown certificate":  {secure.URL, nil},
		"TLS 1.1":              {old.URL, old.Client().Transport.(*http.Transport).TLSClientConfig},
		"another host's name":  {"https://localhost:" + portOf(secure.URL), secure.Client().Transport.(*http.Transport).TLSClientConfig},
		"plain where TLS goes": {"https://" + s.Listener.Addr().String(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The summary goes to a host of its own, so that the token is had.
			c := s.client(t, func(o *Options) { o.Hosts.FC, o.TLS = tt.host, tt.tls })
			_, err := c.SubmitSummary(soon(t), signer(t), shipment())
			wantError(t, err, fiscal.ErrNotReceived)
			_, err = c.SummaryState(soon(t), signer(t), ours())
			wantError(t, err, fiscal.ErrUnavailable)
		})
	}
	t.Run("the caller leaves before it is its turn", func(t *testing.T) {
		t.Parallel()
		c := s.client(t, func(o *Options) { o.MaxInFlight = 1 })
		if _, err := c.Submit(soon(t), signer(t), shipment()); err != nil {
			t.Fatal(err)
		}
		release, err := c.slots.take(t.Context(), c.reception.origin)
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

// A connection that is reset before the server has read any of the body may or
// may not have carried some: what counts is that it is no answer, and that
// nothing is sent twice.
func TestResetBeforeTheBody(t *testing.T) {
	t.Parallel()
	s := serve(t, say(200, ""))
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
	_, err = c.SubmitSummary(soon(t), signer(t), shipment())
	if !errors.Is(err, fiscal.ErrNotReceived) && !errors.Is(err, fiscal.ErrInconclusive) {
		t.Error(err)
	}
	_ = listener.Close()
	<-done
	if accepted.Load() != 1 {
		t.Errorf("%d connections", accepted.Load())
	}
}

// A deadConn takes a header and then a part of the body, or nothing of it.
type deadConn struct {
	net.Conn
	writes, takes int
}

func (d *deadConn) Write(b []byte) (int, error) {
	if d.writes++; d.writes == 1 {
		return len(b), nil
	}
	return min(d.takes, len(b)), syscall.ECONNRESET
}

// A connection that took no byte of the body has not carried it, even though the
// library had read it; one that took some may have.
func TestWireCounts(t *testing.T) {
	t.Parallel()
	s := serve(t, say(200, ""))
	c := s.client(t)
	for takes, unsent := range map[int]bool{0: true, 1: false} {
		here, there := net.Pipe()
		t.Cleanup(func() { _ = there.Close() })
		tr := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			return &wireConn{Conn: &deadConn{Conn: here, takes: takes}}, nil
		}}
		body, err := newUpload("x.xml", bytes.Repeat([]byte("x"), 64<<10))
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.exchange(soon(t), request{transport: tr, url: "http://x.example/", upload: body, limit: 1, total: time.Second})
		l, ok := errors.AsType[*lost](err)
		if !ok || l.unsent != unsent {
			t.Errorf("%d bytes taken: %v", takes, err)
		}
		if !body.begun {
			t.Error("the body was not begun: the test shows nothing")
		}
	}
}

// net/http must never send a document again by itself, neither on a connection
// that died while idle nor on one that died with the answer.
func TestNoSilentReplay(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	got := map[string]int{}
	drop := false
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
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
		_, err := c.Submit(soon(t), signer(t), ship)
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
		s.CloseClientConnections() // what is idle dies
	}
	if err := send(100); err != nil { // a connection that is alive, and reused
		t.Fatal(err)
	}
	mu.Lock()
	drop = true
	mu.Unlock()
	wantError(t, send(101), fiscal.ErrInconclusive)
	mu.Lock()
	defer mu.Unlock()
	if n := got["<ECF>101</ECF>"]; n != 1 {
		t.Errorf("the document arrived %d times", n)
	}
}

// A host gets eight calls at once and no more.
func TestInFlight(t *testing.T) {
	t.Parallel()
	var now, most atomic.Int64
	full := make(chan struct{})
	var once sync.Once
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		if n == 8 {
			once.Do(func() { close(full) })
		}
		<-full
		say(200, `{"trackId":"t"}`)(w, r)
	})
	c := s.client(t)
	id := signer(t)
	var wg sync.WaitGroup
	for n := range 100 {
		wg.Go(func() {
			var err error
			if n%2 == 0 {
				_, err = c.Submit(soon(t), id, shipmentOf(n))
			} else {
				_, err = c.Result(soon(t), id, "t")
				if errors.Is(err, fiscal.ErrUnavailable) {
					err = nil // the script answers a track id to everybody
				}
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if most.Load() != 8 {
		t.Errorf("%d calls at once, want 8", most.Load())
	}
	if len(c.slots.of) != 0 {
		t.Errorf("%d origins are left", len(c.slots.of))
	}
}
