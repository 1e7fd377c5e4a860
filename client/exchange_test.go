package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// seen is a request that the test server received.
type seen struct {
	method, uri, body string
	header            http.Header
}

// script is a server that answers the first request with the first step and so on.
// The last step answers all later requests. It keeps the requests.
type script struct {
	mu    sync.Mutex
	steps []http.HandlerFunc
	seen  []seen
	waits []time.Duration
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	s.mu.Lock()
	step := s.steps[min(len(s.seen), len(s.steps)-1)]
	s.seen = append(s.seen, seen{r.Method, r.URL.RequestURI(), string(body), r.Header})
	s.mu.Unlock()
	w.Header().Set("X-Request-Id", r.Header.Get("X-Request-Id"))
	step(w, r)
}

// start returns a client of a server that answers with steps. The client does not
// wait between attempts; the script records the waits.
func start(t *testing.T, opts []Option, steps ...http.HandlerFunc) (*Client, *script) {
	t.Helper()
	s := &script{steps: steps}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	c, err := New(server.URL, testKey, taxpayer, opts...)
	if err != nil {
		t.Fatal(err)
	}
	c.http.Transport = &http.Transport{} // servers that end close the connections of the default one
	c.wait = func(ctx context.Context, d time.Duration) error {
		s.waits = append(s.waits, d)
		return ctx.Err()
	}
	return c, s
}

// testContext returns a context that ends with the test. testing.T has one only from Go
// 1.24 on.
func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	return ctx
}

// asError returns the answer of the API that err is.
func asError(err error) (*Error, bool) {
	var e *Error
	return e, errors.As(err, &e)
}

func reply(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		if _, err := io.WriteString(w, body); err != nil {
			panic(http.ErrAbortHandler)
		}
	}
}

// cut ends the connection in the middle of an answer.
func cut(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000")
	w.WriteHeader(http.StatusAccepted)
	if err := http.NewResponseController(w).Flush(); err != nil {
		panic(err)
	}
	panic(http.ErrAbortHandler)
}

// drop ends the connection without an answer.
func drop(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func failure(code Code) string {
	return fmt.Sprintf(`{"error":{"code":%q,"message":"said so","request_id":"req_0123456789abcdef0123456789abcdef"}}`, code)
}

const created = `{"data":{"id":"` + someID + `","status":"queued"},"meta":{"request_id":"req_00000000000000000000000000000001"}}`

func TestRetries(t *testing.T) {
	t.Parallel()
	ok := reply(http.StatusAccepted, created, "Location", "/v1/x", "Idempotency-Replayed", "true")
	busy := reply(http.StatusServiceUnavailable, failure(CodeServiceUnavailable), "Retry-After", "3")
	limited := reply(http.StatusTooManyRequests, failure(CodeRateLimited), "Retry-After", "40")
	tests := []struct {
		name  string
		steps []http.HandlerFunc
		sent  int
		wait  time.Duration // before the second attempt, at least
		code  Code          // empty for success
	}{
		{"success at once", []http.HandlerFunc{ok}, 1, 0, ""},
		{"unavailable, then success", []http.HandlerFunc{busy, ok}, 2, 3 * time.Second, ""},
		{"limited, then success", []http.HandlerFunc{limited, ok}, 2, 40 * time.Second, ""},
		{"unavailable in a proxy's words", []http.HandlerFunc{reply(503, "<html>"), ok}, 2, firstWait / 2, ""},
		{"answer cut short, then success", []http.HandlerFunc{cut, ok}, 2, firstWait / 2, ""},
		{"everything wrong, then success", []http.HandlerFunc{busy, cut, limited, busy, ok}, 5, 3 * time.Second, ""},
		{"unavailable for good", []http.HandlerFunc{busy}, 5, 3 * time.Second, CodeServiceUnavailable},
		{"asked to wait too long", []http.HandlerFunc{reply(503, failure(CodeServiceUnavailable), "Retry-After", "3600"), ok}, 1, 0, CodeServiceUnavailable},
		{"internal error", []http.HandlerFunc{reply(500, failure(CodeInternalError)), ok}, 1, 0, CodeInternalError},
		{"refused", []http.HandlerFunc{reply(422, failure(CodeValidationError)), ok}, 1, 0, CodeValidationError},
		{"conflict", []http.HandlerFunc{reply(409, failure(CodeIdempotencyMismatch)), ok}, 1, 0, CodeIdempotencyMismatch},
		{"body not received in time", []http.HandlerFunc{reply(408, failure(CodeBadRequest)), ok}, 1, 0, CodeBadRequest},
		{"no credential", []http.HandlerFunc{reply(401, failure(CodeUnauthorized)), ok}, 1, 0, CodeUnauthorized},
		{"redirected", []http.HandlerFunc{reply(307, failure(CodeBadRequest), "Location", "/elsewhere"), ok}, 1, 0, CodeBadRequest},
		{"a success of another kind", []http.HandlerFunc{reply(200, failure(CodeBadRequest)), ok}, 1, 0, CodeBadRequest},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, s := start(t, nil, tt.steps...)
			got, err := c.CreateInvoiceJSON(testContext(t), "key-1", []byte(`{"a":1}`))
			if len(s.seen) != tt.sent {
				t.Errorf("sent %d times, want %d", len(s.seen), tt.sent)
			}
			if len(s.waits) > 0 && (s.waits[0] < tt.wait || s.waits[0] > 2*tt.wait+time.Second) {
				t.Errorf("waited %v, want about %v and not less", s.waits[0], tt.wait)
			}
			if tt.code != "" {
				if e, ok := asError(err); !ok || e.Code != tt.code {
					t.Errorf("err = %v, want code %s", err, tt.code)
				}
			} else if err != nil {
				t.Errorf("err = %v", err)
			} else if !got.Meta.Replayed || got.Meta.Location != "/v1/x" || got.Data.ID != someID {
				t.Errorf("got %+v", got)
			}
			checkSameRequest(t, s.seen)
		})
	}
}

