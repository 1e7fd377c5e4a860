package trace_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/otlp"
	"github.com/fiscalhub/fiscalhub/internal/otlp/otlptest"
	"github.com/fiscalhub/fiscalhub/internal/trace"
)

const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// env is a tracer that exports to a collector.
type env struct {
	*trace.Tracer
	collector *otlptest.Collector
	log       bytes.Buffer
	now       time.Time
}

// start starts a tracer with environment variables, which come in pairs.
func start(t *testing.T, variables ...string) *env {
	t.Helper()
	e := &env{collector: otlptest.New(t), now: time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)}
	all := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": e.collector.URL + "/"}
	for i := 0; i < len(variables); i += 2 {
		all[variables[i]] = variables[i+1]
	}
	config, on, err := trace.ReadConfig(func(name string) string { return all[name] }, "1.2.3")
	if err != nil || !on {
		t.Fatalf("on is %v, %v", on, err)
	}
	e.Tracer, err = trace.New(trace.Options{
		Config: config, Sender: otlp.New(config.Target(), &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}), Log: slog.New(slog.NewTextHandler(&e.log, nil)),
		Now: func() time.Time { e.now = e.now.Add(time.Second); return e.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	go e.Run(t.Context())
	return e
}

func TestContextIsReadAndWritten(t *testing.T) {
	t.Parallel()
	c, ok := trace.Parse(traceparent)
	if !ok || c.String() != traceparent || c.ID() != "4bf92f3577b34da6a3ce929d0e0e4736" || !c.Sampled {
		t.Errorf("%v, %v", c, ok)
	}
	for text, want := range map[string]string{
		strings.TrimSuffix(traceparent, "1") + "0":   strings.TrimSuffix(traceparent, "1") + "0",
		strings.TrimSuffix(traceparent, "01") + "ff": traceparent, // other flags are ignored
		"01" + traceparent[2:] + "-later":            traceparent, // a later version
		"":                                           "",
		traceparent[:54]:                             "",
		traceparent + "-more":                        "",
		"ff" + traceparent[2:]:                       "",
		strings.ToUpper(traceparent):                 "",
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01": "",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01": "",
		"00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01": "",
		"00-4bf92f3577b34da6a3ce929d0e0e473x-00f067aa0ba902b7-01": "",
		"01" + traceparent[2:] + "later":                          "",
	} {
		c, ok := trace.Parse(text)
		if c.String() != want || ok != (want != "") {
			t.Errorf("%q: %q, %v; want %q", text, c, ok, want)
		}
	}
}

// What is exported is the same in both forms, compressed or not.
func TestSpansAreExported(t *testing.T) {
	t.Parallel()
	for name, variables := range map[string][]string{
		"protobuf": nil,
		"json":     {"OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"},
		"gzip":     {"OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := start(t, append(variables, "OTEL_SERVICE_NAME", "invoices", "OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test,service.name=other",
				"OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20secret, other=1")...)
			parent, _ := trace.Parse(traceparent)
			outer := e.Start(parent, trace.Server)
			inner := trace.Child(trace.With(t.Context(), outer), trace.Client)
			inner.Describe("authority reception", trace.String("outcome", "«lost»"), trace.Int("attempt", -3))
			inner.Fail()
			inner.End()
			outer.Describe("POST /invoices")
			outer.End()
			e.Close()
			at := func(s int) time.Time { return time.Date(2026, 11, 15, 12, 0, s, 0, time.UTC) }
			resource := map[string]string{
				"service.name": "invoices", "service.version": "1.2.3", "telemetry.sdk.language": "go", "telemetry.sdk.name": "fiscalhub", "deployment.environment": "test",
			}
			want := []otlptest.Span{
				{TraceID: parent.ID(), SpanID: spanID(outer), Parent: "00f067aa0ba902b7", Name: "POST /invoices", Kind: 2, Start: at(1), End: at(4), Attributes: map[string]string{}, Resource: resource},
				{TraceID: parent.ID(), SpanID: spanID(inner), Parent: spanID(outer), Name: "authority reception", Kind: 3, Start: at(2), End: at(3), Failed: true,
					Attributes: map[string]string{"outcome": "«lost»", "attempt": "-3"}, Resource: resource},
			}
			if diff := cmp.Diff(want, e.collector.Spans()); diff != "" {
				t.Errorf("spans (-want +got):\n%s", diff)
			}
			headers, _ := e.collector.Requests()
			if len(headers) != 1 || headers[0].Get("X-Key") != "a secret" || headers[0].Get("Other") != "1" {
				t.Errorf("sent with %v", headers)
			}
		})
	}
}

func spanID(s *trace.Span) string { return s.Context().String()[36:52] }

// Without a tracer nothing is made, and nothing is allocated. The test is not parallel,
// because it counts the allocations of the process.
func TestTracingThatIsOffCostsNothing(t *testing.T) {
	var off *trace.Tracer
	parent, _ := trace.Parse(traceparent)
	ctx := t.Context()
	work := func() {
		s := off.Start(parent, trace.Server)
		inner := trace.With(ctx, s)
		child := trace.Child(inner, trace.Client)
		if s.Recording() || child.Recording() || s.Context().Valid() || inner != ctx {
			t.Error("a span exists")
		}
		child.Describe("a", trace.String("b", "c"), trace.Int("d", 1))
		child.Fail()
		child.End()
		s.End()
	}
	if n := testing.AllocsPerRun(100, work); n != 0 {
		t.Errorf("%v allocations", n)
	}
	off.Close()
}

