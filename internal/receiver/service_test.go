package receiver_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/capacity"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/receiver"
)

func TestPathsAndMethods(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for _, c := range []struct {
		path  string
		allow string // "" when it is not served
	}{
		{seedPath, "GET, HEAD"},
		{"/FE/Autenticacion/API/Semilla", "GET, HEAD"},
		{"/ecf/prod/fe/autenticacion/api/semilla", "GET, HEAD"},
		{"//fe/autenticacion/api/semilla", "GET, HEAD"},
		{tokenPath, "POST"},
		{"/fe/autenticacion/api/ValidacionCertificado", "POST"},
		{"/fe/Autenticacion/api/VALIDACIONCERTIFICADO", "POST"},
		{receptionPath, "POST"},
		{"/Fe/Recepcion/Api/Ecf", "POST"},
		{"/FE/RECEPCION/API/ECF", "POST"},
		{"/fe/recepci%C3%B3n/api/ecf", "POST"},
		{"/fe/recepci%c3%b3n/api/ecf", "POST"},
		{"/FE/RECEPCI%C3%93N/API/ECF", "POST"},
		{"/a/api/b/fe/recepcion/api/ecf", "POST"},
		{"/fe/fe/recepcion/api/ecf", "POST"},
		{approvalPath, "POST"},
		{"/fe/AprobacionComercial/api/ECF", "POST"},
		{"/x%20y/fe/aprobacioncomercial/api/ecf", "POST"},
		{"/%66e/recepcion/api/ecf", "POST"},

		{"/%2566e/recepcion/api/ecf", ""}, // a path is decoded once
		{"/fe/recepci%25C3%25B3n/api/ecf", ""},
		{"/fe%252Frecepcion/api/ecf", ""},
		{"/", ""},
		{"/fe", ""},
		{"/fe/", ""},
		{"/fe/recepcion", ""},
		{"/fe/recepcion/api/ecf/", ""},
		{"/fe/recepcion/api/ecf/1", ""},
		{"/xfe/recepcion/api/ecf", ""},
		{"/recepcion/api/ecf", ""},
		{"/fe/recepcion/api", ""},
		{"/fe/recepcion/api/ecfx", ""},
		{"/fe/aprobacioncomercial/api/aprobacioncomercial", ""},
		{"/v1/taxpayers", ""},
	} {
		decoded, err := url.PathUnescape(c.path)
		if err != nil {
			t.Fatal(err)
		}
		if got := receiver.Serves(decoded); got != (c.allow != "") {
			t.Errorf("Serves(%q) is %v", decoded, got)
		}
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
			a := e.do(method, c.path, nil)
			allowed := strings.Contains(" "+c.allow+",", " "+method+",")
			switch {
			case c.allow == "" && a.status != http.StatusNotFound:
				t.Errorf("%s %s: %d", method, c.path, a.status)
			case c.allow != "" && !allowed && (a.status != http.StatusMethodNotAllowed || a.header.Get("Allow") != c.allow):
				t.Errorf("%s %s: %d, Allow %q", method, c.path, a.status, a.header.Get("Allow"))
			case allowed && method == "POST" && a.status != http.StatusBadRequest: // an empty body
				t.Errorf("%s %s: %d", method, c.path, a.status)
			case allowed && method != "POST" && a.status != http.StatusOK:
				t.Errorf("%s %s: %d", method, c.path, a.status)
			}
			if a.header.Get("X-Content-Type-Options") != "nosniff" || a.header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s %s: %v", method, c.path, a.header)
			}
			if a.status >= 400 && method != "HEAD" {
				a.message(t)
			}
		}
	}
}

func TestServesTakesDecodedPaths(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/fe/recepción/api/ecf", "/FE/RECEPCIÓN/API/ECF"} {
		if !receiver.Serves(path) {
			t.Errorf("%s is not served", path)
		}
	}
	for _, path := range []string{"/fe/recepci%zzn/api/ecf", "/fe/recepci%C3%B3n/api/ecf", "/%66e/recepcion/api/ecf"} {
		if receiver.Serves(path) {
			t.Errorf("%s is served", path)
		}
	}
}

