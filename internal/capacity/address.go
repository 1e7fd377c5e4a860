package capacity

import (
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// AddressOf returns the address that the service counts a client by: an IPv4
// address, or an IPv6 network of 64 bits, because one customer of a provider has at
// least that much.
func AddressOf(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	if a.Is6() {
		if network, err := a.Prefix(64); err == nil {
			return network.String()
		}
	}
	return a.String()
}

// A ClientFinder finds the address of the client of a request.
type ClientFinder struct {
	proxies []netip.Prefix
	now     func() time.Time
	log     *slog.Logger

	mu     sync.Mutex
	warned time.Time // when the last warning was logged
}

// warnEvery is the shortest time between two warnings about a proxy.
const warnEvery = time.Hour

// NewClientFinder returns a ClientFinder that trusts the header X-Forwarded-For of
// these proxies and of no other peer.
func NewClientFinder(proxies []netip.Prefix, now func() time.Time, log *slog.Logger) *ClientFinder {
	return &ClientFinder{proxies: proxies, now: now, log: log}
}

// Address returns the address of the client of a request, as AddressOf does.
func (f *ClientFinder) Address(r *http.Request) string {
	client, _ := f.Client(r)
	if !client.IsValid() {
		return r.RemoteAddr
	}
	return AddressOf(client)
}

// Client returns the address of the client of a request. It reads X-Forwarded-For only as
// far as the addresses are those of trusted proxies. It returns false when the address is
// not known: when a proxy has sent something else than an address. The address is then
// that of the last known hop.
func (f *ClientFinder) Client(r *http.Request) (netip.Addr, bool) {
	client, ok := peerOf(r)
	if !ok {
		return netip.Addr{}, false
	}
	hops := r.Header.Values("X-Forwarded-For")
	if len(hops) > 0 {
		if !f.IsProxy(client) {
			f.warn(client)
		}
		hops = strings.Split(strings.Join(hops, ","), ",")
	}
	for i := len(hops) - 1; i >= 0 && f.IsProxy(client); i-- {
		hop, ok := parseHop(strings.TrimSpace(hops[i]))
		if !ok {
			return client, false
		}
		client = hop
	}
	return client.Unmap().WithZone(""), true
}

// parseHop parses an entry of X-Forwarded-For: an address, which some proxies put into
// brackets or write with the port of the client.
func parseHop(text string) (netip.Addr, bool) {
	if pair, err := netip.ParseAddrPort(text); err == nil {
		return pair.Addr(), true
	}
	if inner, ok := strings.CutPrefix(text, "["); ok {
		text, ok = strings.CutSuffix(inner, "]")
		if !ok {
			return netip.Addr{}, false
		}
	}
	hop, err := netip.ParseAddr(text)
	return hop, err == nil
}

// peerOf returns the address of the other end of the connection of a request.
func peerOf(r *http.Request) (netip.Addr, bool) {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}, false
	}
	peer, err := netip.ParseAddr(host)
	return peer.Unmap(), err == nil
}

// IsProxy reports whether an address is that of a trusted proxy.
func (f *ClientFinder) IsProxy(a netip.Addr) bool {
	for _, p := range f.proxies {
		if p.Contains(a.Unmap().WithZone("")) {
			return true
		}
	}
	return false
}

// Local reports whether a request comes from a client on this machine, and not
// through a proxy on it. A proxy shows itself by a header that it adds, by the host name
// that it passes on, or by HTTP/1.0, which nginx speaks unless it is told otherwise; one
// that does none of this must be named as a trusted proxy.
func (f *ClientFinder) Local(r *http.Request) bool {
	peer, ok := peerOf(r)
	if !ok || !peer.IsLoopback() || f.IsProxy(peer) || !localHost(r.Host) || !r.ProtoAtLeast(1, 1) {
		return false
	}
	for _, name := range []string{
		"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Server", "X-Real-Ip", "Forwarded", "Via",
	} {
		if _, sent := r.Header[name]; sent {
			return false
		}
	}
	return true
}

// localHost reports whether a Host header names this machine.
func localHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

// warn logs that a peer sends X-Forwarded-For and is not trusted. It does so at most
// once an hour, because every client can send the header.
func (f *ClientFinder) warn(peer netip.Addr) {
	now := f.now()
	f.mu.Lock()
	due := f.warned.IsZero() || now.Sub(f.warned) >= warnEvery
	if due {
		f.warned = now
	}
	f.mu.Unlock()
	if !due {
		return
	}
	network := netip.PrefixFrom(peer, peer.BitLen())
	f.log.Warn("A request has the header X-Forwarded-For, but its sender is not a trusted proxy. The service ignores the header, "+
		"so all clients behind this sender share the limits of one address. If the sender is your proxy, start the service with --trusted-proxy.",
		"sender", peer.String(), "flag", "--trusted-proxy "+network.String())
}