func TestSamplersDecide(t *testing.T) {
	t.Parallel()
	sampled, _ := trace.Parse(traceparent)
	not := sampled
	not.Sampled = false
	for sampler, want := range map[string][3]bool{ // a new trace, a sampled parent, a parent that is not sampled
		"":                         {true, true, false},
		"always_on":                {true, true, true},
		"always_off":               {false, false, false},
		"parentbased_always_on":    {true, true, false},
		"parentbased_always_off":   {false, true, false},
		"parentbased_traceidratio": {false, true, false}, // a ratio of 0
	} {
		e := start(t, "OTEL_TRACES_SAMPLER", sampler, "OTEL_TRACES_SAMPLER_ARG", "0")
		got := [3]bool{}
		for i, parent := range []trace.Context{{}, sampled, not} {
			s := e.Start(parent, trace.Server)
			got[i] = s.Recording() && s.Context().Sampled
			if !s.Context().Valid() {
				t.Errorf("%s: a span without ids", sampler)
			}
			s.End()
		}
		e.Close()
		if got != want {
			t.Errorf("%q: %v, want %v", sampler, got, want)
		}
	}
	e := start(t, "OTEL_TRACES_SAMPLER", "traceidratio", "OTEL_TRACES_SAMPLER_ARG", "0.5")
	defer e.Close()
	n := 0
	for range 1000 {
		if e.Start(trace.Context{}, trace.Internal).Recording() {
			n++
		}
	}
	if n < 400 || n > 600 {
		t.Errorf("%d of 1000 traces are sampled, want about half", n)
	}
}

func TestVariablesSayWhetherTracesAreExported(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		variables map[string]string
		endpoint  string // empty: off
		err       string // the variable that the error names
	}{
		"nothing is set":     {nil, "", ""},
		"an endpoint":        {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, "http://collector:4318/v1/traces", ""},
		"one for traces":     {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://u:p@b/x?key=secret"}, "https://b/x", ""},
		"disabled":           {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_SDK_DISABLED": "TRUE"}, "", ""},
		"no exporter":        {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_TRACES_EXPORTER": "none"}, "", ""},
		"another exporter":   {map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, "", "OTEL_TRACES_EXPORTER"},
		"no address":         {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318"}, "", "OTEL_EXPORTER_OTLP_ENDPOINT"},
		"grpc":               {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "", "OTEL_EXPORTER_OTLP_PROTOCOL"},
		"another sampler":    {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_TRACES_SAMPLER": "jaeger_remote"}, "", "OTEL_TRACES_SAMPLER"},
		"a ratio in words":   {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "half"}, "", "OTEL_TRACES_SAMPLER_ARG"},
		"a malformed header": {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_EXPORTER_OTLP_HEADERS": "secret"}, "", "OTEL_EXPORTER_OTLP_HEADERS"},
		"a timeout in words": {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_EXPORTER_OTLP_TIMEOUT": "10s"}, "", "OTEL_EXPORTER_OTLP_TIMEOUT"},
		"no batch":           {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_BSP_MAX_QUEUE_SIZE": "0"}, "", "OTEL_BSP_MAX_QUEUE_SIZE"},
	} {
		config, on, err := trace.ReadConfig(func(variable string) string { return tt.variables[variable] }, "1")
		switch {
		case tt.err != "":
			if err == nil || !strings.HasPrefix(err.Error(), tt.err) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %v, want an error about %s", name, err, tt.err)
			}
		case err != nil || on != (tt.endpoint != "") || on && config.Endpoint() != tt.endpoint:
			t.Errorf("%s: %v %s, %v", name, on, config.Endpoint(), err)
		}
	}
}

// A batch is sent again while the collector asks for that, and a slow collector loses
// spans instead of the memory of the service.
func TestASlowCollectorLosesNoMemory(t *testing.T) {
	t.Parallel()
	e := start(t, "OTEL_BSP_MAX_QUEUE_SIZE", "3", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "3", "OTEL_EXPORTER_OTLP_HEADERS", "x-key=secret")
	e.collector.AnswerNext(func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadRequest) })
	for range 5 {
		e.Start(trace.Context{}, trace.Internal).End()
	}
	e.Close()
	if n := len(e.collector.Spans()); n > 3 {
		t.Errorf("%d spans arrived", n)
	}
	if text := e.log.String(); !strings.Contains(text, "Cannot export spans") || strings.Contains(text, "secret") {
		t.Errorf("the log is %s", text)
	}
}

func TestABatchIsSentAgainWhenTheCollectorAsksForIt(t *testing.T) {
	t.Parallel()
	e := start(t, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")
	refused := make(chan struct{})
	e.collector.AnswerNext(func(w http.ResponseWriter) {
		w.WriteHeader(http.StatusServiceUnavailable)
		close(refused)
	})
	e.Start(trace.Context{}, trace.Internal).End()
	<-refused
	e.Close() // does not wait for the pause
	if n := len(e.collector.Spans()); n != 1 {
		t.Errorf("%d spans arrived", n)
	}
}

func TestANewTracerNeedsItsOptions(t *testing.T) {
	t.Parallel()
	if _, err := trace.New(trace.Options{}); err == nil {
		t.Error("a tracer without options was made")
	}
	if trace.Child(context.Background(), trace.Client) != nil {
		t.Error("a span without a parent was made")
	}
}