func TestTheSandboxHasNoServices(t *testing.T) {
	t.Parallel()
	e := newEnv(t, func(o *receiver.Options) {
		*o = receiver.Options{Environment: fiscal.Sandbox, Now: o.Now}
	})
	for path, method := range map[string]string{seedPath: "GET", tokenPath: "POST", receptionPath: "POST", approvalPath: "POST"} {
		if a := e.do(method, path, strings.NewReader("<a/>")); a.status != http.StatusNotFound {
			t.Errorf("%s: %d", path, a.status)
		}
	}
}

func TestNewRequiresItsOptions(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for name, change := range map[string]func(*receiver.Options){
		"short key":      func(o *receiver.Options) { o.Keys = func() [][]byte { return [][]byte{make([]byte, 31)} } },
		"no key":         func(o *receiver.Options) { o.Keys = nil },
		"no clock":       func(o *receiver.Options) { o.Now = nil },
		"no environment": func(o *receiver.Options) { o.Environment = "" },
		"no seeds":       func(o *receiver.Options) { o.Seeds = nil },
		"no responses":   func(o *receiver.Options) { o.Responses = nil },
		"no capacity":    func(o *receiver.Options) { o.Capacity = nil },
	} {
		o := e.options
		change(&o)
		if _, err := receiver.New(o); err == nil {
			t.Errorf("%s: New returned no error", name)
		}
	}
}

