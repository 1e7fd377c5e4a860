package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fiscalhub/fiscalhub/internal/netguard"
	"github.com/fiscalhub/fiscalhub/internal/netguard/netguardtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var clock = time.Date(2026, 11, 15, 0, 11, 45, 0, time.UTC)

// startReceiver starts an integrator's server on loopback.
func startReceiver(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func newTestSender(t *testing.T, change ...func(*Options)) *Sender {
	t.Helper()
	o := Options{Now: func() time.Time { return clock }, Guard: netguard.Guard{Private: true}}
	for _, f := range change {
		f(&o)
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func newMessage(url string) Message {
	return Message{URL: url, ID: eventID, Body: []byte(`{"id":"` + eventID + `"}`), Secrets: []Secret{NewSecret()}, RequestID: "req_1"}
}

func TestPostSignsEachAttempt(t *testing.T) {
	t.Parallel()
	type request struct {
		header http.Header
		body   []byte
		uri    string
		method string
	}
	got := make(chan request, 2)
	s := startReceiver(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- request{r.Header, body, r.RequestURI, r.Method}
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, "thanks")
	})
	now := clock
	hooks := newTestSender(t, func(o *Options) { o.Now = func() time.Time { return now } })
	m := newMessage(s.URL + "/hooks?tenant=1")
	m.Secrets = append(m.Secrets, NewSecret())
	for range 2 {
		now = now.Add(time.Hour)
		r := hooks.Post(t.Context(), m)
		if !r.OK() || r.Status != 202 || string(r.Answer) != "thanks" || r.Gone || r.Slow || r.RetryAfter != 0 {
			t.Fatalf("%+v", r)
		}
		seen := <-got
		if seen.uri != "/hooks?tenant=1" || seen.method != http.MethodPost || !bytes.Equal(seen.body, m.Body) {
			t.Errorf("%s %s %s", seen.method, seen.uri, seen.body)
		}
		for name, want := range map[string]string{
			"Content-Type": "application/json", "User-Agent": "fh-webhooks/1", "X-Request-Id": "req_1", "Webhook-Id": eventID,
			"Webhook-Timestamp": fmt.Sprint(now.Unix()), "Cookie": "", "Authorization": "", "Accept-Encoding": "",
		} {
			if h := seen.header.Get(name); h != want {
				t.Errorf("%s: %q, want %q", name, h, want)
			}
		}
		for _, secret := range m.Secrets {
			if err := Verify(seen.header, seen.body, now, secret); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestPostJudgesTheStatus(t *testing.T) {
	t.Parallel()
	in := func(d time.Duration) string { return clock.Add(d).UTC().Format(http.TimeFormat) }
	for _, tt := range []struct {
		status     int
		retryAfter string
		want       Result
	}{
		{status: 200, want: Result{}},
		{status: 204, want: Result{}},
		{status: 299, want: Result{}},
		{status: 300, want: Result{Error: "status_300"}},
		{status: 302, want: Result{Error: "status_302"}},
		{status: 304, want: Result{Error: "status_304"}},
		{status: 400, want: Result{Error: "status_400"}},
		{status: 404, retryAfter: "60", want: Result{Error: "status_404"}},
		{status: 410, retryAfter: "60", want: Result{Error: "status_410", Gone: true}},
		{status: 429, want: Result{Error: "status_429", Slow: true}},
		{status: 429, retryAfter: "3600", want: Result{Error: "status_429", Slow: true, RetryAfter: time.Hour}},
		{status: 429, retryAfter: in(time.Hour), want: Result{Error: "status_429", Slow: true, RetryAfter: time.Hour}},
		{status: 429, retryAfter: in(-time.Hour), want: Result{Error: "status_429", Slow: true}},
		{status: 429, retryAfter: "86400", want: Result{Error: "status_429", Slow: true, RetryAfter: 24 * time.Hour}},
		{status: 429, retryAfter: "86401", want: Result{Error: "status_429", Slow: true}},
		{status: 429, retryAfter: in(25 * time.Hour), want: Result{Error: "status_429", Slow: true}},
		{status: 429, retryAfter: "-1", want: Result{Error: "status_429", Slow: true}},
		{status: 429, retryAfter: "1.5", want: Result{Error: "status_429", Slow: true}},
		{status: 429, retryAfter: strings.Repeat("9", 40), want: Result{Error: "status_429", Slow: true}},
		{status: 429, retryAfter: "soon", want: Result{Error: "status_429", Slow: true}},
		{status: 500, retryAfter: "60", want: Result{Error: "status_500"}},
		{status: 502, retryAfter: "60", want: Result{Error: "status_502", Slow: true}},
		{status: 503, retryAfter: "60", want: Result{Error: "status_503", RetryAfter: time.Minute}},
		{status: 504, want: Result{Error: "status_504", Slow: true}},
		{status: 599, want: Result{Error: "status_599"}},
	} {
		t.Run(fmt.Sprint(tt.status, tt.retryAfter), func(t *testing.T) {
			t.Parallel()
			s := startReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Date", clock.Format(http.TimeFormat))
				if tt.retryAfter != "" {
					w.Header().Set("Retry-After", tt.retryAfter)
				}
				w.WriteHeader(tt.status)
			})
			// Our clock is wrong by a day. The wait is still right, because the
			// receiver sends its own time in Date.
			got := newTestSender(t, func(o *Options) { o.Now = func() time.Time { return clock.Add(24 * time.Hour) } }).Post(t.Context(), newMessage(s.URL))
			if got.Status != tt.status || got.Error != tt.want.Error || got.Gone != tt.want.Gone || got.Slow != tt.want.Slow || got.RetryAfter != tt.want.RetryAfter || got.OK() != (tt.want.Error == "") {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestPostFollowsNoRedirects(t *testing.T) {
	t.Parallel()
	var reached atomic.Int64
	inside := startReceiver(t, func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, location := range []string{"http://169.254.169.254/latest/meta-data/", inside.URL, inside.URL + "/a", "//" + inside.Listener.Addr().String(), "/again"} {
			calls := 0
			s := startReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
				calls++
				w.Header().Set("Location", location)
				w.WriteHeader(status)
			})
			if r := newTestSender(t).Post(t.Context(), newMessage(s.URL)); r.OK() || r.Error != fmt.Sprintf("status_%d", status) || calls != 1 {
				t.Errorf("%d to %s: %+v after %d calls", status, location, r, calls)
			}
		}
	}
	if reached.Load() != 0 {
		t.Error("the listener was reached")
	}
}

// Post refuses an internal address by its text and by the IP address of its name. The
// listener behind the address is never reached.
func TestPostReachesNoInternalAddress(t *testing.T) {
	t.Parallel()
	var reached atomic.Int64
	inside := startReceiver(t, func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	port := portOf(inside)
	strict := newTestSender(t, func(o *Options) { o.Guard = netguard.Guard{} })
	for _, address := range []string{
		inside.URL, "https://127.0.0.1/", "https://127.0.0.1:" + port, "https://localhost/", "https://2130706433/", "https://0x7f.1/", "https://0177.0.0.1/", "https://[::1]/",
		"https://[::ffff:127.0.0.1]/", "https://127.0.0.1./", "https://u:p@hooks.example.com/", "https://hooks.example.com:8443/", "http://hooks.example.com/", "https://１２７.0.0.1/",
		"https://169.254.169.254/", "https://metadata.google.internal/", "",
	} {
		if err := CheckURL(address, netguard.Guard{}); !errors.Is(err, netguard.ErrAddress) {
			t.Errorf("%s is accepted as an endpoint: %v", address, err)
		}
		if r := strict.Post(t.Context(), newMessage(address)); r.Error != netguard.ClassRefused {
			t.Errorf("%s: %+v", address, r)
		}
	}
	if err := CheckURL("https://hooks.example.com/in?tenant=1", netguard.Guard{}); err != nil {
		t.Error(err)
	}
	if err := CheckURL(inside.URL, netguard.Guard{Private: true}); err != nil {
		t.Error(err)
	}

	// From here on every call goes to the port of the listener, and the guard checks
	// it as if the port were 443. Calls to public addresses are stopped.
	stop := errors.New("allowed")
	var answer atomic.Pointer[string]
	resolver := netguardtest.Resolver(func(string) []netip.Addr { return []netip.Addr{netip.MustParseAddr(*answer.Load())} })
	redirectToListener := func(s *Sender, guard netguard.Guard) {
		d := guard.Dialer(time.Second, resolver)
		d.Control = func(network, address string, c syscall.RawConn) error {
			at := netip.MustParseAddrPort(address)
			if err := guard.Control(network, netip.AddrPortFrom(at.Addr(), 443).String(), c); err != nil || at.Addr().IsLoopback() {
				return err
			}
			return stop
		}
		s.transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			host, _, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			return d.DialContext(ctx, network, net.JoinHostPort(host, port))
		}
	}
	rebound := newTestSender(t, func(o *Options) { o.Guard = netguard.Guard{} })
	redirectToListener(rebound, netguard.Guard{})
	m := newMessage("https://rebind.example.com/")
	for _, step := range []struct{ address, class string }{
		{"8.8.8.8", netguard.ClassConnect}, // allowed by the guard, stopped by the test
		{"127.0.0.1", netguard.ClassRefused},
		{"169.254.169.254", netguard.ClassRefused},
		{"10.0.0.1", netguard.ClassRefused},
		{"::1", netguard.ClassRefused},
		{"64:ff9b::7f00:1", netguard.ClassRefused},
		{"2002:7f00:1::", netguard.ClassRefused},
		{"8.8.4.4", netguard.ClassConnect},
	} {
		answer.Store(&step.address)
		if r := rebound.Post(t.Context(), m); r.Error != step.class || r.Status != 0 || len(r.Answer) != 0 {
			t.Errorf("a name that resolves to %s: %+v", step.address, r)
		}
	}
	if reached.Load() != 0 {
		t.Error("the listener was reached")
	}

	// The same call reaches the listener when the guard allows private addresses.
	open := newTestSender(t)
	redirectToListener(open, netguard.Guard{Private: true})
	loopback := "127.0.0.1"
	answer.Store(&loopback)
	if r := open.Post(t.Context(), newMessage("http://rebind.example.com/")); !r.OK() || reached.Load() != 1 {
		t.Errorf("%+v", r)
	}
}

func TestPostOverTLS(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto+" "+r.Host)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	port := portOf(s)
	network := netguard.Options{Resolver: netguardtest.Fixed("127.0.0.1"), TLS: &tls.Config{RootCAs: roots}}
	for name, tt := range map[string]struct {
		address string
		network netguard.Options
		class   string
	}{
		"a certificate for the name": {"https://example.com:" + port, network, ""},
		"a certificate for another":  {"https://example.org:" + port, network, netguard.ClassTLS},
		"an unknown issuer":          {"https://example.com:" + port, netguard.Options{Resolver: network.Resolver}, netguard.ClassTLS},
		"http to a TLS port":         {"http://example.com:" + port, network, "status_400"},
		"an unknown name":            {"https://example.com:" + port, netguard.Options{Resolver: netguardtest.Fixed()}, netguard.ClassDNS},
		"a port without a listener":  {"https://example.com:1", network, netguard.ClassConnect},
	} {
		r := newTestSender(t, func(o *Options) { o.Network = tt.network }).Post(t.Context(), newMessage(tt.address))
		if r.Error != tt.class || r.OK() && string(r.Answer) != "HTTP/2.0 example.com:"+port {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// serveConnections starts a listener that passes each connection to serve. It returns
// the address.
func serveConnections(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serve(conn)
			_ = conn.Close() // serve may have closed it
		}
	}()
	t.Cleanup(func() {
		_ = l.Close() // ends the goroutine
		<-done
	})
	return l.Addr().String()
}

func TestPostClassifiesFailures(t *testing.T) {
	t.Parallel()
	read := func(c net.Conn) { _, _ = c.Read(make([]byte, 64<<10)) }
	say := func(text string) func(net.Conn) {
		return func(c net.Conn) {
			read(c)
			_, _ = io.WriteString(c, text)
		}
	}
	hang := func(c net.Conn) {
		for { // until the sender closes the connection
			if _, err := c.Read(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	}
	for name, tt := range map[string]struct {
		serve  func(net.Conn)
		scheme string
		class  string
		status int
	}{
		"closes at once":            {read, "http", ClassClosed, 0},
		"incomplete header":         {say("HTTP/1.1 200 OK\r\nA: b"), "http", ClassClosed, 0},
		"not HTTP":                  {say("220 mail.example.com ESMTP\r\n\r\n"), "http", ClassMalformed, 0},
		"a header that is too long": {say("HTTP/1.1 200 OK\r\nA: " + strings.Repeat("b", 20<<10) + "\r\n\r\n"), "http", ClassMalformed, 0},
		"no answer":                 {hang, "http", netguard.ClassTimeout, 0},
		"no answer under TLS":       {hang, "https", netguard.ClassTimeout, 0},
		"closes the handshake":      {read, "https", netguard.ClassTLS, 0},
		"no TLS":                    {say("HTTP/1.1 400 Bad Request\r\n\r\n"), "https", netguard.ClassTLS, 0},
		"an incomplete body":        {say("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc"), "http", "", 200},
		"a body that never ends":    {func(c net.Conn) { say("HTTP/1.1 200 OK\r\n\r\nabc")(c); hang(c) }, "http", "", 200},
		"a failure that never ends": {func(c net.Conn) { say("HTTP/1.1 500 Oops\r\n\r\nabc")(c); hang(c) }, "http", "status_500", 500},
		"early hints":               {say("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"), "http", "", 204},
		"another protocol":          {say("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"), "http", "status_101", 101},
		"an unknown status":         {say("HTTP/1.1 999 Oops\r\nContent-Length: 0\r\n\r\n"), "http", "status_999", 999},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestSender(t, func(o *Options) {
				o.Total = 5 * time.Second
				if strings.Contains(name, "no answer") || strings.Contains(name, "never ends") {
					o.Total, o.Network.Handshake = 300*time.Millisecond, 300*time.Millisecond
				}
			})
			r := s.Post(t.Context(), newMessage(tt.scheme+"://"+serveConnections(t, tt.serve)))
			if r.Error != tt.class || r.Status != tt.status {
				t.Errorf("%+v, want %q with %d", r, tt.class, tt.status)
			}
		})
	}
}

func TestPostReadsOnlyTheBeginningOfALongAnswer(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	s := startReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		for sent.Load() < 64<<20 {
			n, err := w.Write(bytes.Repeat([]byte("a"), 64<<10))
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	})
	r := newTestSender(t).Post(t.Context(), newMessage(s.URL))
	if !r.OK() || len(r.Answer) != 1<<10 || cap(r.Answer) > 2<<10 {
		t.Errorf("%d bytes of %d: %s", len(r.Answer), cap(r.Answer), r.Error)
	}
	s.Close() // waits for the handler
	if sent.Load() >= 64<<20 {
		t.Errorf("the sender read %d bytes", sent.Load())
	}
}

func TestPostReportsACancelledAttemptAsStopped(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s := startReceiver(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the server notices the cancellation only after it has read the body
		cancel()
		<-r.Context().Done()
	})
	if r := newTestSender(t).Post(ctx, newMessage(s.URL)); r.Error != ClassStopped || r.OK() {
		t.Errorf("%+v", r)
	}
}

func TestPostRefusesInvalidMessages(t *testing.T) {
	t.Parallel()
	s := startReceiver(t, func(http.ResponseWriter, *http.Request) { t.Error("the receiver was called") })
	for name, change := range map[string]func(*Message){
		"no secret":      func(m *Message) { m.Secrets = nil },
		"a zero secret":  func(m *Message) { m.Secrets = []Secret{{}} },
		"no id":          func(m *Message) { m.ID = "" },
		"line breaks":    func(m *Message) { m.ID = "a\r\nX: y" },
		"bad request id": func(m *Message) { m.RequestID = "a b\n" },
	} {
		m := newMessage(s.URL)
		change(&m)
		if r := newTestSender(t).Post(t.Context(), m); r.Error != ClassMessage {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if _, err := New(Options{}); err == nil {
		t.Error("New accepts options without a clock")
	}
}

func portOf(s *httptest.Server) string {
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	return port
}
