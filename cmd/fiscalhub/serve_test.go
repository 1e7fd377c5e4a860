package main

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

// browse opens an address as a browser does, and returns the status and the address of a
// redirect.
func browse(ctx context.Context, t *testing.T, url string) (status int, location string) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	must(t, err)
	r.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	got, err := harness.HTTP.Transport.RoundTrip(r)
	must(t, err)
	_ = got.Body.Close()
	return got.StatusCode, got.Header.Get("Location")
}

// The sandbox serves the console beside the API, other environments only when a flag says
// so, and a listener of its own takes it away from the API.
func TestWhereTheConsoleIsServed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		flags  []string
		beside int // status of /console/sign-in beside the API
		home   int // status of / for a browser
		own    bool
	}{
		"sandbox":                    {nil, 200, 303, false},
		"sandbox, own listener":      {[]string{"--console-listen", "127.0.0.1:0"}, 404, 404, true},
		"production":                 {[]string{"--environment", "production"}, 404, 404, false},
		"production, --console":      {[]string{"--environment", "production", "--console"}, 200, 404, false},
		"certification, own address": {[]string{"--environment", "certification", "--console", "--console-base-url", "https://invoices.example/"}, 200, 404, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := harness.Serve(t, append(tt.flags, "--data", t.TempDir(), "--no-bootstrap", "--no-witness")...)
			if got, _ := browse(t.Context(), t, server.Base+"/console/sign-in"); got != tt.beside {
				t.Errorf("beside the API the console answers %d, want %d", got, tt.beside)
			}
			if got, _ := browse(t.Context(), t, server.Base+"/"); got != tt.home {
				t.Errorf("/ answers a browser with %d, want %d", got, tt.home)
			}
			address := harness.Submatch(server.Greeting, `Console (\S+)`)
			if (address != "") != (tt.own || tt.beside == 200) {
				t.Errorf("the server prints the address %q", address)
			}
			if strings.Contains(name, "own address") && address != "https://invoices.example/console/" {
				t.Errorf("the server prints %s", address)
			}
			if tt.own {
				if got, _ := browse(t.Context(), t, address+"sign-in"); got != http.StatusOK {
					t.Errorf("the own listener answers %d", got)
				}
				if got, to := browse(t.Context(), t, strings.TrimSuffix(address, "console/")); got != http.StatusSeeOther || to != "/console/" {
					t.Errorf("/ of the own listener answers %d to %s", got, to)
				}
				if got, _ := browse(t.Context(), t, strings.Replace(address, "/console/", "/v1/openapi.json", 1)); got != http.StatusNotFound {
					t.Errorf("the own listener answers the API with %d", got)
				}
			}
		})
	}
}

// An empty sandbox prints a link for the operator demo. It is valid once, and a second
// start prints none.
func TestAnEmptySandboxPrintsALinkOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := harness.Serve(t, "--data", dir)
	link := harness.Submatch(server.Greeting, `(http\S+/console/welcome/\S+)`)
	if link == "" {
		t.Fatalf("the server prints no link:\n%s", server.Greeting)
	}
	if got, _ := browse(t.Context(), t, link); got != http.StatusOK {
		t.Errorf("the link answers %d", got)
	}
	if again := harness.Serve(t, "--data", dir, "--no-bootstrap=false"); strings.Contains(again.Greeting, "welcome") {
		t.Errorf("a second start prints a link:\n%s", again.Greeting)
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
