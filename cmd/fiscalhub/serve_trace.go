package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/otlp"
	"github.com/fiscalhub/fiscalhub/internal/trace"
)

// startTracer starts the export of traces when the standard environment variables of
// OpenTelemetry ask for it, and returns nil when they do not. The caller closes the
// tracer. It fails when a variable is not valid.
func startTracer(ctx context.Context, now func() time.Time, log *slog.Logger) (*trace.Tracer, error) {
	config, on, err := trace.ReadConfig(os.Getenv, version)
	if err != nil || !on {
		return nil, err
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConns: 1, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: 10 * time.Second}
	target := config.Target()
	if file := target.CertificateFile; file != "" {
		pem, err := os.ReadFile(file)
		roots := x509.NewCertPool()
		if err == nil && !roots.AppendCertsFromPEM(pem) {
			err = errors.New("the file must contain certificates in PEM")
		}
		if err != nil {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %w", err)
		}
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	}
	tracer, err := trace.New(trace.Options{Config: config, Sender: otlp.New(target, &http.Client{Transport: transport}), Now: now, Log: log})
	if err != nil {
		return nil, err
	}
	log.Info("Traces are exported.", "endpoint", config.Endpoint())
	go tracer.Run(context.WithoutCancel(ctx)) // until Close
	return tracer, nil
}
