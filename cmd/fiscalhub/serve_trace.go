package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/otlp"
	"github.com/fiscalhub/fiscalhub/internal/trace"
)

// startTracer starts the export of traces when the standard environment variables of
// OpenTelemetry ask for it, and returns nil when they do not. The caller closes the
// tracer. A variable that is not valid turns the export off with a warning: invoices are
// worth more than their traces.
func startTracer(ctx context.Context, now func() time.Time, log *slog.Logger) *trace.Tracer {
	tracer, err := newTracer(now, log)
	if err != nil {
		log.Warn("Traces are not exported. Correct the environment variable and restart the service to export them.", "error", err.Error())
	}
	if tracer != nil {
		go tracer.Run(context.WithoutCancel(ctx)) // until Close
	}
	return tracer
}

// newTracer returns a tracer as the environment variables ask for it, or nil when they ask
// for none. It fails when a variable is not valid.
func newTracer(now func() time.Time, log *slog.Logger) (*trace.Tracer, error) {
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
			err = lang.Errorf("the file must contain certificates in PEM", "el archivo debe contener certificados en PEM")
		}
		if err != nil {
			return nil, lang.Errorf("the file of OTEL_EXPORTER_OTLP_CERTIFICATE: %s", "el archivo de OTEL_EXPORTER_OTLP_CERTIFICATE: %s", err)
		}
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	}
	tracer, err := trace.New(trace.Options{Config: config, Sender: otlp.New(target, &http.Client{Transport: transport}), Now: now, Log: log})
	if err != nil {
		return nil, err
	}
	log.Info("Traces are exported.", "endpoint", config.Endpoint())
	return tracer, nil
}
