package api_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/api"
	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// slowClients returns how many slow clients come at the same time: more than there are
// slots, and 1,000 in the long run of make soak.
func slowClients() int { return min(300*factor(), 1000) }

// wantCreations checks that creations of another tenant succeed promptly.
func (e *env) wantCreations(t *testing.T) {
	t.Helper()
	other := e.newTenant(1)
	for i := range 20 {
		began := time.Now()
		other.created(other.create(fmt.Sprint("k", i), invoiceBody(fmt.Sprint("A", i))))
		if took := time.Since(began); took > promptly {
			t.Errorf("a creation took %s", took)
		}
	}
}

// dialNarrow opens a connection with small buffers, so that an answer of the
// service does not fit into them.
func (e *env) dialNarrow(t *testing.T) net.Conn {
	t.Helper()
	dialer := net.Dialer{Control: func(_, _ string, c syscall.RawConn) (err error) {
		set := func(fd uintptr) {
			err = errors.Join(syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10),
				syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_MAXSEG, 536))
		}
		return errors.Join(c.Control(set), err)
	}}
	conn, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(e.base, "http://"))
	e.must(err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestSlowReadersDoNotDelayOthers(t *testing.T) {
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		crowd, began := slowClients(), time.Now()
		for range crowd {
			_, err := io.WriteString(e.dialNarrow(t), e.rawRequest(http.MethodGet, "/v1/openapi.json", ""))
			e.must(err)
		}
		eventually(t, "every client has a part of its answer", func() bool { return e.inFlight() == crowd })
		e.wantCreations(t)
		// On a machine that is very busy the service has ended the first answers by now.
		if n := e.inFlight(); n != crowd && time.Since(began) < 10*time.Second {
			t.Errorf("%d of %d clients are still reading", n, crowd)
		}
	})
}

func TestSlowWritersDoNotDelayOthers(t *testing.T) {
	oneEngine(t, liveOptions(), func(t *testing.T, e *env) {
		crowd, slow := slowClients(), e.newTenant(4)
		creation := func(i int) string {
			return e.rawRequest(http.MethodPost, "/v1/taxpayers/"+slow.taxpayer+"/invoices", slow.keys[i%len(slow.keys)],
				"Content-Type: application/json", "Content-Length: 1048576", "Idempotency-Key: k")
		}
		inbound := e.rawRequest(http.MethodPost, "/v1/events/inbound/"+store.NewID(), "", "Content-Type: application/json", "Content-Length: 200000")
		send := func(text string) {
			t.Helper()
			_, err := io.WriteString(e.dial(t), text)
			e.must(err)
		}
		// The service gives up large bodies after 5 seconds and others after 30, so the
		// large ones come last.
		large := crowd / 10
		for i := range crowd - large {
			if i%3 == 1 {
				send(inbound + `{"type":`)
			} else {
				send(creation(i) + `{"external_id": "`)
			}
		}
		eventually(t, "every header of a small body has been read", func() bool { return e.inFlight() == crowd-large })
		for i := range large {
			send(creation(i) + strings.Repeat(" ", 20_000))
		}
		eventually(t, "every header has been read", func() bool { return e.inFlight() == crowd })
		e.wantCreations(t)
		third := e.newTenant(1)
		wantStatus(t, "a large creation of another tenant", third.create("large", bodyOfSize("large", 200_000)), http.StatusAccepted)
		if n := e.used("slots") + e.used("stranger_slots"); n != 0 {
			t.Errorf("slow clients hold %d slots", n)
		}
	})
}