var requestID = regexp.MustCompile(`^req_[0-9a-f]{32}$`)

// checkSameRequest checks that all attempts are equal except for the request id.
func checkSameRequest(t *testing.T, all []seen) {
	t.Helper()
	ids := map[string]bool{}
	for _, r := range all {
		if r.method != http.MethodPost || r.uri != "/v1/taxpayers/"+taxpayer+"/invoices" || r.body != `{"a":1}` ||
			r.header.Get("Idempotency-Key") != "key-1" || r.header.Get("Content-Type") != "application/json" ||
			r.header.Get("Authorization") != "Bearer "+testKey {
			t.Errorf("sent %+v", r)
		}
		id := r.header.Get("X-Request-Id")
		if !requestID.MatchString(id) || ids[id] {
			t.Errorf("request id %q, want a fresh one", id)
		}
		ids[id] = true
	}
}

func TestLostAnswerIsRetriedAndNamesTheRequest(t *testing.T) {
	t.Parallel()
	c, s := start(t, []Option{WithAttempts(3)}, drop)
	_, err := c.CreateInvoiceJSON(testContext(t), "key-1", []byte(`{"a":1}`))
	if err == nil || !strings.Contains(err.Error(), "req_") {
		t.Errorf("err = %v, want the request id in it", err)
	}
	if _, ok := asError(err); ok {
		t.Errorf("a lost answer became an *Error: %v", err)
	}
	var lost *ConnectionError
	if !errors.As(err, &lost) || !requestID.MatchString(lost.RequestID) {
		t.Errorf("err = %#v, want a *ConnectionError with the request id", err)
	}
	if strings.Contains(fmt.Sprintf("%+v %#v", err, err), testKey) {
		t.Error("the error contains the key")
	}
	if len(s.waits) != 2 {
		t.Errorf("waited %d times, want 2", len(s.waits))
	}
}

func TestUntrustedCertificateIsNotRetried(t *testing.T) {
	t.Parallel()
	s := &script{steps: []http.HandlerFunc{reply(200, "{}")}}
	server := httptest.NewUnstartedServer(s)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	// On a busy machine the handshake may take longer than the default of ten seconds,
	// and the client would retry for that reason.
	transport := &http.Transport{TLSHandshakeTimeout: time.Minute}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := New(server.URL, testKey, taxpayer, WithHTTPClient(&http.Client{Transport: transport}))
	if err != nil {
		t.Fatal(err)
	}
	c.wait = func(context.Context, time.Duration) error {
		t.Error("the client retried")
		return nil
	}
	if _, err := c.Invoice(testContext(t), someID); err == nil {
		t.Error("the client trusted an unknown certificate")
	}
}

