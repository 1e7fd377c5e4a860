package main

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fiscalhub/fiscalhub/internal/api"
	"github.com/fiscalhub/fiscalhub/internal/receiver"
)

// listeners are the listeners of the process and their servers.
type listeners struct {
	opened    []net.Listener
	listeners []net.Listener // in the order of servers
	servers   []*http.Server
}

func (l *listeners) open(ctx context.Context, address string) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err == nil {
		l.opened = append(l.opened, listener)
	}
	return listener, err
}

func (l *listeners) serve(at net.Listener, h http.Handler, log *slog.Logger) {
	l.listeners, l.servers = append(l.listeners, at), append(l.servers, api.NewServer(h, log))
}

func (l *listeners) close() {
	for _, one := range l.opened {
		_ = one.Close() // a server has closed its own listener already
	}
}

// listen serves the API, the receiver and, if asked, the metrics. It returns the
// address of the receiver when that has a listener of its own.
func (c serveCmd) listen(ctx context.Context, all *listeners, main net.Listener, config serveConfig, a *api.API, received http.Handler, registry *prometheus.Registry, log *slog.Logger) (receiverURL string, err error) {
	handler := a.Handler(registry)
	if c.ReceiverListen == "" {
		handler = api.Mount(handler, receiver.Serves, received)
	} else {
		own, err := all.open(ctx, c.ReceiverListen)
		if err != nil {
			return "", err
		}
		receiverURL = config.scheme() + "://" + address(c.ReceiverListen, own.Addr())
		all.serve(config.wrap(api.LimitConnections(own)), api.Mount(http.NotFoundHandler(), receiver.Serves, received), log)
	}
	all.serve(config.wrap(api.LimitConnections(main)), handler, log)
	if c.MetricsListen != "" {
		own, err := all.open(ctx, c.MetricsListen)
		if err != nil {
			return "", err
		}
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", api.MetricsHandler(registry))
		all.serve(own, mux, log)
	}
	return receiverURL, nil
}

// address returns the host that was asked for with the port that the listener got.
func address(asked string, got net.Addr) string {
	host, _, err := net.SplitHostPort(asked)
	_, port, errGot := net.SplitHostPort(got.String())
	if err != nil || errGot != nil {
		return got.String()
	}
	if host == "" {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

func (c serveConfig) wrap(l net.Listener) net.Listener {
	if c.tls == nil {
		return l
	}
	return tls.NewListener(l, c.tls)
}