// The service cuts off clients that do not complete their request.
func TestUnfinishedRequestsAreCutOff(t *testing.T) {
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		const clients = 100
		// The service waits 5 s for a header and 30 s for a body; here it waits less.
		hasty := e.withService(t, func(_ *api.Options, s *http.Server) {
			s.ReadHeaderTimeout, s.ReadTimeout = 2*time.Second, 4*time.Second
		})
		slowKey := e.newKey(e.taxpayer, fiscal.Sandbox, apikey.AllScopes()...)
		path := "/v1/taxpayers/" + e.taxpayer + "/invoices"
		length := []string{"Content-Type: application/json", "Content-Length: 1000", "Idempotency-Key: k"}
		for _, tt := range []struct {
			name, text string
			status     int // 0: closed without an answer
		}{
			{"a header", "GET " + path + " HTTP/1.1\r\nHost: a\r\nX-Slow: ", 0},
			{"a body", hasty.rawRequest(http.MethodPost, path, slowKey, length...) + `{"external_id": "slow`, http.StatusRequestTimeout},
			// The service refuses these before their body arrives; net/http waits for it.
			{"a body without a credential", hasty.rawRequest(http.MethodPost, path, "", length...), http.StatusUnauthorized},
		} {
			slow := make([]*rawConn, clients)
			for i := range slow {
				slow[i] = hasty.dial(t)
				_, err := io.WriteString(slow[i], tt.text)
				e.must(err)
			}
			for _, c := range slow {
				a, err := c.answer(http.MethodPost)
				switch {
				case tt.status == 0 && err == nil:
					t.Errorf("%s: %s", tt.name, a)
				case tt.status == 0:
				case err != nil || a.status != tt.status || a.header.Get("Connection") != "close" || !c.closed():
					t.Errorf("%s: %v %s %v", tt.name, err, a, a.header)
				default:
					wantCommonHeaders(t, e.clock.now(), a)
				}
			}
		}
		hasty.wantServed(t, slowKey)
		if a := hasty.send(request{path: "fiscal-documents?external_id=slow"}); !bytes.Contains(a.body, []byte(`"data":[]`)) {
			t.Error(a)
		}
	})
}

// One credential sends many of the largest bodies at the same time. Others are served
// meanwhile. A large creation that is refused is sent again, and all are accepted.
func TestLargeCreationsDoNotDelayOthers(t *testing.T) {
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		large := e.newTenant(1)
		const most = 1 << 20
		var clients sync.WaitGroup
		var heaviest atomic.Int64
		for i := range min(24*factor(), 64) {
			clients.Go(func() {
				creation := request{method: http.MethodPost, path: "invoices", idem: fmt.Sprint("k", i), body: bodyOfSize(fmt.Sprint("large-", i), most)}
				a, err := large.try(creation)
				for err == nil && a.status == http.StatusTooManyRequests && a.header.Get("Retry-After") != "" {
					a, err = large.try(creation)
				}
				if err != nil || a.status != http.StatusAccepted {
					t.Errorf("large creation %d: %v %s", i, err, a)
				}
				heaviest.Store(max(heaviest.Load(), e.used("body_bytes")))
			})
		}
		e.wantCreations(t)
		clients.Wait()
		if n := heaviest.Load(); n > 16<<20 {
			t.Errorf("the bodies of one credential took %d bytes", n)
		}
	})
}

// A flood of wrong keys takes nothing from a tenant at the same address.
func TestWrongKeysDoNotDelayOthers(t *testing.T) {
	oneEngine(t, envOptions{rateLimit: 100_000}, func(t *testing.T, e *env) {
		var clients sync.WaitGroup
		var failed, refused atomic.Int64
		const attempts, each = 32, 20
		for range attempts {
			clients.Go(func() {
				for range each {
					a, err := e.try(request{path: "invoices", key: unknownKey(t, fiscal.Sandbox)})
					switch {
					case err == nil && a.status == http.StatusUnauthorized:
						failed.Add(1)
					case err == nil && a.status == http.StatusTooManyRequests:
						refused.Add(1)
					default:
						t.Errorf("%v %s", err, a)
					}
				}
			})
		}
		e.wantCreations(t)
		clients.Wait()
		if failed.Load() != 300 || refused.Load() != attempts*each-300 {
			t.Errorf("%d answers 401 and %d answers 429", failed.Load(), refused.Load())
		}
	})
}

