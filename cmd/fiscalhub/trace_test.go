package main

import (
	"bytes"
	"log/slog"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/otlp/otlptest"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

const (
	clientTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	clientSpan  = "00f067aa0ba902b7"
)

// serveTraced starts a server that exports traces.
func serveTraced(t *testing.T, collector *otlptest.Collector, args ...string) *serverProcess {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program(t), append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(environment(), "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL, "OTEL_BSP_SCHEDULE_DELAY=50", "OTEL_SERVICE_NAME=invoices")
	s, err := launch(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-s.done
	})
	return s
}

// The request, the stages of the document, the calls to the authority and the webhooks are
// spans of one trace, which the client has begun. The service restarts in between.
func TestOneTraceFromTheRequestToTheVerdict(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		var back atomic.Bool
		e := newEnvWith(t, envOptions{program: program(t), address: address, profile: "happy", wrap: func(authority http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !back.Load() && strings.Contains(strings.ToLower(r.URL.Path), "/consultaresultado/") {
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				authority.ServeHTTP(w, r)
			})
		}})
		hooks, collector := e.listen(t), otlptest.New(t)
		args := append(slices.Clone(e.args), "--log-level", "info")
		server := serveTraced(t, collector, args...)
		got, err := e.postInvoice(t.Context(), server.base, 2, "traceparent", "00-"+clientTrace+"-"+clientSpan+"-01")
		if err != nil || got.status != http.StatusAccepted {
			t.Fatalf("%d %s, %v", got.status, got.body, err)
		}
		eventually(t, time.Minute, "a call to the authority fails", func() bool { return len(named(collector, "authority result")) > 0 })
		server.signal(t, syscall.SIGINT)
		server.ended(t)
		if n := strings.Count(server.log.String(), `"trace_id":"`+clientTrace+`"`); n < 3 {
			t.Errorf("%d lines of the log have the id of the trace, want those of the request and of the stages:\n%s", n, server.log)
		}
		back.Store(true)
		server = serveTraced(t, collector, args...)
		eventually(t, time.Minute, "the webhook receives the verdict", func() bool { return len(hooks.arrivals("fiscal_document.accepted")) > 0 })
		server.signal(t, syscall.SIGINT)
		server.ended(t)
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
	for _, secret := range []string{e.client.key, hooks.url, "199000021", "199000013", "ext-2", "Bearer", "Prueba", "whsec_", "key-2"} {
		if bytes.Contains(all, []byte(secret)) {
			t.Errorf("the spans contain %q", secret)
		}
	}
}

// A variable that is not valid does not keep the service from starting.
func TestAWrongVariableTurnsTracesOff(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4317")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	var text bytes.Buffer
	if tracer := startTracer(t.Context(), time.Now, slog.New(slog.NewTextHandler(&text, nil))); tracer != nil {
		t.Error("traces are exported")
	}
	if !strings.Contains(text.String(), "OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf or http/json") {
		t.Errorf("the log is %s", &text)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "")
	t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", filepath.Join(t.TempDir(), "none.pem"))
	if _, err := newTracer(time.Now, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "OTEL_EXPORTER_OTLP_CERTIFICATE") {
		t.Errorf("err = %v", err)
	}
}