func TestContextEndsRetries(t *testing.T) {
	t.Parallel()
	busy := reply(http.StatusServiceUnavailable, failure(CodeServiceUnavailable), "Retry-After", "60")
	t.Run("cancelled while waiting", func(t *testing.T) {
		t.Parallel()
		c, s := start(t, nil, busy)
		ctx, cancel := context.WithCancel(testContext(t))
		c.wait = func(ctx context.Context, d time.Duration) error {
			cancel()
			return sleep(ctx, d)
		}
		_, err := c.Invoice(ctx, someID)
		if !errors.Is(err, context.Canceled) || len(s.seen) != 1 {
			t.Errorf("err = %v after %d attempts, want context.Canceled after 1", err, len(s.seen))
		}
		if e, ok := asError(err); !ok || e.RetryAfter != time.Minute {
			t.Errorf("err = %v, want the last answer in it", err)
		}
	})
	t.Run("a wait beyond the deadline is not started", func(t *testing.T) {
		t.Parallel()
		c, s := start(t, nil, busy)
		c.wait = sleep
		ctx, cancel := context.WithTimeout(testContext(t), 30*time.Second)
		defer cancel()
		_, err := c.Invoice(ctx, someID)
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil || len(s.seen) != 1 {
			t.Errorf("err = %v after %d attempts, want context.DeadlineExceeded at once", err, len(s.seen))
		}
	})
	t.Run("cancelled while sending", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(testContext(t))
		c, s := start(t, nil, func(_ http.ResponseWriter, r *http.Request) {
			cancel()
			<-r.Context().Done()
		})
		if _, err := c.Invoice(ctx, someID); !errors.Is(err, context.Canceled) || len(s.waits) != 0 {
			t.Errorf("err = %v after %d waits, want context.Canceled after none", err, len(s.waits))
		}
	})
}

func TestSleepEndsAfterTheWait(t *testing.T) {
	t.Parallel()
	if err := sleep(testContext(t), time.Millisecond); err != nil {
		t.Errorf("err = %v", err)
	}
}

func TestBackOffGrows(t *testing.T) {
	t.Parallel()
	err := &ConnectionError{"req_", io.EOF}
	for attempt := 1; attempt < 100; attempt++ {
		full := min(firstWait<<min(attempt-1, 10), lastWait)
		wait, again := retry(err, attempt)
		if !again || wait < full/2 || wait > full {
			t.Errorf("attempt %d: wait %v, %v, want %v to %v", attempt, wait, again, full/2, full)
		}
	}
}

func TestError(t *testing.T) {
	t.Parallel()
	body := `{"error":{"code":"validation_error","message":"2 problems","request_id":"req_0123456789abcdef0123456789abcdef",` +
		`"details":[{"field":"lines.0.quantity","code":"invalid_decimal","message":"not a decimal"},{"field":"b","code":"c","message":"d"}]}}`
	c, _ := start(t, nil, reply(422, body, "Location", "/v1/other"))
	_, err := c.Invoice(testContext(t), someID)
	e, ok := asError(err)
	if !ok {
		t.Fatalf("err = %v, want an *Error", err)
	}
	if e.HTTPStatus != 422 || e.Code != CodeValidationError || e.RequestID != "req_0123456789abcdef0123456789abcdef" ||
		len(e.Details) != 2 || e.Details[0] != (Detail{"lines.0.quantity", "invalid_decimal", "not a decimal"}) || e.Location != "/v1/other" {
		t.Errorf("got %+v", e)
	}
	const want = "client: answer 422 validation_error: 2 problems (lines.0.quantity: not a decimal; 2 in all) [req_0123456789abcdef0123456789abcdef]"
	if e.Error() != want {
		t.Errorf("Error() = %s, want %s", e, want)
	}
}

func TestErrorOfAProxyHasItsStatus(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "<html>", "null", `{"error":null}`, `[]`, `{"error":"text"}`} {
		c, _ := start(t, nil, reply(http.StatusBadGateway, body, "Retry-After", "soon"))
		_, err := c.Invoice(testContext(t), someID)
		e, ok := asError(err)
		if !ok || e.HTTPStatus != http.StatusBadGateway || e.Code != "" || e.Message != "Bad Gateway" || e.RetryAfter != 0 || !requestID.MatchString(e.RequestID) {
			t.Errorf("body %q: err = %v", body, err)
		}
	}
}

func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	endless := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			chunk := make([]byte, 1<<20)
			for {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}
	}
	c, _ := start(t, nil, endless(http.StatusOK))
	if _, err := c.DocumentXML(testContext(t), someID); !errors.Is(err, ErrTooLarge) {
		t.Errorf("an endless success: err = %v, want ErrTooLarge", err)
	}
	c, _ = start(t, nil, endless(http.StatusBadGateway))
	_, err := c.Invoice(testContext(t), someID)
	if e, ok := asError(err); !ok || e.HTTPStatus != http.StatusBadGateway {
		t.Errorf("an endless error: err = %v, want its status", err)
	}
}