// Answers that clients read slowly take a limited amount of memory for each
// credential.
func TestAnswersBeingReadAreLimited(t *testing.T) {
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		limits := fewSlots()
		limits.AnswerBytes = 2 << 20 // of which a credential may hold a quarter
		limited := e.withLimits(t, limits)
		slow := limited.newTenant(1)
		for i := range 100 {
			slow.created(slow.create(fmt.Sprint("k", i), invoiceBody(strings.Repeat("😀", 190)+fmt.Sprint(i))))
		}
		page := slow.send(request{path: "invoices?limit=100"})
		held := 0
		for ; held+len(page.body) <= 512<<10; held += len(page.body) {
			conn := limited.dialNarrow(t)
			_, err := io.WriteString(conn, e.rawRequest(http.MethodGet, "/v1/taxpayers/"+slow.taxpayer+"/invoices?limit=100", slow.key))
			e.must(err)
			eventually(t, "the answer is being read", func() bool { return limited.used("answer_bytes") == int64(held+len(page.body)) })
		}
		a := slow.send(request{path: "invoices?limit=100"})
		if a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") != "1" {
			t.Errorf("another large answer of the credential: %.200s", a)
		}
		wantStatus(t, "a small answer of the credential", slow.send(request{path: "invoices?limit=1"}), http.StatusOK)
		wantStatus(t, "a creation of the credential", slow.create("last", invoiceBody("last")), http.StatusAccepted)
		if n := limited.used("slots"); n != 0 {
			t.Errorf("slow readers hold %d slots", n)
		}
	})
}

// The routes that need no credential count by address, as failed requests do. Probes
// have a window of their own.
func TestPublicRoutesAreLimitedByAddress(t *testing.T) {
	oneEngine(t, envOptions{rateLimit: 1}, func(t *testing.T, e *env) {
		get := func(path string) response {
			t.Helper()
			a, err := e.getPlain(t, path)
			e.must(err)
			return a
		}
		for i := range 300 {
			path := "/v1/openapi.json"
			if i%2 == 0 {
				path = "/docs"
			}
			if a := get(path); a.status != http.StatusOK {
				t.Fatalf("request %d to %s: %d", i+1, path, a.status)
			}
		}
		for _, path := range []string{"/v1/openapi.json", "/docs"} {
			if a := get(path); a.status != http.StatusTooManyRequests || a.code() != "rate_limited" || a.header.Get("Retry-After") == "" {
				t.Errorf("%s beyond the limit: %s", path, a)
			}
		}
		wantStatus(t, "a tenant at the same address", e.send(request{path: "invoices"}), http.StatusOK)
		for i := range 300 {
			path := "/livez"
			if i%10 == 0 {
				path = "/readyz"
			}
			if a := get(path); a.status != http.StatusOK {
				t.Fatalf("probe %d: %s", i+1, a)
			}
		}
		for _, path := range []string{"/livez", "/readyz"} {
			if a := get(path); a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") == "" {
				t.Errorf("%s beyond the limit: %s", path, a)
			}
		}
	})
}

// A proxy on this machine must not pass the metrics on.
func TestMetricsAreOnlyForClientsOnThisMachine(t *testing.T) {
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		for name, tt := range map[string]struct {
			host   string
			header string
			status int
		}{
			"a local client":                    {"127.0.0.1:8080", "", http.StatusOK},
			"a proxy that adds its client":      {"127.0.0.1:8080", "X-Forwarded-For: 203.0.113.9\r\n", http.StatusNotFound},
			"a proxy that adds an empty header": {"127.0.0.1:8080", "X-Forwarded-For:\r\n", http.StatusNotFound},
			"a proxy that adds nothing":         {"invoices.example", "", http.StatusNotFound},
		} {
			a := e.dial(t).exchange(t, http.MethodGet, "GET /metrics HTTP/1.1\r\nHost: "+tt.host+"\r\n"+tt.header+"\r\n")
			if a.status != tt.status {
				t.Errorf("%s: %.100s", name, a)
			}
		}
	})
}