func TestLimitAppliesToRequestsWithoutAToken(t *testing.T) {
	t.Parallel()
	var full atomic.Bool
	e := newEnv(t, func(o *receiver.Options) { o.Limit = func(*http.Request) bool { return !full.Load() } })
	token := e.token(peer().Identity)
	response := sign(t, peer().Identity, responseXML)
	full.Store(true)
	for path, method := range map[string]string{seedPath: "GET", tokenPath: "POST", receptionPath: "POST", approvalPath: "POST"} {
		for _, header := range [][]string{nil, {"Authorization", "Bearer x"}} {
			a := e.do(method, path, strings.NewReader(response), header...)
			if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
				t.Errorf("%s: %d %s", path, a.status, a.body)
			}
		}
	}
	if a := e.post(approvalPath, response, "Authorization", "Bearer "+token); a.status != http.StatusOK {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// A token has a limit like every credential, and so has the person who signs documents,
// with a token or without.
func TestCallersAreLimited(t *testing.T) {
	t.Parallel()
	const most = 3
	counts := map[string]int{}
	e := newEnv(t, func(o *receiver.Options) {
		o.LimitCaller = func(_ context.Context, caller string) bool {
			counts[caller]++
			return counts[caller] <= most
		}
	})
	token, response, invoice := e.token(peer().Identity), sign(t, peer().Identity, responseXML), sign(t, peer().Identity, invoiceXML)
	served := func(path, document string, header ...string) (n int) {
		t.Helper()
		for range 2 * most {
			switch a := e.post(path, document, header...); a.status {
			case http.StatusOK:
				n++
			case http.StatusServiceUnavailable:
				if a.header.Get("Retry-After") == "" {
					t.Error("no Retry-After")
				}
			default:
				t.Errorf("%d %s", a.status, a.body)
			}
		}
		return n
	}
	if n := served(approvalPath, response, "Authorization", "Bearer "+token); n != most || len(e.responses) != most {
		t.Errorf("%d responses with a token were served, and %d stored; want %d", n, len(e.responses), most)
	}
	if n := served(approvalPath, response); n != 0 {
		t.Errorf("%d more responses of the same signer were served without a token", n)
	}
	clear(counts)
	if n := served(receptionPath, invoice); n != most {
		t.Errorf("%d documents of one signer were served, want %d", n, most)
	}
	for caller := range counts {
		if caller != "signer 00112345678" {
			t.Errorf("counted %q", caller)
		}
	}
}

// The log has one line per request and nothing of the document.
func TestLogHasNoContent(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	token := e.token(peer().Identity)
	e.log.Reset()
	e.post(approvalPath, sign(t, peer().Identity, responseXML), "Authorization", "Bearer "+token)
	e.post(receptionPath, "<x>"+strings.Repeat("secreto", 100)+"</x>")
	e.do(http.MethodGet, "/fe/secreto", nil)
	text := e.log.String()
	if n := strings.Count(text, "\n"); n != 3 {
		t.Errorf("%d lines", n)
	}
	for _, secret := range []string{token, "secreto", "4425", "Signature"} {
		if strings.Contains(text, secret) {
			t.Errorf("the log contains %q:\n%s", secret, text)
		}
	}
	for _, want := range []string{"service=approval status=200", "encf=" + encf, "caller=", "service=reception status=400", "service=none status=404"} {
		if !strings.Contains(text, want) {
			t.Errorf("the log does not contain %q:\n%s", want, text)
		}
	}
}

func TestAPanicIsAnsweredWith503(t *testing.T) {
	t.Parallel()
	e := newEnv(t, func(o *receiver.Options) { o.Limit = func(*http.Request) bool { panic(errors.New("secreto")) } })
	if a := e.do(http.MethodGet, seedPath, nil); a.status != http.StatusServiceUnavailable {
		t.Errorf("%d %s", a.status, a.body)
	}
	if text := e.log.String(); !strings.Contains(text, "panic") || strings.Contains(text, "secreto") {
		t.Error(text)
	}
}

// Uploads that do not end hold no slot and no memory that others need.
func TestIdleUploadsDoNotCloseReception(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	type request struct{ send, done chan struct{} }
	pending := make([]request, 100)
	document := []byte(sign(t, peer().Identity, invoiceXML))
	for i := range pending {
		pending[i] = request{make(chan struct{}), make(chan struct{})}
		started := make(chan struct{})
		go func() {
			defer close(pending[i].done)
			body := &slowBody{started: started, send: pending[i].send, rest: bytes.NewReader(document)}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, receptionPath, body)
			if err != nil {
				t.Error(err)
				return
			}
			r.ContentLength = int64(len(document))
			e.serve(r, http.StatusOK)
		}()
		<-started
	}
	if a := e.post(receptionPath, string(document)); a.status != http.StatusOK {
		t.Errorf("a document beside %d idle uploads: %d %s", len(pending), a.status, a.body)
	}
	if a := e.post(approvalPath, sign(t, peer().Identity, responseXML)); a.status != http.StatusOK {
		t.Errorf("a response: %d %s", a.status, a.body)
	}
	for _, part := range e.options.Capacity.Usage() {
		// A body that is read counts as one, like its connection.
		if part.Used != 0 && part.Name != "stranger_body_reads" {
			t.Errorf("idle uploads hold %d of %s", part.Used, part.Name)
		}
	}
	for _, h := range pending {
		close(h.send)
		<-h.done
	}
}

// Senders that are busy with large documents get 503 and retry.
func TestReceptionIsRefusedWhenItsAddressHoldsTooMuch(t *testing.T) {
	t.Parallel()
	limits := capacity.DefaultLimits(1<<30, 2)
	limits.AddressSlots, limits.SlotPatience = 1, 0
	e := newEnv(t, func(o *receiver.Options) { o.Capacity = capacity.New(limits) })
	busy, err := e.options.Capacity.TakeSlot(t.Context(), capacity.Holder{Address: "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	document := sign(t, peer().Identity, invoiceXML)
	if a := e.post(receptionPath, document); a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
		t.Errorf("without a slot: %d %s", a.status, a.body)
	}
	busy.Release()
	if a := e.post(receptionPath, document); a.status != http.StatusOK {
		t.Errorf("afterwards: %d %s", a.status, a.body)
	}
}
