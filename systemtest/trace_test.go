package systemtest

import (
	"bytes"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/otlp/otlptest"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

const (
	clientTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	clientSpan  = "00f067aa0ba902b7"
)

// serveTraced starts a server that exports traces.
func serveTraced(t *testing.T, collector *otlptest.Collector, args ...string) *harness.Server {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), harness.Program(t), append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(harness.Environment(), "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL, "OTEL_BSP_SCHEDULE_DELAY=50", "OTEL_SERVICE_NAME=invoices")
	s, err := harness.Launch(cmd)
	return s.Until(t, err)
}

// The request, the stages of the document, the calls to the authority and the webhooks are
// spans of one trace, which the client has begun. The service restarts in between.
func TestOneTraceFromTheRequestToTheVerdict(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		var back atomic.Bool
		e := envOptions{address: address, profile: "happy", wrap: func(authority http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !back.Load() && strings.Contains(strings.ToLower(r.URL.Path), "/consultaresultado/") {
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				authority.ServeHTTP(w, r)
			})
		}}.start(t)
		hooks, collector := e.listen(t), otlptest.New(t)
		args := append(slices.Clone(e.args), "--log-level", "info")
		server := serveTraced(t, collector, args...)
		got, err := e.postInvoice(t.Context(), server.Base, 2, "traceparent", "00-"+clientTrace+"-"+clientSpan+"-01")
		if err != nil || got.Status != http.StatusAccepted {
			t.Fatalf("%d %s, %v", got.Status, got.Body, err)
		}
		harness.Eventually(t, time.Minute, "a call to the authority fails", func() bool { return len(named(collector, "authority result")) > 0 })
		server.Stop(t)
		if n := strings.Count(server.Log.String(), `"trace_id":"`+clientTrace+`"`); n < 3 {
			t.Errorf("%d lines of the log have the id of the trace, want those of the request and of the stages:\n%s", n, server.Log)
		}
		back.Store(true)
		server = serveTraced(t, collector, args...)
		harness.Eventually(t, time.Minute, "the webhook receives the verdict", func() bool { return len(hooks.arrivals("fiscal_document.accepted")) > 0 })
		server.Stop(t)
		checkTrace(t, e, hooks, collector)
	})
}

func named(c *otlptest.Collector, name string) (found []otlptest.Span) {
	for _, s := range c.Spans() {
		if s.Name == name {
			found = append(found, s)
		}
	}
	return found
}

// checkTrace checks that the spans form one trace, and that they have no contents.
func checkTrace(t *testing.T, e *env, hooks *hookListener, collector *otlptest.Collector) {
	t.Helper()
	requests := named(collector, "POST /v1/taxpayers/{taxpayer_id}/invoices")
	if len(requests) != 1 || requests[0].TraceID != clientTrace || requests[0].Parent != clientSpan || requests[0].Attributes["fiscalhub.invoice_id"] == "" {
		t.Fatalf("the request has the spans %+v", requests)
	}
	request := requests[0]
	ids := map[string]otlptest.Span{request.SpanID: request}
	failures := 0
	for _, s := range collector.Spans() {
		if s.Resource["service.name"] != "invoices" {
			t.Errorf("the span %s is of the service %s", s.Name, s.Resource["service.name"])
		}
		ids[s.SpanID] = s
	}
	for _, name := range []string{
		"stage issue", "stage submit", "stage poll", "authority reception", "authority result", "webhook fiscal_document.accepted",
	} {
		found := named(collector, name)
		if len(found) == 0 {
			t.Errorf("there is no span %s", name)
		}
		for _, s := range found {
			if s.TraceID != clientTrace {
				t.Errorf("the span %s is of the trace %s", name, s.TraceID)
			}
			parent, ok := ids[s.Parent]
			if strings.HasPrefix(name, "authority ") {
				ok = ok && strings.HasPrefix(parent.Name, "stage ")
			} else {
				ok = ok && s.Parent == request.SpanID && s.Attributes["fiscalhub.document_id"] != ""
			}
			if !ok || s.End.Before(s.Start) {
				t.Errorf("the span %s is %+v, and its parent %q", name, s, parent.Name)
			}
			if s.Failed {
				failures++
			}
		}
	}
	if failures == 0 {
		t.Error("the failed call to the authority is not a failed span")
	}
	_, bodies := collector.Requests()
	all := bytes.Join(bodies, nil)
	for _, secret := range []string{e.client.Key, hooks.url, "199000021", "199000013", "ext-2", "Bearer", "Prueba", "whsec_", "key-2"} {
		if bytes.Contains(all, []byte(secret)) {
			t.Errorf("the spans contain %q", secret)
		}
	}
}
