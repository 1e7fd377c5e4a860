package main

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"

	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/node"
)

// listeners are the open listeners of the process; nil where a flag opens none.
type listeners struct{ api, receiver, console, metrics net.Listener }

// listeners opens a listener for each address of the flags. The caller closes them.
func (c serveCmd) listeners(ctx context.Context) (all listeners, err error) {
	for _, one := range []struct {
		address string
		to      *net.Listener
	}{{c.Listen, &all.api}, {c.ReceiverListen, &all.receiver}, {c.ConsoleListen, &all.console}, {c.MetricsListen, &all.metrics}} {
		if one.address == "" && one.to != &all.api {
			continue
		}
		if *one.to, err = listenOn(ctx, one.address); err != nil {
			all.close()
			return listeners{}, err
		}
	}
	return all, nil
}

// close closes the listeners that no server has closed.
func (l listeners) close() {
	for _, one := range []net.Listener{l.api, l.receiver, l.console, l.metrics} {
		if one != nil {
			_ = one.Close() // an error says that a server has closed it already
		}
	}
}

// servers returns what answers on each listener. Only the listener of the metrics has no TLS.
func (c serveCmd) servers(all listeners, config serveConfig, n *node.Node) []node.Server {
	servers := []node.Server{{Listener: config.tls.wrap(n.Limit(all.api), c.TLSClientCertificates), Handler: n.Handler()}}
	if all.receiver != nil {
		servers = append(servers, node.Server{Listener: config.tls.wrap(n.Limit(all.receiver), false), Handler: n.ReceiverHandler()})
	}
	if all.console != nil {
		servers = append(servers, node.Server{Listener: config.tls.wrap(n.Limit(all.console), false), Handler: n.ConsoleHandler()})
	}
	if all.metrics != nil {
		servers = append(servers, node.Server{Listener: all.metrics, Handler: n.MetricsHandler()})
	}
	return servers
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

// address returns the address at which a listener is reached.
func (c serveConfig) address(asked string, l net.Listener) string {
	return c.scheme() + "://" + reachable(asked, l.Addr())
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
