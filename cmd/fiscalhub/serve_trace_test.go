package main

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

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
