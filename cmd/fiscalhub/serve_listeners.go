package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fiscalhub/fiscalhub/internal/api"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/receiver"
)

// listeners are the open listeners of the process, and the servers that accept
// on them.
type listeners struct {
	opened  []net.Listener
	servers []boundServer
	limit   func(net.Listener) net.Listener // adds the limits of connections
}

// boundServer is an HTTP server and the listener that it accepts on.
type boundServer struct {
	server   *http.Server
	listener net.Listener
}

func (l *listeners) open(ctx context.Context, address string) (net.Listener, error) {
	listener, err := listenOn(ctx, address)
	if err == nil {
		l.opened = append(l.opened, listener)
	}
	return listener, err
}

// listenOn listens on an address. The error says what to do.
func listenOn(ctx context.Context, address string) (net.Listener, error) {
	if address == "" { // it would be a random port on all addresses
		return nil, wrongUsage("an address to listen on must not be empty: it must be like 127.0.0.1:8080",
			"una dirección en la que se escucha no puede estar vacía: debe ser como 127.0.0.1:8080")
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, lang.Errorf("another program listens on %s: stop it, or choose another address",
			"otro programa escucha en %s: deténgalo o elija otra dirección", address)
	case errors.Is(err, syscall.EACCES):
		return nil, lang.Errorf("this user may not listen on %s: choose a port above 1023",
			"este usuario no puede escuchar en %s: elija un puerto mayor de 1023", address)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, lang.Errorf("this machine has no address %s: choose one of its own",
			"esta máquina no tiene la dirección %s: elija una suya", address)
	}
	var wrong *net.AddrError
	var unknown *net.DNSError
	if errors.As(err, &wrong) || errors.As(err, &unknown) {
		return nil, lang.Errorf("%s is not an address to listen on: it must be like 127.0.0.1:8080: %s",
			"%s no es una dirección en la que se pueda escuchar: debe ser como 127.0.0.1:8080: %s", address, err)
	}
	return listener, err
}

// add adds a server, which accepts nothing before start.
func (l *listeners) add(on net.Listener, h http.Handler, log *slog.Logger) {
	l.servers = append(l.servers, boundServer{api.NewServer(h, log), on})
}

// start lets all servers accept. Each server sends its error when it ends.
func (l *listeners) start() <-chan error {
	served := make(chan error, len(l.servers))
	for _, s := range l.servers {
		go func() { served <- s.server.Serve(s.listener) }()
	}
	return served
}

// shutdown closes the listeners and waits until the open requests have finished
// or ctx ends.
func (l *listeners) shutdown(ctx context.Context) error {
	var err error
	for _, s := range l.servers {
		err = errors.Join(err, s.server.Shutdown(ctx))
	}
	return err
}

// close closes the listeners that no server has closed.
func (l *listeners) close() {
	for _, one := range l.opened {
		_ = one.Close() // an error says that a server has closed it already
	}
}

// receiverListener is the listener of the receiver. It is zero when the API's listener
// serves the receiver.
type receiverListener struct {
	net.Listener
	url string
}

// openReceiver opens the listener of the receiver, if it has one of its own.
func (c serveCmd) openReceiver(ctx context.Context, all *listeners, config serveConfig) (receiverListener, error) {
	if c.ReceiverListen == "" {
		return receiverListener{}, nil
	}
	own, err := all.open(ctx, c.ReceiverListen)
	if err != nil {
		return receiverListener{}, err
	}
	return receiverListener{own, config.scheme() + "://" + reachable(c.ReceiverListen, own.Addr())}, nil
}

// publicURL returns the address that taxpayers register for the receiver. The sandbox has
// no receiver.
func (r receiverListener) publicURL(config serveConfig) string {
	switch {
	case config.env == fiscal.Sandbox:
		return ""
	case r.url != "":
		return r.url
	}
	return config.baseURL
}

// listen adds the servers of the API, of the receiver, of the console and, with
// --metrics-listen, of the metrics.
func (c serveCmd) listen(ctx context.Context, all *listeners, main net.Listener, own receiverListener, config serveConfig, a *api.API, received http.Handler, pages *servedConsole, registry *prometheus.Registry, log *slog.Logger) error {
	handler := a.Handler(registry)
	if own.Listener == nil {
		handler = api.Mount(handler, receiver.Serves, received)
	} else {
		all.add(config.tls.wrap(all.limit(own), false), api.Mount(http.NotFoundHandler(), receiver.Serves, received), log)
	}
	handler = below(config.baseURL, pages.mount(all, config, handler, log))
	all.add(config.tls.wrap(all.limit(main), c.TLSClientCertificates), handler, log)
	if c.MetricsListen != "" {
		own, err := all.open(ctx, c.MetricsListen)
		if err != nil {
			return err
		}
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", api.MetricsHandler(registry))
		all.add(own, mux, log)
	}
	return nil
}

// reachable returns the host that the operator asked for with the port that the
// listener has. They differ when the operator asked for port 0. A listener of all addresses
// is reached at localhost.
func reachable(asked string, got net.Addr) string {
	host, _, err := net.SplitHostPort(asked)
	_, port, errGot := net.SplitHostPort(got.String())
	if err != nil || errGot != nil {
		return got.String()
	}
	if isUnspecified(host) {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

// isUnspecified reports whether a host means all addresses of the machine, like 0.0.0.0.
func isUnspecified(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "" || err == nil && address.Unmap().WithZone("").IsUnspecified()
}

// below returns a handler that serves the API, its reference, the console and the receiver
// also below the path of the public address, for a proxy that passes the path on. The path
// itself is then what / is otherwise.
func below(baseURL string, next http.Handler) http.Handler {
	u, err := url.Parse(baseURL)
	if err != nil || u.Path == "" {
		return next
	}
	stripped := http.StripPrefix(u.Path, next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rest, ok := strings.CutPrefix(r.URL.Path, u.Path)
		if ok && (rest == "" || rest == "/") {
			home, address := *r, *r.URL
			home.URL, address.Path, address.RawPath = &address, "/", ""
			next.ServeHTTP(w, &home)
			return
		}
		if ok && slices.ContainsFunc([]string{"/v1/", "/docs", "/console", "/fe/"}, func(known string) bool { return strings.HasPrefix(rest, known) }) {
			stripped.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}
